package main

import (
	"strings"

	"gothrottle/funnel"
)

// policies are the clauses of each policy. The schedule sets them by words that all have the form
// that parsePolicies reads.
type policies map[string]rule

type rule struct {
	shadow  bool
	clauses []clause
}

// parsePolicies reads a value of the configuration "policies". All its times are in seconds.
func parsePolicies(text string) policies {
	all := policies{}
	for entry := range strings.SplitSeq(text, ";") {
		words := strings.Fields(entry)
		if len(words) == 0 {
			continue
		}
		p := rule{}
		name := words[0]
		rest := strings.Join(words[1:], " ")
		if after, found := strings.CutPrefix(rest, "SHADOW "); found {
			p.shadow, rest = true, after
		}
		for text := range strings.SplitSeq(rest, ",") {
			p.clauses = append(p.clauses, parsePolicyClause(strings.Fields(text), len(p.clauses)))
		}
		all[name] = p
	}
	return all
}

func parsePolicyClause(words []string, cell int) clause {
	for i := range words {
		if seconds, found := strings.CutSuffix(words[i], "s"); found && i > 0 {
			words[i] = seconds
		}
	}
	cl := clause{kind: clauseKinds[words[0]], cell: cell}
	r := &reader{words: words[1:]}
	times := cl.parse(r)
	if r.take("LOCKOUT") {
		times = append(times, span{to: &cl.throttle.Lockout, n: r.words64(), low: 1})
	}
	cl.window.Exact = r.take("EXACT")
	if r.take("ALIGN") {
		times = append(times, cl.align(r))
	}
	if r.spans(funnel.Second, times); r.bad || len(r.words) > 0 {
		panic("chaos: a policy is wrong: " + strings.Join(words, " "))
	}
	return cl
}

// parsePolicy reads GO.POLICY.
func (c *call) parsePolicy(r *reader, rules policies) {
	key := r.next()
	name, _, found := strings.Cut(key, ":")
	p, known := rules[name]
	if r.bad = r.bad || !found || !known; r.bad {
		return
	}
	quantity := r.quantity(0)
	if r.take("MS") {
		c.unit = funnel.Millisecond
	}
	if r.bad = r.bad || len(r.words) > 0; r.bad {
		return
	}
	c.nested, c.shadow = true, p.shadow
	never := false
	for _, cl := range p.clauses {
		cl.key = key
		cl.setQuantity(quantity)
		never = never || quantity > cl.limit()
		c.clauses = append(c.clauses, cl)
	}
	for i := range c.clauses {
		if never { // no lockout begins
			c.clauses[i].throttle.Lockout = 0
		}
	}
}

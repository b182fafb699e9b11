package commands

import (
	"fmt"
	"slices"
	"strings"
)

var policy = Command{
	Name:       "GO.POLICY",
	Summary:    "Takes units from the limits that the server's configuration gives to the key, from all of them or from none.",
	Complexity: "O(N) with N the clauses of the policy; at most 32",
	Since:      "0.1.0",
	Flags:      "write deny-oom",
	Arity:      -2,
	Args: []Arg{
		{Name: "key", Type: ArgKey, Bounds: "any bytes", Summary: "The limiter. Its policy is the part before the first colon."},
		{Name: "quantity", Type: ArgInteger, Optional: true, Bounds: fmt.Sprintf("0 to %d", maxQuantity),
			Summary: "Units to take from each limit, 1 if not given; 0 peeks."},
		{Name: "MS", Type: ArgToken, Optional: true, Summary: "The times of the reply are milliseconds."}},
	Plan:    planPolicy,
	OneKey:  true,
	Handler: runPolicy,
}

// planPolicy finds the policy of the key and makes the call's clauses of it.
func planPolicy(c *Call) ErrorCode {
	p := c.scratch.engine.policies.find(c.Args[0])
	switch {
	case p == nil && !strings.Contains(c.Args[0], ":"):
		return c.fail(ErrNoPolicyName, 0)
	case p == nil:
		return c.fail(ErrNoPolicy, 0)
	}
	if err := c.planKey(0); err != NoError {
		return err
	}
	for i := range p.clauses {
		c.addClause(clauseWords{kind: p.clauses[i].kind})
	}
	return NoError
}

func runPolicy(c *Call) ErrorCode {
	quantity, opts, err := c.policyWords()
	if err != NoError {
		return err
	}
	p := c.scratch.engine.policies.find(c.Args[0])
	if !p.fits(c.Clauses) { // another module has changed the policies since planPolicy
		return c.fail(ErrNoPolicy, 0)
	}
	for i := range c.Clauses {
		from := &p.clauses[i]
		c.scratch.limits[i] = limit{clause: i, limiter: from.limiter, most: from.limit, quantity: quantity}
		c.Clauses[i].opts = opts
	}
	if err := c.runClauses(); err != NoError {
		return err
	}
	if p.shadow {
		c.shadow()
	}
	if p.counts != nil {
		p.counts.count(c)
	}
	return NoError
}

// fits reports whether the clauses can be those of the policy.
func (p *Policy) fits(clauses []Clause) bool {
	return p != nil && slices.EqualFunc(p.clauses, clauses, func(a policyClause, b Clause) bool { return a.kind == b.kind })
}

// policyWords reads what follows the key.
func (c *Call) policyWords() (quantity int64, opts option, err ErrorCode) {
	quantity, rest := 1, 1
	if len(c.Args) > rest && looksNumeric(c.Args[rest]) {
		if quantity, err = intArg(c.Args[rest], 0, maxQuantity, ErrQuantityNotInteger, ErrPolicyQuantityRange); err != NoError {
			return 0, 0, err
		}
		rest++
	}
	var w clauseWords
	next, err := c.options(rest, optMS, &w)
	if err == NoError && next < len(c.Args) {
		err = c.unknown(optMS, next)
	}
	return quantity, w.opts, err
}

// shadow makes the front of a reply say that the call is admitted.
func (c *Call) shadow() {
	c.Reply[0], c.Reply[3] = 0, -1
	if c.Outcome == Limited {
		c.Outcome = Shadowed
	}
}

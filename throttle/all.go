package throttle

import (
	"context"
	"slices"
	"time"

	"gothrottle/throttle/internal/wire"
)

// Part is one part of a call of All: units of a limiter's key, or a slot.
type Part struct {
	l      limiter
	key    string
	n      int64  // 1 if it is a slot
	holder string // of a slot
	share  int    // the weight; 0 if the part has no share
}

// Share makes the part a tenant of the part before it in a call of All: it may use weight times what that part has
// left. The weight is 1 to 1000, chosen by the program, never by the tenant. The part is of a Window, a
// Quota or Slots; tenants of Slots are Slots.
func (p Part) Share(weight int) Part {
	if p.share = weight; weight == 0 {
		p.share = -1 // which All refuses
	}
	return p
}

// AllResult is the decision of All. The embedded Result is the deciding part's: if the call is denied, the part with
// the longest wait; if it is admitted, the one with the least remaining.
type AllResult struct {
	Result
	Decider int      // the index of the part that decided; 0 if none did
	Each    []Result // the parts' own. If the call is denied, nothing was taken, whatever Allowed says
}

// All takes all parts or none, in one call (GO.ALL): at most 32 parts, from this client's limiters.
// In a cluster and over a Ring, their keys need one hash tag. The longest Timeout of the parts and the client's fallback
// apply. A Suspended part denies the call without asking the server; the others are then unknown.
func (c *Client) All(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, "All", parts)
}

// SettleAll corrects several limiters' estimates in one call: a Settle for each part, with the part's units as the
// difference. It has no fallback.
func (c *Client) SettleAll(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, "SettleAll", parts)
}

func (c *Client) askAll(ctx context.Context, v string, parts []Part) (all AllResult, err error) {
	defer c.all.observe(v, "", time.Now(), &all.Result, &err)
	if err := c.checkAll(ctx, v, parts); err != nil {
		return AllResult{}, err
	}
	all, sent := fixedParts(v, parts)
	if len(sent) == 0 {
		return all, nil
	}
	last := []any{"MS", "FORCE"}
	if v == "All" {
		last = last[:1]
	}
	words, more, err := c.allWords(v, clauses(v, sent, parts), last...)
	if err != nil {
		return AllResult{}, err
	}
	reply, err := c.conn.Do(ctx, longest(parts), more, words...)
	if err == nil {
		err = all.read(reply, sent, parts)
	}
	switch cause := err; {
	case err == nil:
		return all, nil
	case c.all.falls(v, err):
		inside := slices.Clone(parts)
		for i := range inside {
			l := &inside[i].l
			*l = limiter{l.inner, l.bounds.part(c.all.share)}
		}
		all, err = c.inside.All(ctx, inside...)
		all.locally(cause)
		for i := range all.Each {
			all.Each[i].locally(cause)
		}
		return all, err
	case v == "SettleAll":
		c.conn.Unsettled(longest(parts), err)
	}
	return c.allFailed(v, sent, parts, all, err)
}

// longest returns the longest time limit of parts.
func longest(parts []Part) *wire.Timeout {
	by := &parts[0].l.wait
	for i := range parts {
		if one := &parts[i].l.wait; one.Limit > by.Limit {
			by = one
		}
	}
	return by
}

// checkAll refuses parts that the verb cannot have.
func (c *Client) checkAll(ctx context.Context, v string, parts []Part) error {
	if len(parts) == 0 {
		return params("%s needs at least one part", v)
	}
	for i := range parts {
		switch p := &parts[i]; {
		case p.l.family == nil || p.l.c != c:
			return params("%s takes only parts of this client's limiters", v)
		case p.l.kind == slotsKind && p.holder == "":
			return params("%s needs a holder for each slot", v)
		case p.share != 0 && (i == 0 || p.share < 1 || p.share > maxWeight):
			return params("Share needs a part before it and a weight of 1 to %d", maxWeight)
		default:
			if err := p.l.check(ctx, v, p.n, peek); err != nil {
				return err
			}
		}
	}
	return nil
}

// fixedParts decides the parts whose limits are Unlimited or Suspended, and returns the indexes of the others: none if
// a part is denied.
func fixedParts(v string, parts []Part) (all AllResult, sent []int) {
	all.Each = make([]Result, len(parts))
	denied := -1
	for i := range parts {
		p := &parts[i]
		all.Each[i] = p.l.fixed(p.n)
		all.Each[i].Allowed = all.Each[i].Allowed || p.n == 0 // a look takes nothing
		if p.l.answer == asks {
			all.Each[i] = Result{Allowed: true, Limit: p.l.bounds.units, Source: fromLimit}
			sent = append(sent, i)
		} else if denied < 0 && v == "All" && p.n > 0 && p.l.answer == refuses {
			denied = i
		}
	}
	if denied >= 0 {
		for i := range all.Each {
			all.Each[i].Granted = 0
		}
		all.Decider, sent = denied, nil
	}
	all.Result = all.Each[all.Decider]
	return all, sent
}

// keyed is a key of GO.ALL with its clause.
type keyed struct {
	key    string
	clause []any
}

// clauses returns some parts' keys and clauses.
func clauses(v string, sent []int, parts []Part) (each []keyed) {
	for i, at := range sent {
		p := &parts[at]
		words := p.appendWords(nil, v == "All")
		if p.share > 0 && i > 0 && sent[i-1] == at-1 { // else the part before is unlimited, and so is the share
			words = append(words, "SHARE", p.share)
		}
		each = append(each, keyed{p.l.prefix + p.key, words})
	}
	return each
}

// allWords returns the words of GO.ALL, and the keys after the first one.
func (c *Client) allWords(v string, each []keyed, last ...any) (words, more []any, err error) {
	words = []any{"GO.ALL"}
	for i, k := range each {
		if c.conn.Sharded() && wire.HashTag(k.key) != wire.HashTag(each[0].key) {
			// The shard of the first key would decide for all keys, and nobody would notice.
			return nil, nil, params("%s over a Ring needs keys with one hash tag", v)
		}
		if i > 0 {
			words, more = append(words, "KEY"), append(more, k.key)
		}
		words = append(append(words, k.key), k.clause...)
	}
	return append(words, last...), more, nil
}

// appendWords appends the words of one part. A settlement begins no lockout.
func (p *Part) appendWords(words []any, lockout bool) []any {
	b := &p.l.bounds
	words, last := p.l.words(append(words, clauseNames[b.kind]))
	if b.kind == slotsKind {
		return append(words, p.holder)
	}
	if words = append(words, p.n); lockout && b.lockout != 0 {
		words = append(words, "LOCKOUT", b.lockout.Milliseconds())
	}
	return append(words, last...)
}

// read reads the reply of GO.ALL to some parts.
func (all *AllResult) read(reply any, sent []int, parts []Part) error {
	ints, inner := wire.LeadingInts(nil, reply)
	if len(ints) != 6 || len(inner) != len(sent) || ints[5] < 0 || ints[5] >= int64(len(sent)) {
		return wire.ErrReply
	}
	for i, at := range sent {
		p := &parts[at]
		r, _, err := p.l.result(inner[i], p.n, take)
		if err != nil {
			return err
		}
		if ints[0] == 0 && p.n < 0 && p.l.denies {
			p.l.learn(p.key, p.n, upTo, 0, &r)
		}
		all.Each[at] = r
	}
	if ints[0] != 0 {
		for i := range all.Each {
			all.Each[i].Granted = 0
		}
	}
	all.Decider = sent[ints[5]]
	all.Result = all.Each[all.Decider]
	return nil
}

// allFailed is what All returns after an error.
func (c *Client) allFailed(v string, sent []int, parts []Part, all AllResult, cause error) (_ AllResult, err error) {
	for _, at := range sent {
		part := limiter{c.all.family, parts[at].l.bounds} // with the client's fallback
		all.Each[at], err = part.failed(v, max(parts[at].n, 0), cause)
	}
	all.Result = all.Each[sent[0]]
	return all, err
}

package throttle

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Part is one part of a call of All: units of a limiter's key, or a slot.
type Part struct {
	l      *limiter
	key    string
	n      int64  // of a slot 1
	holder string // of a slot
}

// AllResult is the decision of All. The embedded Result is that of the part that decides: of a denied call the one with
// the longest wait, of an admitted call the one with the least remaining.
type AllResult struct {
	Result
	Decider int      // the index of the part that decides; 0 if the server did not decide
	Each    []Result // of each part, in the order of the call. If the call is denied nothing was taken, whatever Allowed says
}

// All asks for all parts or none, in one call (GO.ALL): at most 32 parts of this client's limiters, without a Lockout. In a
// cluster and over a Ring their keys need one hash tag. Time limit and fallback are the client's.
func (c *Client) All(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, verbAll, parts)
}

// SettleAll corrects estimates of several limiters in one call. It is Settle for each part: the part's units are the
// difference. It has no fallback.
func (c *Client) SettleAll(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, verbSettleAll, parts)
}

func (c *Client) askAll(ctx context.Context, v Verb, parts []Part) (all AllResult, err error) {
	defer c.all.observe(v, "", time.Now(), &all.Result, &err)
	words, err := c.allWords(v, parts)
	if err != nil {
		return AllResult{}, err
	}
	reply, err := c.all.general(ctx, words...)
	if err != nil {
		return c.allFailed(v, parts, err)
	}
	return readAll(reply, parts)
}

// allWords returns the words of GO.ALL.
func (c *Client) allWords(v Verb, parts []Part) (words []any, err error) {
	if len(parts) == 0 {
		return nil, params("%s needs at least one part", v)
	}
	words = []any{"GO.ALL"}
	_, ring := c.rdb.(*redis.Ring)
	for i := range parts {
		p := &parts[i]
		switch {
		case p.l == nil || p.l.c != c:
			return nil, params("%s takes only parts of this client's limiters", v)
		case p.l.kind == slotsKind && p.holder == "":
			return nil, params("%s needs a holder for each slot", v)
		}
		if err := p.l.check(v, p.n, peek); err != nil {
			return nil, err
		}
		key := p.l.prefix + p.key
		if ring && i > 0 && hashTag(key) != hashTag(words[1].(string)) {
			// The shard of the first key would decide for all keys, and nobody would notice.
			return nil, params("%s over a Ring needs keys with one hash tag", v)
		}
		if i > 0 {
			words = append(words, "KEY")
		}
		words = p.appendWords(append(words, key))
	}
	words = append(words, "MS")
	if v == verbSettleAll {
		words = append(words, "FORCE")
	}
	return words, nil
}

// appendWords appends the words of one part.
func (p *Part) appendWords(words []any) []any {
	b := &p.l.bounds
	words = append(append(words, clauseNames[b.kind]), p.l.words[2:]...)
	if b.kind == slotsKind {
		return append(words, p.holder)
	}
	last := p.l.last()
	return append(append(words, p.n), last[:len(last)-1]...) // without MS
}

// readAll reads the reply of GO.ALL.
func readAll(reply any, parts []Part) (AllResult, error) {
	ints, inner := leadingInts(reply)
	if len(ints) != 6 || len(inner) != len(parts) || ints[5] < 0 || ints[5] >= int64(len(parts)) {
		return AllResult{}, errReply
	}
	all := AllResult{Decider: int(ints[5]), Each: make([]Result, len(parts))}
	for i := range parts {
		numbers, _ := leadingInts(inner[i])
		r, _, err := readResult(numbers, &parts[i].l.bounds, parts[i].n, take)
		if err != nil {
			return AllResult{}, err
		}
		if ints[0] != 0 {
			r.Granted = 0
		} else if p := &parts[i]; p.n < 0 {
			p.l.noteDenial(p.key, p.n, upTo, 0, &r)
		}
		all.Each[i] = r
	}
	all.Result = all.Each[all.Decider]
	return all, nil
}

// allFailed is what All returns after an error.
func (c *Client) allFailed(v Verb, parts []Part, cause error) (_ AllResult, err error) {
	all := AllResult{Each: make([]Result, len(parts))}
	for i := range parts {
		of := limiter{bounds: parts[i].l.bounds, settings: c.defaults}
		all.Each[i], err = of.failed(v, max(parts[i].n, 0), cause)
	}
	all.Result = all.Each[0]
	return all, err
}

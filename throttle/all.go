package throttle

import (
	"context"
	"errors"
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

// maxParts is how many clauses GO.ALL takes.
const maxParts = 32

// All asks for all parts or none, in one call (GO.ALL): at most 32 parts of this client's limiters, without a Lockout. In a
// cluster and over a Ring their keys need one hash tag. Time limit and fallback are the client's.
func (c *Client) All(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, verbAll, parts)
}

// SettleAll corrects estimates of several limiters in one call: it is Settle for each part, where the part's units are the
// difference. It has no fallback.
func (c *Client) SettleAll(ctx context.Context, parts ...Part) (AllResult, error) {
	return c.askAll(ctx, verbSettleAll, parts)
}

func (c *Client) askAll(ctx context.Context, v Verb, parts []Part) (AllResult, error) {
	began := time.Now()
	r, err := c.decideAll(ctx, v, parts)
	c.all.observe(v, "", r.Result, err, began)
	return r, err
}

func (c *Client) decideAll(ctx context.Context, v Verb, parts []Part) (AllResult, error) {
	words, err := c.allWords(v, parts)
	if err != nil {
		return AllResult{}, err
	}
	reply, err := c.all.general(ctx, words[1].(string), words...)
	switch {
	case errors.Is(err, ErrUnavailable):
		return c.allUnavailable(v, parts, err)
	case err != nil:
		return AllResult{}, err
	}
	return readAll(reply, parts)
}

// allWords returns the words of GO.ALL.
func (c *Client) allWords(v Verb, parts []Part) (words []any, err error) {
	if c.closed.Load() {
		return nil, ErrClosed
	}
	if len(parts) == 0 || len(parts) > maxParts {
		return nil, params("%s of %d parts", v, len(parts))
	}
	words = []any{"GO.ALL"}
	named := map[string]bool{}
	_, ring := c.rdb.(*redis.Ring)
	for i := range parts {
		p := &parts[i]
		if err := c.checkPart(v, p); err != nil {
			return nil, err
		}
		key := p.l.prefix + p.key
		switch {
		case named[key]:
			return nil, params("%s names the key %q twice", v, key)
		case ring && i > 0 && hashTag(key) != hashTag(words[1].(string)):
			// The shard of the first key would decide for all keys, and nobody would notice.
			return nil, params("%s over a Ring: the keys need one hash tag", v)
		case i > 0:
			words = append(words, "KEY")
		}
		named[key] = true
		words = p.appendWords(append(words, key))
	}
	words = append(words, "MS")
	if v == verbSettleAll {
		words = append(words, "FORCE")
	}
	return words, nil
}

// checkPart refuses what GO.ALL does not take.
func (c *Client) checkPart(v Verb, p *Part) error {
	switch {
	case p.l == nil || p.l.c != c:
		return params("%s of a part that no limiter of this client has made", v)
	case p.l.err != nil:
		return p.l.err
	case p.l.lockout != 0 || p.l.kind == slotsKind && v == verbSettleAll:
		return params("%s of %s", v, p.l.bounds)
	case p.l.kind == slotsKind && (p.holder == "" || len(p.holder) > maxHolder):
		return params("a holder of %d bytes: 1 to %d", len(p.holder), maxHolder)
	case p.n > maxUnits+1 || p.n < -maxUnits-1:
		return params("%s of %d units", v, p.n)
	}
	return nil
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
		r, err := readResult(numbers, &parts[i].l.bounds, parts[i].n, take)
		if err != nil {
			return AllResult{}, err
		}
		if ints[0] != 0 {
			r.Granted = 0
		}
		all.Each[i] = r
	}
	all.Result = all.Each[all.Decider]
	return all, nil
}

// allUnavailable is what All returns if the server did not decide.
func (c *Client) allUnavailable(v Verb, parts []Part, cause error) (_ AllResult, err error) {
	all := AllResult{Each: make([]Result, len(parts))}
	for i := range parts {
		of := limiter{bounds: parts[i].l.bounds, settings: c.defaults}
		all.Each[i], err = of.unavailable(v, max(parts[i].n, 0), cause)
	}
	all.Result = all.Each[0]
	return all, err
}

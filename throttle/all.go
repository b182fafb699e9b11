package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Take is one part of a call of All.
type Take struct {
	Key    string
	Limit  Limit
	N      int64  // units; not of Slots. 0 peeks, and a negative number gives back at most what is in use; Granted is N then
	Holder string // of Slots: who holds the slot, 1 to 512 bytes. One holder has one slot, so each needs a name of its own
}

// units returns how many units the part asks for: of Slots one.
func (t *Take) units() int64 {
	if t.Limit.kind == slotsKind {
		return 1
	}
	return t.N
}

// AllResult is the decision of All. The embedded Result is that of the part that decides: of a denied call the one with
// the longest wait, of an admitted call the one with the least remaining.
type AllResult struct {
	Result
	Decider int      // the index of the part that decides; 0 if the server did not decide
	Each    []Result // of each part, in the order of the call. If the call is denied nothing was taken, whatever Allowed says
}

// maxTakes is how many clauses GO.ALL takes.
const maxTakes = 32

// All asks for all parts or none, in one call (GO.ALL): at most 32, of any kind but policies and rates with Lockout. Several
// rates may have one key; a Window, a Quota or Slots has its key alone. The keys need one hash tag in a cluster and over a
// Ring.
func (c *Client) All(ctx context.Context, parts ...Take) (AllResult, error) {
	return c.all(ctx, "All", parts, false)
}

// SettleAll corrects estimates of several limiters in one call: it is Settle for each part, where N is the difference.
func (c *Client) SettleAll(ctx context.Context, parts ...Take) (AllResult, error) {
	return c.all(ctx, "SettleAll", parts, true)
}

func (c *Client) all(ctx context.Context, verb string, parts []Take, settles bool) (AllResult, error) {
	began := time.Now()
	r, err := c.decideAll(ctx, verb, parts, settles)
	if c.o.Observe != nil {
		c.o.Observe(Event{verb, "", Limit{}, r.Result, err, time.Since(began)})
	}
	return r, err
}

func (c *Client) decideAll(ctx context.Context, verb string, parts []Take, settles bool) (AllResult, error) {
	words, order, err := c.allWords(verb, parts, settles)
	if err != nil {
		return AllResult{}, err
	}
	if c.closed.Load() {
		return AllResult{}, ErrClosed
	}
	limited := c.limit(ctx)
	cmd := newGeneralCall(&limited, words)
	err = c.do(&limited, words[1].(string), cmd)
	if errors.Is(err, ErrUnavailable) {
		return c.allUnavailable(parts, err)
	}
	if err != nil {
		return AllResult{}, err
	}
	return readAll(cmd.Val(), parts, order, settles)
}

// allWords returns the words of GO.ALL, and of each clause the index of its part: the parts of one key stand together.
func (c *Client) allWords(verb string, parts []Take, settles bool) (words []any, order []int, err error) {
	if len(parts) == 0 || len(parts) > maxTakes {
		return nil, nil, params("%s of %d parts", verb, len(parts))
	}
	words = []any{"GO.ALL"}
	named := map[string]bool{}
	_, ring := c.rdb.(*redis.Ring)
	for i := range parts {
		key := parts[i].Key
		if named[key] {
			continue
		}
		if ring && hashTag(c.o.KeyPrefix+key) != hashTag(c.o.KeyPrefix+parts[0].Key) {
			// The shard of the first key would decide for all keys, and nobody would notice.
			return nil, nil, params("%s over a Ring: the keys need one hash tag", verb)
		}
		if len(named) > 0 {
			words = append(words, "KEY")
		}
		named[key] = true
		words = append(words, c.o.KeyPrefix+key)
		for j := i; j < len(parts); j++ {
			if parts[j].Key != key {
				continue
			}
			if words, err = c.appendClause(words, verb, &parts[j]); err != nil {
				return nil, nil, err
			}
			order = append(order, j)
		}
	}
	words = append(words, "MS")
	if settles {
		words = append(words, "FORCE")
	}
	return words, order, nil
}

// appendClause appends the words of one part.
func (c *Client) appendClause(words []any, verb string, p *Take) ([]any, error) {
	l := &p.Limit
	if err := l.check(); err != nil {
		return nil, err
	}
	less, err := c.o.Budget.less(l)
	switch {
	case err != nil:
		return nil, err
	case l.kind == policyKind || l.lockout != 0 || l.kind == slotsKind && verb == "SettleAll":
		return nil, params("%s of %s", verb, l)
	case l.kind == slotsKind && (p.N != 0 || p.Holder == "" || len(p.Holder) > maxHolder), l.kind != slotsKind && p.Holder != "":
		return nil, params("a part with %d units of %s, and a holder of %d bytes", p.N, l, len(p.Holder))
	case p.N > maxUnits+1 || p.N < -maxUnits-1:
		return nil, params("%s of %d units", verb, p.N)
	}
	words = append(words, clauseNames[l.kind])
	switch l.kind {
	case rateKind:
		return append(words, l.limit-1-less, l.count, l.period.Milliseconds(), p.N), nil
	case slotsKind:
		return append(words, l.limit, l.period.Milliseconds(), p.Holder), nil
	}
	words = append(words, l.limit-less, l.period.Milliseconds(), p.N)
	if l.exact {
		words = append(words, "EXACT")
	}
	if l.aligned {
		words = append(words, "ALIGN", l.offset.Milliseconds())
	}
	return words, nil
}

// readAll reads the reply of GO.ALL.
func readAll(reply any, parts []Take, order []int, settles bool) (AllResult, error) {
	ints, inner := leadingInts(reply)
	if len(ints) != 6 || len(inner) != len(order) || ints[5] < 0 || ints[5] >= int64(len(order)) {
		return AllResult{}, errReply
	}
	m := take
	if settles {
		m = force
	}
	all := AllResult{Decider: order[ints[5]], Each: make([]Result, len(parts))}
	for i, at := range order {
		numbers, _ := leadingInts(inner[i])
		r, err := readResult(numbers, &parts[at].Limit, parts[at].units(), m)
		if err != nil {
			return AllResult{}, err
		}
		if ints[0] != 0 {
			r.Granted = 0
		}
		all.Each[at] = r
	}
	all.Result = all.Each[all.Decider]
	return all, nil
}

// allUnavailable is what All returns when the server did not decide. There is no limiter in this process for it.
func (c *Client) allUnavailable(parts []Take, cause error) (AllResult, error) {
	r := AllResult{Result: Result{Cause: cause}}
	switch c.o.OnUnavailable {
	case FailOpen:
		r.Allowed, r.Source = true, FailedOpen
	case FailClosed:
		r.RetryAfter, r.Source = retryUnavailable, FailedClosed
	default:
		return r, cause
	}
	for _, p := range parts {
		one := r.Result
		one.Limit = p.Limit.limit
		if one.Allowed {
			one.Granted = max(p.units(), 0)
		}
		r.Each = append(r.Each, one)
	}
	r.Result = r.Each[0]
	return r, nil
}

var _ redis.Cmder = (*generalCall)(nil)

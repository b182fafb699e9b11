package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"gothrottle/gateway/internal/rules"
	"gothrottle/throttle"
)

// store is where limits count: the server, or this process.
type store = *throttle.Client

// bound is what an Engine keeps of a limit.
type bound struct {
	at     map[store]limiter
	looked atomic.Bool // a request has looked, with 0 hits
	warned atomic.Bool // the log has said that reported hits are lost
}

// limiter is a counter or throttle.Slots.
type limiter interface {
	Info() (throttle.Info, error)
	Reset(ctx context.Context, key string) error
}

// counter is what the other limiters of package throttle have in common.
type counter interface {
	limiter
	AllowN(ctx context.Context, key string, n int64) (throttle.Result, error)
	Peek(ctx context.Context, key string) (throttle.Result, error)
	AllowAtMost(ctx context.Context, key string, n int64) (throttle.Result, error)
	Settle(ctx context.Context, key string, n int64) (throttle.Result, error)
	Part(key string, n int64) throttle.Part
	Hold(ctx context.Context, key string, n int64, parts ...throttle.Part) (*throttle.Hold, error)
}

// newLimiter returns the limiter of a limit.
func newLimiter(c store, m *rules.Limit) limiter {
	name, units, hold := m.Counter(), max(m.Units, 1), throttle.Holds(cmp.Or(m.Holds(), time.Minute), 0)
	switch {
	case m.Algorithm == rules.Concurrency:
		return c.Slots(name, units, m.Period)
	case m.Algorithm == rules.SlidingWindow:
		return c.Window(name, units, m.Period, hold)
	case m.Algorithm == rules.FixedWindow && m.TimeZone.Location != nil && m.Period == rules.Periods["MONTH"]:
		return c.Quota(name, units, throttle.Month, throttle.In(m.TimeZone.Location), throttle.OnDay(max(m.StartsOn, 1)), hold)
	case m.Algorithm == rules.FixedWindow:
		return c.Quota(name, units, m.Period, throttle.In(m.TimeZone.Location), hold)
	}
	if m.Burst != nil {
		units = int64(*m.Burst)
	}
	return c.Rate(name, rateOf(m, units), hold)
}

// rateOf is a limit with algorithm gcra, of which so many units fit together.
func rateOf(m *rules.Limit, fits int64) throttle.Limit {
	rate := throttle.Per(max(m.Units, 1), m.Period).Burst(fits)
	if m.Lockout != nil {
		rate = rate.Lockout(*m.Lockout)
	}
	return rate
}

func (e *Engine) bind(m *rules.Limit) *bound {
	return &bound{at: map[store]limiter{e.Remote: newLimiter(e.Remote, m), e.local: newLimiter(e.local, m)}}
}

func (e *Engine) bound(m *rules.Limit) *bound {
	if b := (*e.limits.Load())[m]; b != nil {
		return b
	}
	return e.bind(m) // it came with the request, or the rules have changed
}

// lessOne is the limiter with one unit less: a call for nothing is refused there once all units of the limit are in use.
func (a *Ask) lessOne(s store) counter {
	if w, window := a.at[s].(throttle.Window); window {
		return w.With(throttle.Units(a.Units - 1))
	}
	return a.at[s].(throttle.Rate).With(rateOf(a.Limit, a.Fits()-1))
}

// trial says whether what the ask charges stops at its limit: a rule in shadow leaves no debt behind. As in envoyproxy/ratelimit,
// fixed windows count refused hits in shadow, too: that lasts no longer than the window.
func (e *Engine) trial(a *Ask) bool {
	return (e.Shadow || a.Shadow) && (a.Algorithm != rules.FixedWindow || !a.Charge)
}

func (e *Engine) askOne(ctx context.Context, at store, a *Ask) (Verdict, error) {
	c, ok := a.at[at].(counter)
	if !ok {
		return askSlot(ctx, a.at[at].(throttle.Slots), a)
	}
	var r throttle.Result
	var err error
	switch {
	case a.Ticket != "":
		return e.settleHold(ctx, at, a)
	case a.holds && at == e.Remote:
		return e.hold(ctx, a)
	case a.Hits == 0:
		a.looked.Store(true)
		r, err = c.Peek(ctx, a.Key)
		return verdictOf(r, !a.Settle && exceeded(a.Limit, r)), err
	case a.Hits < 0 || a.Settle:
		return e.settle(ctx, c, a)
	case a.Units == 0 && !a.Charge:
		return a.blocked(), nil
	case a.Units > 0:
		r, err = c.AllowN(ctx, a.Key, a.Hits)
	}
	switch {
	case err != nil || r.Allowed:
		return verdictOf(r, false), err
	case a.Charge: // past the limit, as envoyproxy/ratelimit does: a later request that only looks sees that more was used
		v, err := e.settle(ctx, c, a)
		if errors.Is(err, throttle.ErrParams) { // that is more than the server counts
			err = nil
		}
		v.Over = true
		return v, err
	}
	e.refused(a)
	return verdictOf(r, true), nil
}

// blocked is the verdict of a limit of 0. A fixed window ends when it ends.
func (a *Ask) blocked() Verdict {
	v := Verdict{Over: true}
	if a.Algorithm != rules.FixedWindow {
		v.Reset = a.Period
	}
	return v
}

// settle gives hits back, or charges them.
func (e *Engine) settle(ctx context.Context, c counter, a *Ask) (v Verdict, err error) {
	ask, hits := c.Settle, a.Hits
	switch {
	case hits < 0 || !e.trial(a):
	case a.Lockout == nil && a.Units > 0:
		ask = c.AllowAtMost
	default: // with which the server doesn't do that
		r, err := c.Peek(ctx, a.Key)
		if hits = min(hits, r.Remaining); err != nil || hits == 0 || a.Units == 0 {
			return verdictOf(r, false), err
		}
	}
	r, err := ask(ctx, a.Key, hits)
	return verdictOf(r, false), err
}

// exceeded says whether a request that only looks finds the limit exceeded: more was used than the limit. If hits that are
// refused do not count, that never happens, so it is enough that nothing is left.
func exceeded(m *rules.Limit, r throttle.Result) bool {
	if m.Units == 0 { // on the server it is 1
		return !m.Charge || r.Remaining == 0
	}
	return r.RetryAfter > 0 || !m.Charge && r.Remaining == 0
}

// refused notes that hits were refused and do not count. A rule with hits above 1 that others look at before is asked by a
// gateway that reports tokens late: without late, its limit would not limit.
func (e *Engine) refused(a *Ask) {
	if a.Hits > 1 && !a.Charge && a.looked.Load() && !a.warned.Swap(true) {
		e.Log.Warn("refused to count reported hits: if they are reported after the request, add 'late: true' to the rule",
			"rule", a.Path, "place", a.Place)
	}
}

func verdictOf(r throttle.Result, over bool) Verdict {
	v := Verdict{Over: over, Remaining: r.Remaining, Granted: r.Granted, Reset: r.ResetAfter}
	if over && r.RetryAfter > 0 && r.RetryAfter != throttle.Never {
		v.Reset = r.RetryAfter
	}
	return v
}

// askSlot takes a slot for the holder, renews it, looks whether there is one, or releases it.
func askSlot(ctx context.Context, s throttle.Slots, a *Ask) (Verdict, error) {
	ask := s.Peek
	if a.Hits > 0 {
		ask = s.Take
	} else if a.Hits < 0 {
		if _, err := s.Release(ctx, a.Key, a.Holder); err != nil {
			return Verdict{}, err
		}
	}
	r, err := ask(ctx, a.Key, a.Holder)
	return verdictOf(r, a.Hits >= 0 && !r.Allowed), err
}

// askAll takes from the limits of all asks, or from none. Asks of one key are one part of the call.
func (e *Engine) askAll(ctx context.Context, at store, asks []*Ask) error {
	hits := map[string]int64{}
	for _, a := range asks {
		hits[a.partKey()] += a.Hits
	}
	var single []*Ask // looks at limits of which there is none with one unit less
	for _, a := range asks {
		if hits[a.partKey()] == 0 && a.Fits() == 1 {
			a.looked.Store(true)
			single = append(single, a)
		}
	}
	if err := e.look(ctx, at, single); err != nil || slices.ContainsFunc(single, func(a *Ask) bool { return a.Over }) {
		return cmp.Or(err, e.look(ctx, at, asks))
	}
	results, err := allOf(ctx, at, asks, func(a *Ask) throttle.Part {
		if n := hits[a.partKey()]; n > 0 || a.Fits() == 1 || a.Units == 0 {
			return a.part(at, n)
		}
		return a.lessOne(at).Part(a.Key, 0)
	})
	if err != nil {
		return err
	}
	for _, a := range asks {
		r := results[a.partKey()]
		if a.Verdict = verdictOf(r, !r.Allowed); hits[a.partKey()] == 0 && r.Allowed && a.Fits() > 1 {
			a.Remaining++
		}
		if !r.Allowed {
			e.refused(a)
		}
		if a.Over && a.Units == 0 {
			a.Verdict = a.blocked()
		}
	}
	return nil
}

// allOf takes parts of all asks, or none, and returns the results by the keys of parts.
func allOf(ctx context.Context, at store, asks []*Ask, part func(*Ask) throttle.Part) (map[string]throttle.Result, error) {
	var keys []string
	var parts []throttle.Part
	smallest := func(a, b *Ask) int { return cmp.Compare(a.Fits(), b.Fits()) } // of one key, because of a reserve
	for _, a := range slices.SortedFunc(slices.Values(asks), smallest) {
		if key := a.partKey(); !slices.Contains(keys, key) {
			keys, parts = append(keys, key), append(parts, part(a))
		}
	}
	all, err := at.All(ctx, parts...)
	results := map[string]throttle.Result{}
	for i := range all.Each {
		results[keys[i]] = all.Each[i]
	}
	return results, err
}

// look sets the verdicts of asks that another one's refuses, so that they take nothing.
func (e *Engine) look(ctx context.Context, at store, asks []*Ask) error {
	var counters []*Ask
	for _, a := range asks {
		if slots, is := a.at[at].(throttle.Slots); !is {
			counters = append(counters, a)
		} else if r, err := slots.Peek(ctx, a.Key, a.Holder); err != nil {
			return err
		} else {
			a.Verdict = verdictOf(r, !r.Allowed)
		}
	}
	if len(counters) == 0 {
		return nil
	}
	results, err := allOf(ctx, at, counters, func(a *Ask) throttle.Part { return a.at[at].(counter).Part(a.Key, 0) })
	for _, a := range counters {
		r := results[a.partKey()]
		if a.Verdict = verdictOf(r, exceeded(a.Limit, r) || a.Hits > r.Remaining); a.Over && a.Units == 0 {
			a.Verdict = a.blocked()
		}
	}
	return err
}

// askShared takes from a share, the last ask, and from the limits around it, or from none.
func (e *Engine) askShared(ctx context.Context, at store, asks []*Ask) error {
	a := asks[len(asks)-1]
	all, hits := at.All, a.Hits
	switch {
	case hits > 0 && a.Settle && e.trial(a):
		only := *a
		only.Hits, only.Settle = 0, false
		if err := e.askShared(ctx, at, append(slices.Clone(asks[:len(asks)-1]), &only)); err != nil {
			return err
		}
		hits = min(hits, only.Remaining)
	case hits < 0 || a.Settle:
		all = at.SettleAll
	}
	var parts []throttle.Part
	for i, m := range asks {
		part := m.part(at, hits)
		if m.Share > 0 && i > 0 {
			part = part.Share(m.Share)
		}
		parts = append(parts, part)
	}
	took, err := all(ctx, parts...)
	if err != nil {
		return err
	}
	own := Verdict{Remaining: math.MaxInt64, Granted: took.Each[len(asks)-1].Granted}
	for i, m := range asks {
		r := took.Each[i]
		m.Verdict = verdictOf(r, !a.Settle && (!r.Allowed || a.Hits == 0 && r.Remaining == 0))
		if m.Over == own.Over {
			own.Reset = max(own.Reset, m.Reset)
		} else if m.Over {
			own.Over, own.Reset = true, m.Reset
		}
		own.Remaining = min(own.Remaining, m.Remaining)
	}
	if a.Verdict = own; a.Over && a.Hits > 0 {
		e.refused(a)
	}
	return nil
}

func (a *Ask) partKey() string { return a.Counter() + ":" + a.Key + " " + a.Holder }

// part is the ask's part of a call for hits, or of a look.
func (a *Ask) part(at store, hits int64) throttle.Part {
	if slots, ok := a.at[at].(throttle.Slots); ok {
		return slots.Part(a.Key, a.Holder)
	}
	if a.Units == 0 {
		hits = MaxHits // more than the limit of 1 that it has on the server
	}
	return a.at[at].(counter).Part(a.Key, min(hits, MaxHits))
}

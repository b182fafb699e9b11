package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"gothrottle/gateway/internal/rules"
	"gothrottle/throttle"
)

// bound is what an Engine keeps of a limit.
type bound struct {
	remote, local limiter
	looked        atomic.Bool // a request has looked, with 0 hits
	warned        atomic.Bool // the log has said that reported hits are lost
}

// limiter is a counter or throttle.Slots.
type limiter interface{ Info() throttle.Info }

// counter is what the other limiters of package throttle have in common.
type counter interface {
	limiter
	AllowN(ctx context.Context, key string, n int64) (throttle.Result, error)
	Peek(ctx context.Context, key string) (throttle.Result, error)
	Settle(ctx context.Context, key string, n int64) (throttle.Result, error)
	Part(key string, n int64) throttle.Part
}

// newLimiter returns the limiter of a limit. Those of one algorithm and period share their name, so usage carries over when
// a limit changes.
func newLimiter(c *throttle.Client, m *rules.Limit) limiter {
	named, units := c.Limits(string(m.Algorithm)+"."+m.Period.String()), max(m.Units, 1)
	switch m.Algorithm {
	case rules.Concurrency:
		return named.Slots(throttle.Units(units), m.Period)
	case rules.SlidingWindow:
		return named.Window(throttle.Units(units), m.Period)
	case rules.FixedWindow:
		return newQuota(c, m, named, throttle.Units(units))
	}
	rate := throttle.Per(units, m.Period)
	if m.Burst != nil {
		rate = rate.Burst(int64(*m.Burst))
	}
	if m.Lockout != nil {
		rate = rate.Lockout(*m.Lockout)
	}
	return named.Rate(rate)
}

// newQuota returns the limiter of a fixed window. With a time zone it follows the zone's calendar.
func newQuota(c *throttle.Client, m *rules.Limit, named throttle.Limits, units throttle.Limit) limiter {
	switch {
	case m.TimeZone == nil:
		return named.AlignedQuota(units, m.Period, nil)
	case m.Period == rules.Periods["MONTH"]:
		return c.Limits(string(m.Algorithm)+".month").MonthlyQuota(units, m.TimeZone.Location)
	}
	return named.AlignedQuota(units, m.Period, m.TimeZone.Location)
}

func (e *Engine) bind(m *rules.Limit) *bound {
	return &bound{remote: newLimiter(e.remote, m), local: newLimiter(e.local, m)}
}

func (e *Engine) bound(m *rules.Limit) *bound {
	if b := (*e.limits.Load())[m]; b != nil {
		return b
	}
	return e.bind(m) // it came with the request, or the rules have changed
}

func (e *Engine) askOne(ctx context.Context, by limiter, a *Ask) (Verdict, error) {
	c, ok := by.(counter)
	if !ok {
		return askSlot(ctx, by.(throttle.Slots), a)
	}
	var r throttle.Result
	var err error
	switch {
	case a.Hits == 0:
		a.looked.Store(true)
		r, err = c.Peek(ctx, a.Key)
		return verdictOf(r, exceeded(a.Limit, r)), err
	case a.Hits < 0 || a.Settle:
		r, err = c.Settle(ctx, a.Key, a.Hits)
		return verdictOf(r, false), err
	case a.Charge:
		return e.charge(ctx, c, a)
	case a.Units == 0:
		return Verdict{Over: true, Reset: a.Period}, nil
	}
	r, err = c.AllowN(ctx, a.Key, a.Hits)
	if err == nil && !r.Allowed {
		e.refused(a)
	}
	return verdictOf(r, !r.Allowed), err
}

// exceeded says whether a request that only looks finds the limit exceeded: more was used than the limit. If hits that are
// refused do not count, that never happens, so it is enough that nothing is left.
func exceeded(m *rules.Limit, r throttle.Result) bool {
	if m.Units == 0 { // on the server it is 1
		return !m.Charge || r.Remaining == 0
	}
	return r.RetryAfter > 0 || !m.Charge && r.Remaining == 0
}

// charge admits hits, or counts them past the limit, as envoyproxy/ratelimit does: a later request that only looks sees
// that more was used than the limit.
func (e *Engine) charge(ctx context.Context, c counter, a *Ask) (Verdict, error) {
	var r throttle.Result
	var err error
	if a.Units > 0 {
		r, err = c.AllowN(ctx, a.Key, a.Hits)
	}
	if err != nil || r.Allowed {
		return verdictOf(r, false), err
	}
	r, err = c.Settle(ctx, a.Key, a.Hits)
	if err != nil && !errors.Is(err, throttle.ErrParams) { // that is more than the server counts
		return Verdict{}, err
	}
	return verdictOf(r, true), nil
}

// refused notes that hits were refused and do not count. A rule with hits above 1 that others look at before is asked by a
// gateway that reports tokens late: without late, its limit would not limit.
func (e *Engine) refused(a *Ask) {
	if a.Hits > 1 && !a.Charge && a.looked.Load() && !a.warned.Swap(true) {
		e.log.Warn("reported hits were refused, and do not count: if they are reported after the request, add 'late: true' to the rule",
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
		ask = s.Hold
	} else if a.Hits < 0 {
		if _, err := s.Release(ctx, a.Key, a.Holder); err != nil {
			return Verdict{}, err
		}
	}
	h, err := ask(ctx, a.Key, a.Holder)
	return verdictOf(h.Result, a.Hits >= 0 && !h.Allowed), err
}

// askAll takes from the limits of all asks, or from none. Asks of one key are one part of the call.
func (e *Engine) askAll(ctx context.Context, asks []*Ask) error {
	hits, place := map[string]int64{}, map[string]int{}
	for _, a := range asks {
		hits[a.partKey()] += a.Hits
	}
	var parts []throttle.Part
	smallest := func(a, b *Ask) int { return cmp.Compare(a.Fits(), b.Fits()) } // of one key, because of a reserve
	for _, a := range slices.SortedFunc(slices.Values(asks), smallest) {
		key := a.partKey()
		if _, found := place[key]; !found {
			place[key] = len(parts)
			parts = append(parts, a.part(hits[key]))
		}
	}
	all, err := e.remote.All(ctx, parts...)
	if err != nil {
		return err
	}
	for _, a := range asks {
		r := all.Each[place[a.partKey()]]
		if a.Verdict = verdictOf(r, !r.Allowed || a.Units == 0); !r.Allowed {
			e.refused(a)
		}
	}
	return nil
}

// askShared takes from a share, the last ask, and from the limits around it, or from none.
func (e *Engine) askShared(ctx context.Context, asks []*Ask) error {
	a, parts := asks[len(asks)-1], []throttle.Part(nil)
	for _, m := range asks {
		part := m.part(a.Hits)
		if m.Share > 0 {
			part = part.Share(m.Share)
		}
		parts = append(parts, part)
	}
	ask := e.remote.All
	if a.Hits < 0 || a.Settle {
		ask = e.remote.SettleAll
	}
	all, err := ask(ctx, parts...)
	if err != nil {
		return err
	}
	own := Verdict{Remaining: math.MaxInt64}
	for i, m := range asks {
		r := all.Each[i]
		m.Verdict = verdictOf(r, !r.Allowed || a.Hits == 0 && r.Remaining == 0)
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

func (a *Ask) partKey() string { return a.remote.Info().Name + ":" + a.Key + " " + a.Holder }

func (a *Ask) part(hits int64) throttle.Part {
	if slots, ok := a.remote.(throttle.Slots); ok {
		return slots.Part(a.Key, a.Holder)
	}
	if a.Units == 0 {
		hits = MaxHits // more than the limit of 1 that it has on the server
	}
	return a.remote.(counter).Part(a.Key, min(hits, MaxHits))
}

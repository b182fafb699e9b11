package funnel_test

import (
	"math/big"
	"slices"
	"testing"

	"gothrottle/funnel"
)

// action is units that a caller acts on at an instant. A caller with a slot acts when it has
// waited as told.
type action struct {
	at    funnel.Nanos
	units int64
	until funnel.Nanos // a slot may be cancelled before that instant; 0: there is no slot
}

// roundedUp returns d in whole units, as ns.
func roundedUp(d, unit funnel.Nanos) funnel.Nanos { return (d + unit - 1) / unit * unit }

// excess returns by how many units the actions exceed limit + rate x (t + unit) in the worst
// length of time t. It is negative if they always stay below.
func excess(actions []action, limit int64, rate funnel.Rate, unit funnel.Nanos) *big.Rat {
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b action) int { return int(min(max(a.at-b.at, -1), 1)) })
	perNano := big.NewRat(rate.Count, int64(rate.Period))
	allowed := new(big.Rat).Mul(whole(unit), perNano)
	allowed.Add(allowed, whole(limit))
	sum, low, worst := new(big.Rat), (*big.Rat)(nil), new(big.Rat).Neg(allowed)
	for _, a := range actions {
		drained := new(big.Rat).Mul(whole(a.at-origin), perNano)
		if start := new(big.Rat).Sub(sum, drained); low == nil || start.Cmp(low) < 0 {
			low = start
		}
		sum.Add(sum, whole(a.units))
		over := new(big.Rat).Sub(sum, drained)
		if over.Sub(over, low).Sub(over, allowed); over.Cmp(worst) > 0 {
			worst = over
		}
	}
	return worst
}

// reserved is a walk at one rate of callers with and without RESERVE.
type reserved struct {
	*walk
	limiter
	actions []action
	limit   int64        // the largest of all callers
	maxWait funnel.Nanos // the longest of all callers

	slots, plain, denied, cancelled int
}

// call makes a call, notes when its caller acts and checks the verdict.
func (r *reserved) call(t *testing.T, unit funnel.Nanos) {
	t.Helper()
	p := r.walk.call()
	p.Quantity = max(p.Quantity, 0)
	if !p.UpTo && r.IntN(4) > 0 {
		longest := 10 * r.p.Rate.Drain(r.limit)
		if p.Reserve, p.MaxWait = true, longest/unit*unit; r.IntN(2) == 0 {
			p.MaxWait = min(r.length(), longest) / unit * unit
		}
	}
	v := r.limiter.call(t, r.now, p)
	r.last = v
	if v.TooMuch || v.Wait > p.MaxWait || roundedUp(v.Wait, unit) > p.MaxWait || v.Wait > 0 && v.Granted != p.Quantity {
		t.Fatalf("%+v: %+v", p, v)
	}
	r.retried(t, r.now, p, v)
	r.maxWait = max(r.maxWait, p.MaxWait)
	switch {
	case v.Granted > 0:
		wait := roundedUp(v.Wait, unit)
		r.actions = append(r.actions, action{r.now + wait, v.Granted, r.now + v.Wait})
		if r.plain++; wait > 0 {
			r.plain--
			r.slots++
		}
	case v.Limited:
		r.denied++
	}
}

// cancel gives back the units of one slot, at random, that lies in the future.
func (r *reserved) cancel(t *testing.T) {
	t.Helper()
	i := slices.IndexFunc(r.actions, func(a action) bool { return a.until > r.now && r.IntN(3) == 0 })
	if i < 0 {
		return
	}
	p := r.p
	p.Quantity, p.Reserve = -r.actions[i].units, true
	if v := r.limiter.call(t, r.now, p); v.Limited || v.Wait != 0 {
		t.Fatalf("%+v: %+v", p, v)
	}
	r.actions = slices.Delete(r.actions, i, i+1)
	r.cancelled++
}

// eachReserved runs calls on n walks, with cancels and with one limit or with several, and
// checks that what the callers act on is within the bound.
func eachReserved(t *testing.T, n uint64, cancels, limits bool) {
	var sum reserved
	for _, unit := range []funnel.Nanos{1, funnel.Millisecond, funnel.Second} {
		eachWalk(t, n, func(t *testing.T, w *walk) {
			for w.p.Rate.Drain(w.p.Limit) > funnel.MaxPeriod/100 {
				w.newRate()
			}
			r := &reserved{walk: w, limiter: *limiterOf(funnel.ThrottleState{}), limit: w.p.Limit}
			for range 150 {
				if w.IntN(2) == 0 {
					w.wait()
				}
				if w.now > lastNow-funnel.MaxPeriod {
					break
				}
				if w.p.Limit = r.limit; limits {
					w.p.Limit = max(r.limit>>w.IntN(5), 1)
				}
				if r.call(t, unit); cancels && w.IntN(2) == 0 {
					r.cancel(t)
				}
			}
			over := excess(r.actions, r.limit, w.p.Rate, unit)
			if cancels {
				perNano := big.NewRat(w.p.Rate.Count, int64(w.p.Rate.Period))
				over.Sub(over, perNano.Mul(perNano, whole(2*r.maxWait)))
			}
			if over.Sign() > 0 {
				t.Fatalf("limit %d, rate %+v, unit %d: %v units too many", r.limit, w.p.Rate, unit, over)
			}
			sum.slots += r.slots
			sum.plain += r.plain
			sum.denied += r.denied
			sum.cancelled += r.cancelled
		})
	}
	if !t.Failed() && (min(sum.slots, sum.plain, sum.denied) < 2000 || cancels && sum.cancelled < 2000) {
		t.Errorf("%d slots, %d calls without a wait, %d denials and %d cancels prove nothing",
			sum.slots, sum.plain, sum.denied, sum.cancelled)
	}
}

// At one rate and without cancels, calls that are acted on at their slots never exceed
// limit + rate x (t + one unit of the reply's time) in any length of time t. No caller is
// told to wait longer than it would. Plain callers beside them change nothing.
func TestThrottle_slotsNeverExceedTheRate(t *testing.T) {
	t.Run("one limit", func(t *testing.T) { eachReserved(t, 80, false, false) })
	t.Run("several limits", func(t *testing.T) { eachReserved(t, 80, false, true) })
}

// Cancels of slots in the future add at most 2 x rate x maxwait.
func TestThrottle_cancelledSlots(t *testing.T) {
	t.Run("one limit", func(t *testing.T) { eachReserved(t, 80, true, false) })
	t.Run("several limits", func(t *testing.T) { eachReserved(t, 80, true, true) })
}

// Usage at a changed rate may be far longer than a slot may be away: the wait saturates.
func TestThrottle_reserveSaturates(t *testing.T) {
	const most = funnel.MaxPeriod
	for _, quantity := range []int64{-1, 0, 1, 2} {
		for _, tat := range []funnel.Nanos{origin + most, origin + 3600e9, lastNow, 1<<63 - 1} {
			for _, old := range []funnel.Rate{{1, 1}, {1, funnel.MaxLimit - 1}, {3, 2}, {3600e9, 1}} {
				for _, maxWait := range []funnel.Nanos{0, 1, most - 1, most} {
					for _, rate := range []funnel.Rate{{most, 1}, {most, 2}, {most - 1, 3}, {1e9, 1}} {
						p := funnel.ThrottleParams{Limit: 1, Rate: rate, Quantity: quantity, Reserve: true, MaxWait: maxWait}
						for p.Limit = 1; p.Limit <= rate.Count; p.Limit++ {
							limiterOf(funnel.ThrottleState{TAT: tat, Rate: old}).call(t, origin, p)
						}
					}
				}
			}
		}
	}
}

// A slot after which all would have drained at the last instant of Nanos can be given, one after
// it cannot.
func TestThrottle_lastSlot(t *testing.T) {
	const last = 1<<63 - 1
	for _, c := range []struct {
		tat     funnel.Nanos
		frac    int64
		tooMuch bool
	}{
		{last - 3e9 - 1, 0, false},
		{last - 3e9, 0, false},
		{last - 3e9, 1, true},
		{last - 3e9 + 1, 0, true},
	} {
		s := funnel.ThrottleState{TAT: c.tat, Frac: c.frac, Rate: funnel.Rate{Period: 3e9 - 1, Count: 2}}
		p := funnel.ThrottleParams{Limit: 3, Rate: s.Rate, Quantity: 2, Reserve: true, MaxWait: funnel.MaxPeriod}
		c.tat++ // two units take 3 s - 1 ns
		s.TAT = c.tat
		l := limiterOf(s)
		if v := l.call(t, last-funnel.MaxPeriod, p); v.TooMuch != c.tooMuch || v.Limited || c.tooMuch && l.state != s {
			t.Errorf("%+v: %+v", s, v)
		}
	}
}

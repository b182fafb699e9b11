package funnel_test

// No transcript holds what is true of random calls in any order, or of instants between two microseconds.

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"gothrottle/funnel"
)

// edges are first instants of walks: the epoch, the last instant at which no admitted unit is
// cut off, 2^53 us, and a year before the last instant.
var edges = []funnel.Nanos{
	1, lastNow - 24*3600e9, lastNow, 1 << 53 * funnel.Microsecond, math.MaxInt64 - 365*24*3600e9,
}

// Whatever the calls, their order and the state before them, every verdict and every state is the exact model's.
func TestThrottle_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachWalk(t, 1000, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		if w.IntN(8) == 0 {
			l = limiterOf(funnel.ThrottleState{TAT: w.now + logUniform[funnel.Nanos](w.Rand, 1<<60)})
			seen["adopted"]++
		}
		if w.IntN(4) == 0 {
			w.now = edges[w.IntN(len(edges))]
		}
		for range 60 {
			w.change(25)
			w.wait()
			if w.IntN(50) == 0 { // the clock is set back
				w.now = max(w.now-logUniform[funnel.Nanos](w.Rand, 1<<40), 1)
			}
			p, before := w.anyCall(), l.state
			v := l.call(t, w.now, p)
			w.last = v
			changed := !before.Void(w.now) && before.Rate.Count != 0 && before.Rate != p.Rate.Reduced()
			seen.count("partial grant", partial(p.Quantity, v))
			seen.count("debt", p.Force && v.Granted > 0 && v.ResetAfter > p.Rate.Drain(p.Limit))
			seen.count("debt that is too much", p.Force && v.TooMuch)
			seen.count("slot to wait for", v.Wait > 0)
			seen.count("no slot", p.Reserve && v.Limited && v.RetryAfter > 0)
			seen.count("lockout that begins", p.Lockout > 0 && before.Locked <= w.now && l.state.Locked > w.now)
			seen.count("call in a lockout", v.Limited && before.Locked > w.now)
			seen.count("carried by a denial", changed && v.Limited && v.Change == funnel.Store)
			seen.count("too long to carry", changed && v.Limited && v.Change == funnel.Keep && p.Quantity > 0)
			seen.count("refund", v.Granted < 0)
			seen.count("wait", v.RetryAfter > 0)
		}
	})
	seen.atLeast(t, 50, "adopted", "debt that is too much")
	seen.atLeast(t, 200, "partial grant", "debt", "slot to wait for", "no slot", "lockout that begins",
		"call in a lockout", "carried by a denial", "too long to carry")
	seen.atLeast(t, 2000, "refund", "wait")
}

// action is units that a caller acts on. A caller with a slot acts when it has waited as long as the verdict says.
type action struct {
	drained *big.Rat // how many units could have drained until then, since the first call
	units   int64
	limit   *big.Rat     // how many units may be acted on at once
	until   funnel.Nanos // a slot may be cancelled before that instant; 0: there is no slot
}

// withinRate checks that in any length of time t no more than limit + t x rate units are acted on.
func withinRate(t *testing.T, actions []action) {
	t.Helper()
	slices.SortStableFunc(actions, func(a, b action) int { return a.drained.Cmp(b.drained) })
	sum, low := new(big.Rat), (*big.Rat)(nil)
	for _, a := range actions {
		if start := new(big.Rat).Sub(sum, a.drained); low == nil || start.Cmp(low) < 0 {
			low = start
		}
		sum.Add(sum, whole(a.units))
		over := new(big.Rat).Sub(sum, a.drained)
		if over.Sub(over, low).Sub(over, a.limit); over.Sign() > 0 {
			t.Fatalf("%v units too many: %+v", over, a)
		}
	}
}

// actors is a walk of callers that act on what they get.
type actors struct {
	*walk
	*limiter
	limit   int64        // the largest of all callers
	unit    funnel.Nanos // waits are rounded up to this
	slots   bool         // some callers say RESERVE
	drained *big.Rat
	actions []action
}

// pass lets time pass, in which units drain at the rate of the state.
func (a *actors) pass() {
	before := a.now
	if a.wait(); a.state.Rate.Count > 0 {
		drained := new(big.Rat).Mul(whole(a.now-before), perNano(a.state.Rate))
		a.drained = drained.Add(drained, a.drained)
	}
}

func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

// act makes a call and notes what its caller acts on, and when.
func (a *actors) act(t *testing.T) {
	t.Helper()
	p := a.walk.call()
	p.Quantity = max(p.Quantity, 0)
	if a.slots && !p.UpTo && a.IntN(4) > 0 {
		longest := 10 * p.Rate.Drain(a.limit)
		if p.Reserve, p.MaxWait = true, longest/a.unit*a.unit; a.IntN(2) == 0 {
			p.MaxWait = min(a.length(), longest) / a.unit * a.unit
		}
	}
	v := a.limiter.call(t, a.now, p)
	if a.last = v; v.Granted <= 0 {
		return
	}
	wait := (v.Wait + a.unit - 1) / a.unit * a.unit
	if wait > p.MaxWait {
		t.Fatalf("%+v: %+v", p, v)
	}
	made := action{new(big.Rat).Mul(whole(wait), perNano(p.Rate)), v.Granted, whole(p.Limit), 0}
	made.drained.Add(made.drained, a.drained)
	if a.slots { // a caller with a larger limit may act earlier than one that came before it
		made.limit, made.until = new(big.Rat).Mul(whole(a.unit), perNano(p.Rate)), a.now+v.Wait
		made.limit.Add(made.limit, whole(a.limit))
	}
	a.actions = append(a.actions, made)
}

// cancel gives back the units of one slot, at random, that lies in the future.
func (a *actors) cancel(t *testing.T) {
	t.Helper()
	i := slices.IndexFunc(a.actions, func(made action) bool { return made.until > a.now && a.IntN(3) == 0 })
	if i < 0 {
		return
	}
	p := a.p
	p.Quantity, p.Reserve, p.UpTo = -a.actions[i].units, true, false
	a.limiter.call(t, a.now, p)
	a.actions = slices.Delete(a.actions, i, i+1)
}

// In any length of time t at most limit + t x rate units are acted on. While parameters change, that is the last call's limit
// and what could drain. With RESERVE, at one rate, callers wait for their slots in whole units of time; cancelled slots add at
// most 2 x rate x maxwait.
func TestThrottle_neverAdmitsMore(t *testing.T) {
	for _, c := range []struct {
		name          string
		changes       int
		slots, limits bool
		cancels       bool
	}{
		{"one rate", math.MaxInt, false, false, false},
		{"changing", 20, false, false, false},
		{"slots", math.MaxInt, true, false, false},
		{"slots at several limits", math.MaxInt, true, true, false},
		{"cancelled slots", math.MaxInt, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			admissions := 0
			eachWalk(t, 120, func(t *testing.T, w *walk) {
				for c.slots && w.p.Rate.Drain(w.p.Limit) > funnel.MaxPeriod/100 {
					w.newRate()
				}
				a := &actors{walk: w, limiter: limiterOf(funnel.ThrottleState{}), limit: w.p.Limit, slots: c.slots, drained: new(big.Rat)}
				a.unit = []funnel.Nanos{1, funnel.Millisecond, funnel.Second}[w.IntN(3)]
				for range 120 {
					if w.change(c.changes); c.limits {
						w.p.Limit = max(a.limit>>w.IntN(5), 1)
					}
					if a.pass(); w.now > lastNow-funnel.MaxPeriod {
						break // usage past the last instant is cut
					}
					if a.act(t); c.cancels && w.IntN(2) == 0 {
						a.cancel(t)
					}
				}
				if admissions += len(a.actions); c.cancels {
					more := new(big.Rat).Mul(whole(20*w.p.Rate.Drain(a.limit)), perNano(w.p.Rate))
					for i := range a.actions {
						a.actions[i].limit.Add(a.actions[i].limit, more)
					}
				}
				withinRate(t, a.actions)
			})
			if admissions < 1500 && !t.Failed() {
				t.Errorf("%d admissions prove nothing", admissions)
			}
		})
	}
}

// options returns a call without an option and with each of them.
func options(p funnel.ThrottleParams, length funnel.Nanos) []funnel.ThrottleParams {
	all := []funnel.ThrottleParams{p, p, p, p, p}
	all[1].UpTo, all[2].Force, all[3].Reserve, all[3].MaxWait, all[4].Lockout = true, true, true, length, length
	return all
}

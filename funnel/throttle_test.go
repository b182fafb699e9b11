package funnel_test

// No transcript holds what is true of random calls in any order, or of instants between two microseconds.

import (
	"cmp"
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
		for range 80 {
			w.change(25)
			w.wait()
			if w.IntN(50) == 0 { // the clock is set back
				w.now = max(w.now-logUniform[funnel.Nanos](w.Rand, 1<<40), 1)
			}
			p, before := w.anyCall(), l.state
			l.waits(t, w.now, p, 1+w.Int64N(p.Limit+1), w.IntN(2) == 0)
			v := l.call(t, w.now, p)
			w.last = v
			changed := before.Drain(w.now) > 0 && before.Rate.Count != 0 && before.Rate != p.Rate.Reduced()
			seen.count("partial grant", partial(p.Quantity, v))
			seen.count("debt", p.Force && v.Granted > 0 && v.ResetAfter > p.Rate.Drain(p.Limit))
			seen.count("debt that is too much", p.Force && v.TooMuch)
			seen.count("slot to wait for", v.Wait > 0)
			seen.count("no slot", p.Reserve && v.Limited && v.RetryAfter > 0)
			seen.count("lockout that begins", p.Lockout > 0 && before.Locked <= w.now && l.state.Locked > w.now)
			seen.count("raised", p.Raise && v.Granted > 0)
			seen.count("carried by a peek", changed && p.Settle && v.Change == funnel.Store)
			seen.count("call in a lockout", v.Limited && before.Locked > w.now)
			seen.count("carried by a denial", changed && v.Limited && v.Change == funnel.Store)
			seen.count("too long to carry", changed && v.Limited && v.Change == funnel.Keep && p.Quantity > 0)
			seen.count("refund", v.Granted < 0)
			seen.count("wait", v.RetryAfter > 0)
		}
	})
	seen.atLeast(t, 50, "adopted", "debt that is too much", "carried by a peek")
	seen.atLeast(t, 200, "raised", "partial grant", "debt", "slot to wait for", "no slot", "lockout that begins",
		"call in a lockout", "carried by a denial", "too long to carry")
	seen.atLeast(t, 2000, "refund", "wait")
}

// action is units that a caller acts on.
type action struct {
	at    funnel.Nanos // when the caller has waited as long as the verdict says, rounded up
	units int64
	until funnel.Nanos // the slot may be cancelled before that instant
}

// withinRate checks that in any length of time t no more than limit + t x rate units are acted on.
func withinRate(t *testing.T, actions []action, limit, rate *big.Rat) {
	t.Helper()
	slices.SortStableFunc(actions, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	level, last := new(big.Rat), funnel.Nanos(0)
	for _, a := range actions {
		drained := new(big.Rat).Mul(whole(a.at-last), rate)
		if last = a.at; level.Cmp(drained) < 0 {
			level.Set(drained)
		}
		level.Sub(level, drained).Add(level, whole(a.units))
		if level.Cmp(limit) > 0 {
			t.Fatalf("%v units in use, at most %v: %+v", level, limit, a)
		}
	}
}

// perNano returns how many units drain in one ns.
func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

// cancel gives back the units of one slot, at random, that lies in the future.
func (w *walk) cancel(t *testing.T, l *limiter, actions []action) []action {
	t.Helper()
	i := slices.IndexFunc(actions, func(made action) bool { return made.until > w.now && w.IntN(3) == 0 })
	if i < 0 {
		return actions
	}
	p := w.p
	p.Quantity, p.Reserve, p.UpTo = -actions[i].units, true, false
	l.call(t, w.now, p)
	return slices.Delete(actions, i, i+1)
}

// With RESERVE, callers act at their slots, which they wait for in whole units of time, and others at once. In any length of
// time t they act on at most limit + (t + unit) x rate units, with the largest of their limits. Cancelled slots add at most
// 2 x rate x maxwait. (Without RESERVE this is what a bucket like the exact model does.)
func TestThrottle_slotsKeepTheRate(t *testing.T) {
	for _, c := range []struct {
		name            string
		limits, cancels bool
	}{{"one limit", false, false}, {"several limits", true, false}, {"cancelled slots", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			admissions := 0
			eachWalk(t, 120, func(t *testing.T, w *walk) {
				for w.p.Rate.Drain(w.p.Limit) > funnel.MaxPeriod/100 {
					w.newRate()
				}
				limit, rate, full := w.p.Limit, perNano(w.p.Rate), w.p.Rate.Drain(w.p.Limit)
				unit := []funnel.Nanos{1, funnel.Millisecond, funnel.Second}[w.IntN(3)]
				l, actions := limiterOf(funnel.ThrottleState{}), []action{}
				for range 120 {
					if c.limits {
						w.p.Limit = max(limit>>w.IntN(5), 1)
					}
					if w.wait(); w.now > lastNow-funnel.MaxPeriod {
						break // usage past the last instant is cut
					}
					p := w.call()
					if p.Quantity = max(p.Quantity, 0); !p.UpTo && w.IntN(4) > 0 {
						longest := []funnel.Nanos{10 * full, min(w.length(), 10*full)}[w.IntN(2)]
						p.Reserve, p.MaxWait = true, longest/unit*unit
					}
					w.last = l.call(t, w.now, p)
					if wait := (w.last.Wait + unit - 1) / unit * unit; wait > p.MaxWait {
						t.Fatalf("%+v: %+v", p, w.last)
					} else if w.last.Granted > 0 {
						actions = append(actions, action{w.now + wait, w.last.Granted, w.now + w.last.Wait})
					}
					if c.cancels && w.IntN(2) == 0 {
						actions = w.cancel(t, l, actions)
					}
				}
				admissions += len(actions)
				if c.cancels {
					unit += 20 * full
				}
				most := new(big.Rat).Mul(whole(unit), rate)
				withinRate(t, actions, most.Add(most, whole(limit)), rate)
			})
			if admissions < sample(1500) && !t.Failed() {
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

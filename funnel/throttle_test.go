package funnel_test

// No transcript holds what is true of random calls in any order, or of instants between two microseconds.

import (
	"math"
	"math/big"
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

// perNano returns how many units drain in one ns.
func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

// options returns a call without an option and with each of them.
func options(p funnel.ThrottleParams, length funnel.Nanos) []funnel.ThrottleParams {
	all := []funnel.ThrottleParams{p, p, p, p, p}
	all[1].UpTo, all[2].Force, all[3].Reserve, all[3].MaxWait, all[4].Lockout = true, true, true, length, length
	return all
}

package funnel_test

import (
	"math/big"
	"testing"

	"gothrottle/funnel"
)

// Debt drains at the rate. While a limiter is in debt nothing remains, and a plain call waits
// until it fits.
func TestThrottle_debtDrainsAtTheRate(t *testing.T) {
	debts, denials := 0, 0
	eachWalk(t, 300, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		perNano := big.NewRat(w.p.Rate.Count, int64(w.p.Rate.Period))
		used := new(big.Rat) // the units in use at the instant at
		at, limit := w.now, whole(w.p.Limit)
		for range 40 {
			if w.wait(); w.now > lastNow {
				break
			}
			used.Sub(used, new(big.Rat).Mul(whole(w.now-at), perNano))
			if used.Sign() < 0 {
				used.SetInt64(0)
			}
			at = w.now
			p := w.p
			p.Force, p.Quantity = w.IntN(2) == 0, max(randomQuantity(w.Rand, p.Limit, w.last), 0)
			v := l.call(t, w.now, p)
			if w.last = v; v.TooMuch {
				continue
			}
			used.Add(used, whole(v.Granted))
			drained := new(big.Rat).Mul(whole(v.ResetAfter), perNano)
			early := new(big.Rat).Mul(whole(v.ResetAfter-1), perNano)
			if drained.Cmp(used) < 0 || used.Sign() > 0 && early.Cmp(used) >= 0 {
				t.Fatalf("%+v: %v in use, and empty after %d ns", p, used, v.ResetAfter)
			}
			if used.Cmp(limit) > 0 {
				debts++
				if v.Remaining != 0 {
					t.Fatalf("%+v: %v in use, and %d remain", p, used, v.Remaining)
				}
			}
			if l.retried(t, w.now, p, v) {
				denials++
			}
		}
	})
	if !t.Failed() && min(debts, denials) < 1000 {
		t.Errorf("%d debts and %d denials prove nothing", debts, denials)
	}
}

// An estimate that is settled later leaves what the right quantity would have left, if both fit
// and the estimate has not drained before.
func TestThrottle_settledEstimate(t *testing.T) {
	more, less := 0, 0
	eachWalk(t, 400, func(t *testing.T, w *walk) {
		before := limiterOf(funnel.ThrottleState{})
		for range 40 {
			w.change(20)
			if w.wait(); w.now > lastNow-funnel.MaxPeriod {
				break
			}
			estimated, right := *limiterOf(before.state), *limiterOf(before.state)
			p, actual := w.p, w.p
			p.Quantity, actual.Quantity = logUniform(w.Rand, p.Limit), logUniform(w.Rand, p.Limit)
			w.last = estimated.call(t, w.now, p)
			if w.last.Limited || right.call(t, w.now, actual).Limited {
				continue
			}
			later := w.now + funnel.Nanos(w.Int64N(int64(w.last.ResetAfter)))
			p.Quantity, p.Force = actual.Quantity-p.Quantity, true
			if p.Quantity == 0 {
				continue
			}
			v := estimated.call(t, later, p)
			if s := right.state; estimated.state.Void(later) && s.Void(later) {
				s = funnel.ThrottleState{}
			} else if estimated.state != s || v.Granted != p.Quantity {
				t.Fatalf("%+v settled by %d: %+v, want %+v", actual, p.Quantity, estimated.state, s)
			}
			if p.Quantity > 0 {
				more++
			} else {
				less++
			}
			w.now, before = later, &estimated
		}
	})
	if !t.Failed() && min(more, less) < 1000 {
		t.Errorf("%d estimates too low and %d too high prove nothing", more, less)
	}
}

// The largest debt drains in exactly MaxPeriod, and one more unit is too much.
func TestThrottle_largestDebt(t *testing.T) {
	const most = funnel.MaxPeriod
	tried := 0
	eachWalk(t, 600, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		p := w.p
		perNano := big.NewRat(p.Rate.Count, int64(p.Rate.Period))
		if new(big.Rat).Mul(whole(most), perNano).Cmp(whole(int64(100*funnel.MaxLimit))) > 0 {
			return // the largest debt takes too many calls
		}
		p.Force, p.Quantity = true, logUniform(w.Rand, p.Limit)
		l.call(t, w.now, p)
		w.now += funnel.Nanos(w.Int64N(int64(p.Rate.Drain(1))))
		p.Quantity = 0
		for left := roomBefore(l.state, w.now, perNano); left > 0; left -= p.Quantity {
			p.Quantity = min(left, funnel.MaxLimit+1)
			v := l.call(t, w.now, p)
			if v.TooMuch || v.Granted != p.Quantity || v.ResetAfter > most {
				t.Fatalf("%+v with room for %d: %+v", p, left, v)
			}
		}
		p.Quantity = 1
		before := l.state
		if v := l.call(t, w.now, p); !v.TooMuch || l.state != before {
			t.Fatalf("one more than the largest debt: %+v", v)
		}
		p.Quantity = 0
		if v := l.call(t, w.now, p); v.TooMuch || v.Limited || v.RetryAfter != 0 || v.Remaining != 0 && p.Rate.Drain(p.Limit) < most {
			t.Fatalf("a peek with the largest debt: %+v", v)
		}
		p.Quantity = -1
		if v := l.call(t, w.now, p); v.Granted != -1 {
			t.Fatalf("a refund with the largest debt: %+v", v)
		}
		tried++
	})
	if !t.Failed() && tried < 200 {
		t.Errorf("%d debts prove nothing", tried)
	}
}

// The bound of a debt is exact to the fraction of a nanosecond.
func TestThrottle_largestDebtIsExact(t *testing.T) {
	rate := funnel.Rate{Period: 2, Count: 3} // a unit drains in 2/3 ns
	for _, c := range []struct {
		frac    int64 // 1/3 ns in use beside 1 ns less than MaxPeriod
		tooMuch bool
	}{{0, false}, {1, false}, {2, true}} {
		l := limiterOf(funnel.ThrottleState{TAT: origin + funnel.MaxPeriod - 1, Frac: c.frac, Rate: rate})
		p := funnel.ThrottleParams{Limit: 1, Rate: rate, Quantity: 1, Force: true}
		if v := l.call(t, origin, p); v.TooMuch != c.tooMuch {
			t.Errorf("%d/3 ns: %+v", c.frac, v)
		}
	}
}

// roomBefore returns how many units fit until all drain in MaxPeriod.
func roomBefore(s funnel.ThrottleState, now funnel.Nanos, perNano *big.Rat) int64 {
	left := whole(funnel.MaxPeriod)
	if !s.Void(now) {
		left.Sub(left, whole(s.TAT-now)).Sub(left, big.NewRat(s.Frac, s.Rate.Count))
	}
	left.Mul(left, perNano)
	return new(big.Int).Div(left.Num(), left.Denom()).Int64()
}

package funnel_test

// No transcript holds what is true of raises in any order, and of any pause.

import (
	"math/big"
	"testing"

	"gothrottle/funnel"
)

// Raises at one instant leave what the largest one would, in any order, and repeats add nothing.
func TestRaise_ordersAndRepeats(t *testing.T) {
	eachWalk(t, 2000, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		p := w.p
		p.Quantity = min(logUniform(w.Rand, 2*p.Limit), funnel.MaxLimit)
		p.Force = true
		if v := l.call(t, w.now, p); v.TooMuch {
			t.Skip()
		}
		w.now += funnel.Nanos(w.Int64N(int64(p.Rate.Drain(p.Quantity))))
		p.Force, p.Raise = false, true
		largest := int64(0)
		var alone funnel.ThrottleState // after the largest raise alone
		before := l.state
		for range 20 {
			p.Quantity = w.Int64N(min(2*p.Limit, funnel.MaxLimit) + 1)
			next, v := funnel.Throttle(w.now, before, &p)
			if v.TooMuch {
				continue
			}
			if p.Quantity > largest {
				largest, alone = p.Quantity, next
			}
			l.call(t, w.now, p)
			if l.call(t, w.now, p).Granted != 0 {
				t.Fatalf("%+v adds units twice", p)
			}
		}
		if largest > 0 && l.state != alone {
			t.Fatalf("20 raises of %+v leave %+v, want %+v", before, l.state, alone)
		}
	})
}

// After a 429 with Retry-After t, n = limit - 1 + ceil(t x count / period): a call for q units is admitted q - 1 intervals
// after t or later, by less than one interval.
func TestRaise_pause(t *testing.T) {
	eachWalk(t, 2000, func(t *testing.T, w *walk) {
		p := w.p
		l := limiterOf(funnel.ThrottleState{})
		p.Quantity = w.Int64N(p.Limit + 1)
		l.call(t, w.now, p)
		pause := logUniform(w.Rand, 2*p.Rate.Drain(p.Limit))
		interval := big.NewRat(int64(p.Rate.Period), p.Rate.Count)
		p.Raise, p.Quantity = true, p.Limit-1+ceil(new(big.Rat).Quo(whole(pause), interval))
		if p.Quantity > funnel.MaxLimit || !fits(p.Rate, p.Quantity) {
			t.Skip()
		}
		l.call(t, w.now, p)
		p.Raise, p.Quantity = false, 1+w.Int64N(p.Limit)
		early := new(big.Rat).Add(whole(pause), new(big.Rat).Mul(whole(p.Quantity-1), interval))
		late := new(big.Rat).Add(early, interval)
		if v := l.call(t, w.now, p); whole(v.RetryAfter).Cmp(early) < 0 || whole(v.RetryAfter-1).Cmp(late) >= 0 {
			t.Fatalf("%+v waits %d ns, want %v to %v", p, v.RetryAfter, early, late)
		}
	})
}

package funnel_test

import (
	"math"
	"math/big"
	"testing"

	"gothrottle/funnel"
)

// In any length of time t no more than limit + t x rate units are admitted.
func TestThrottle_neverAdmitsMore(t *testing.T) {
	t.Run("constant", func(t *testing.T) { neverAdmitsMore(t, math.MaxInt) })
	// With changing parameters: the limit of the last call + what could drain in between.
	t.Run("changing", func(t *testing.T) { neverAdmitsMore(t, 20) })
}

func neverAdmitsMore(t *testing.T, changes int) {
	admissions, denials := 0, 0
	eachWalk(t, 200, func(t *testing.T, w *walk) {
		var (
			s      funnel.ThrottleState
			sum    = new(big.Rat) // admitted so far
			leak   = new(big.Rat) // what could have drained so far: t x rate
			starts []*big.Rat     // of every admission: sum before it - leak
		)
		for range 150 {
			w.change(changes)
			before := w.now
			w.wait()
			p := w.call()
			p.Quantity = max(p.Quantity, 0)
			if s.Rate.Count > 0 {
				drained := new(big.Rat).Mul(whole(w.now-before), big.NewRat(s.Rate.Count, int64(s.Rate.Period)))
				leak = new(big.Rat).Add(leak, drained)
			}
			var next funnel.ThrottleState
			next, w.last = funnel.Throttle(w.now, s, &p)
			s = apply(s, next, w.last)
			if s.TAT == math.MaxInt64 {
				break // usage past the last instant is cut
			}
			if w.last.Limited {
				denials++
			}
			if w.last.Granted == 0 {
				continue
			}
			admissions++
			starts = append(starts, new(big.Rat).Sub(sum, leak))
			sum = new(big.Rat).Add(sum, whole(w.last.Granted))
			// sum - sum[i] <= limit + leak - leak[i], for every i up to this one.
			end := new(big.Rat).Sub(sum, leak)
			end.Sub(end, whole(p.Limit))
			for i, start := range starts {
				if end.Cmp(start) > 0 {
					t.Fatalf("admissions %d to %d: %s units too many", i, len(starts)-1, end.Sub(end, start))
				}
			}
		}
	})
	if !t.Failed() && min(admissions, denials) < 2000 {
		t.Errorf("%d admissions and %d denials prove nothing", admissions, denials)
	}
}

// At one instant exactly limit units are admitted, and remaining leaves no gap.
func TestThrottle_exactlyLimitAtOneInstant(t *testing.T) {
	eachWalk(t, 1000, func(t *testing.T, w *walk) {
		var s funnel.ThrottleState
		p := w.p
		for left := p.Limit; left > 0; {
			p.Quantity = 1
			if p.Limit > 100 {
				p.Quantity = logUniform(w.Rand, left)
			}
			next, v := funnel.Throttle(w.now, s, &p)
			left -= p.Quantity
			if v.Limited || v.Remaining != left {
				t.Fatalf("%+v with %d left: %+v", p, left+p.Quantity, v)
			}
			s = next
		}
		p.Quantity = 1
		if _, v := funnel.Throttle(w.now, s, &p); !v.Limited {
			t.Fatalf("%+v: one more is admitted: %+v", p, v)
		}
	})
}

// A call sent retry_after later is admitted, one sent 1 ns sooner is not. After a partial
// grant this holds for the wait for one more unit.
func TestThrottle_retryAfterIsTight(t *testing.T) {
	tried, partials, slots, locked := 0, 0, 0, 0
	eachWalk(t, 400, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		for range 60 {
			w.change(20)
			w.wait()
			p := w.anyCall()
			w.last = l.call(t, w.now, p)
			if l.retried(t, w.now, p, w.last) {
				tried++
				if partial(p.Quantity, w.last) {
					partials++
				}
				if p.Reserve {
					slots++
				}
				if l.state.Locked > w.now {
					locked++
				}
			}
		}
	})
	if !t.Failed() && (tried < 2000 || min(partials, slots, locked) < 200) {
		t.Errorf("%d waits, of them %d after partial grants, %d for slots and %d locked out, prove nothing",
			tried, partials, slots, locked)
	}
}

// A denied call and a peek leave no trace, unless a denied call carries usage over to a rate
// at which it can be stored.
func TestThrottle_deniedLeavesState(t *testing.T) {
	kept, carried := 0, 0
	eachWalk(t, 400, func(t *testing.T, w *walk) {
		var s funnel.ThrottleState
		for range 60 {
			w.change(10)
			w.wait()
			p := w.call()
			p.Quantity = max(p.Quantity, 0)
			next, v := funnel.Throttle(w.now, s, &p)
			w.last = v
			changed := s.Rate.Count > 0 && s.Rate != p.Rate.Reduced() && !s.Void(w.now) && !tooLong(w.now, s, p.Rate)
			asks := p.Quantity > 0 && (p.Quantity <= p.Limit || p.UpTo)
			switch {
			case !asks || v.Limited && !changed:
				kept++
				if v.Change != funnel.Keep {
					t.Fatalf("%+v changed %+v: %+v", p, s, v)
				}
			case v.Limited:
				carried++
				if v.Change != funnel.Store || next.Rate != p.Rate.Reduced() {
					t.Fatalf("%+v on %+v left %+v: %+v", p, s, next, v)
				}
			}
			s = apply(s, next, v)
		}
	})
	if !t.Failed() && (kept < 2000 || carried < 200) {
		t.Errorf("%d kept and %d carried prove nothing", kept, carried)
	}
}

package funnel

import (
	"math"
	"math/big"
	"testing"
)

// In any length of time t no more than limit + t x rate units are admitted.
func TestThrottle_neverAdmitsMore(t *testing.T) {
	t.Run("constant", func(t *testing.T) { neverAdmitsMore(t, math.MaxInt) })
	// Where they change: the limit of the last call + what could leak in between.
	t.Run("changing", func(t *testing.T) { neverAdmitsMore(t, 20) })
}

func neverAdmitsMore(t *testing.T, changes int) {
	admissions, denials := 0, 0
	eachSeed(t, 200, func(t *testing.T, w *walk) {
		var (
			s      State
			sum    = new(big.Rat) // admitted so far
			leak   = new(big.Rat) // what could have leaked so far: t x rate
			starts []*big.Rat     // of every admission: sum before it - leak
		)
		for range 150 {
			w.change(changes)
			before := w.now
			w.wait()
			quantity := max(w.quantity(), 0)
			if s.Rate.Count > 0 {
				leak = add(leak, mul(whole(w.now-before), big.NewRat(s.Rate.Count, s.Rate.Period)))
			}
			var next State
			next, w.last = Throttle(w.now, s, w.limit, w.rate, quantity)
			s = apply(s, next, w.last)
			if s.TAT == math.MaxInt64 {
				break // usage past the last instant is cut
			}
			if w.last.Limited {
				denials++
			}
			if w.last.Change != Store || w.last.Limited {
				continue
			}
			admissions++
			starts = append(starts, sub(sum, leak))
			sum = add(sum, whole(quantity))
			// sum - sum[i] <= limit + leak - leak[i], for every i up to this one.
			end := sub(sub(sum, leak), whole(w.limit))
			for i, start := range starts {
				if end.Cmp(start) > 0 {
					t.Fatalf("admissions %d to %d: %s units too many", i, len(starts)-1, sub(end, start))
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
	eachSeed(t, 1000, func(t *testing.T, w *walk) {
		var s State
		one := w.limit <= 100
		for left := w.limit; left > 0; {
			quantity := int64(1)
			if !one {
				quantity = w.logUniform(left)
			}
			next, v := Throttle(w.now, s, w.limit, w.rate, quantity)
			left -= quantity
			if v.Limited || v.Remaining != left {
				t.Fatalf("%d of %d at %v with %d left: %+v", quantity, w.limit, w.rate, left+quantity, v)
			}
			s = next
		}
		if _, v := Throttle(w.now, s, w.limit, w.rate, 1); !v.Limited {
			t.Fatalf("%d at %v: one more is admitted: %+v", w.limit, w.rate, v)
		}
	})
}

// A call sent retry_after later is admitted, one sent 1 ns sooner is not.
func TestThrottle_retryAfterIsTight(t *testing.T) {
	tried := 0
	eachSeed(t, 400, func(t *testing.T, w *walk) {
		var s State
		for range 60 {
			w.change(20)
			w.wait()
			quantity := w.quantity()
			next, v := Throttle(w.now, s, w.limit, w.rate, quantity)
			settled := s.Rate.Count == 0 || s.Rate == w.rate.Reduced() || v.Change == Store
			s, w.last = apply(s, next, v), v
			if v.RetryAfter == Never {
				if v.Limited && (quantity <= w.limit || v.Change != Keep) {
					t.Fatalf("%d of %d is limited for ever: %+v", quantity, w.limit, v)
				}
				continue
			}
			if !v.Limited || v.RetryAfter <= 0 {
				t.Fatalf("retry_after without need: %+v", v)
			}
			// A denied peek at another rate stores nothing, so it promises nothing.
			if !settled || v.RetryAfter > math.MaxInt64-w.now {
				continue
			}
			tried++
			at := w.now + v.RetryAfter
			if _, v := Throttle(at, s, w.limit, w.rate, quantity); v.Limited {
				t.Fatalf("Throttle(%d, %+v, %d, %v, %d): waited, and %+v", at, s, w.limit, w.rate, quantity, v)
			}
			if _, v := Throttle(at-1, s, w.limit, w.rate, quantity); !v.Limited {
				t.Fatalf("Throttle(%d, %+v, %d, %v, %d): 1 ns early, and %+v", at-1, s, w.limit, w.rate, quantity, v)
			}
		}
	})
	if !t.Failed() && tried < 2000 {
		t.Errorf("%d denied calls prove nothing", tried)
	}
}

// A denied call and a peek leave no trace, unless a denied one carries usage over.
func TestThrottle_deniedLeavesState(t *testing.T) {
	kept, carried := 0, 0
	eachSeed(t, 400, func(t *testing.T, w *walk) {
		var s State
		for range 60 {
			w.change(10)
			w.wait()
			quantity := max(w.quantity(), 0)
			next, v := Throttle(w.now, s, w.limit, w.rate, quantity)
			w.last = v
			changed := s.Rate.Count > 0 && s.Rate != w.rate.Reduced() && !s.Void(w.now)
			switch {
			case quantity == 0 || quantity > w.limit || v.Limited && !changed:
				kept++
				if v.Change != Keep {
					t.Fatalf("%d of %d at %v changed %+v: %+v", quantity, w.limit, w.rate, s, v)
				}
			case v.Limited:
				carried++
				if v.Change != Store || next.Rate != w.rate.Reduced() {
					t.Fatalf("%d of %d at %v left %+v: %+v", quantity, w.limit, w.rate, s, v)
				}
			}
			s = apply(s, next, v)
		}
	})
	if !t.Failed() && (kept < 2000 || carried < 200) {
		t.Errorf("%d kept and %d carried prove nothing", kept, carried)
	}
}

package funnel_test

// No transcript measures time.

import (
	"testing"

	"gothrottle/funnel"
)

// benchRate divides no second, so its states have a fraction.
var benchRate = funnel.Rate{Period: 60e9, Count: 7}

// benches are the paths that calls take most. Each has the verdict that it must return: a benchmark that takes another path
// than its name says fails. A state is in ns or us from origin on.
var benches = []struct {
	name  string
	call  func() funnel.Verdict
	limit bool // the verdict says that it is limited
	left  int64
}{
	{"Throttle/admitted", throttle(funnel.ThrottleState{TAT: origin + 8571428571, Frac: 3, Rate: benchRate}, benchRate, 1), false, 14},
	{"Throttle/denied", throttle(funnel.ThrottleState{TAT: origin + 137142857142, Frac: 6, Rate: benchRate}, benchRate, 1), true, 0},
	{"Throttle/dividing", throttle(funnel.ThrottleState{TAT: origin + 2e9, Rate: funnel.Rate{2e9, 1}}, funnel.Rate{60e9, 30}, 1), false, 14},
	{"Throttle/refund", throttle(funnel.ThrottleState{TAT: origin + 4e9, Rate: funnel.Rate{2e9, 1}}, funnel.Rate{60e9, 30}, -1), false, 15},
	{"Throttle/rate-change", throttle(funnel.ThrottleState{TAT: origin + 36e12, Rate: funnel.Rate{3600e9, 1}}, benchRate, 1), false, 5},
	{"Window/own", window(10, 120), false, 109},
	{"Window/shared", window(10, 1e6), false, 999989},
	{"Window/denied", window(10, 10), true, 0},
	{"Quota/admitted", quotaCall(4), false, 5},
	{"Quota/denied", quotaCall(10), true, 0},
	{"Lease/admitted", lease(9), false, 0},
	{"Lease/denied", lease(10), true, 0},
}

func throttle(s funnel.ThrottleState, rate funnel.Rate, quantity int64) func() funnel.Verdict {
	p := &funnel.ThrottleParams{Limit: 16, Rate: rate, Quantity: quantity}
	return func() funnel.Verdict {
		_, v := funnel.Throttle(origin, s, p)
		return v
	}
}

func window(used, limit int64) func() funnel.Verdict {
	e := funnel.WindowEntry{Time: originMicros - 1e6, Total: uint64(used), Weight: used}
	s, p := funnel.WindowState{Newest: e, Oldest: e}, funnel.WindowParams{Limit: limit, Period: 600e6, Quantity: 1}
	return func() funnel.Verdict {
		_, v := funnel.Window(originMicros, s, p)
		return v.Verdict
	}
}

func quotaCall(used int64) func() funnel.Verdict {
	s, p := funnel.QuotaState{used, originMicros + 1}, funnel.QuotaParams{Limit: 10, Period: 60e6, Quantity: 1}
	return func() funnel.Verdict {
		_, v := funnel.Quota(originMicros, s, p)
		return v
	}
}

func lease(used int64) func() funnel.Verdict {
	s, p := funnel.LeaseState{Used: used, Latest: originMicros + 1}, funnel.LeaseParams{Limit: 10, TTL: 60e6}
	return func() funnel.Verdict { return funnel.Lease(originMicros, s, p).Verdict }
}

func BenchmarkLimits(b *testing.B) {
	for _, c := range benches {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var v funnel.Verdict
			for b.Loop() {
				v = c.call()
			}
			if v.Limited != c.limit || v.Remaining != c.left {
				b.Errorf("took another path: %+v", v)
			}
		})
	}
}

// BenchmarkClock reads the clock while the wall clock runs forward, and while it is behind.
func BenchmarkClock(b *testing.B) {
	for name, step := range map[string]funnel.Micros{"following": 1, "behind": 0} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c, wall, mono := funnel.Clock{Last: originMicros}, originMicros+step-1, funnel.Micros(0)
			for b.Loop() {
				wall += step
				c.Now(wall, func() funnel.Micros { mono += 2; return mono })
			}
		})
	}
}

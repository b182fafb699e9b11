package funnel

import "testing"

// cases are the paths that a call can take, each with what it must answer: a
// benchmark that takes another path than its name says fails.
var cases = []struct {
	name     string
	state    State
	limit    int64
	rate     Rate
	quantity int64
	want     Verdict
}{
	{"admitted/dividing", State{}, 16, Rate{60e9, 30}, 1,
		Verdict{Remaining: 15, RetryAfter: Never, ResetAfter: 2e9, Granted: 1, Change: Store}},
	{"admitted/reduced", State{origin + 2e9, 0, Rate{2e9, 1}}, 16, Rate{2e9, 1}, 1,
		Verdict{Remaining: 14, RetryAfter: Never, ResetAfter: 4e9, Granted: 1, Change: Store}},
	{"admitted/fraction", State{origin + 8571428571, 3, Rate{60e9, 7}}, 16, Rate{60e9, 7}, 1,
		Verdict{Remaining: 14, RetryAfter: Never, ResetAfter: 17142857143, Granted: 1, Change: Store}},
	{"admitted/widest", State{origin + 1e18, 0, Rate{MaxPeriod - 1, MaxLimit}}, MaxLimit,
		Rate{MaxPeriod - 1, MaxLimit}, 1e11,
		Verdict{Remaining: 582902080162, RetryAfter: Never, ResetAfter: 1315360000000000000, Granted: 1e11, Change: Store}},
	{"denied/dividing", State{origin + 32e9, 0, Rate{2e9, 1}}, 16, Rate{60e9, 30}, 1,
		Verdict{Limited: true, RetryAfter: 2e9, ResetAfter: 32e9}},
	{"denied/fraction", State{origin + 137142857142, 6, Rate{60e9, 7}}, 16, Rate{60e9, 7}, 1,
		Verdict{Limited: true, RetryAfter: 8571428572, ResetAfter: 137142857143}},
	{"peek", State{origin + 2e9, 0, Rate{2e9, 1}}, 16, Rate{60e9, 30}, 0,
		Verdict{Remaining: 15, RetryAfter: Never, ResetAfter: 2e9}},
	{"refund", State{origin + 4e9, 0, Rate{2e9, 1}}, 16, Rate{60e9, 30}, -1,
		Verdict{Remaining: 15, RetryAfter: Never, ResetAfter: 2e9, Granted: -1, Change: Store}},
	{"rate-change", State{origin + 36e12, 0, Rate{3600e9, 1}}, 16, Rate{60e9, 7}, 1,
		Verdict{Remaining: 5, RetryAfter: Never, ResetAfter: 94285714286, Granted: 1, Change: Store}},
	{"adopted", State{TAT: origin + 2e9}, 16, Rate{60e9, 30}, 1,
		Verdict{Remaining: 14, RetryAfter: Never, ResetAfter: 4e9, Granted: 1, Change: Store}},
}

func BenchmarkThrottle(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var v Verdict
			for b.Loop() {
				_, v = Throttle(origin, c.state, c.limit, c.rate, c.quantity)
			}
			if v != c.want {
				b.Errorf("%+v, want %+v", v, c.want)
			}
		})
	}
}

func BenchmarkClock(b *testing.B) {
	mono := int64(0)
	monotonic := func() int64 { mono += 2; return mono }
	b.Run("following", func(b *testing.B) {
		b.ReportAllocs()
		var c Clock
		wall := int64(origin / 1000)
		for b.Loop() {
			wall++
			c.Now(wall, monotonic)
		}
	})
	b.Run("behind", func(b *testing.B) {
		b.ReportAllocs()
		var c Clock
		c.Now(origin/1000, monotonic)
		for b.Loop() {
			c.Now(0, monotonic)
		}
	})
}

func TestThrottle_allocatesNothing(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var v Verdict
			n := testing.AllocsPerRun(100, func() {
				_, v = Throttle(origin, c.state, c.limit, c.rate, c.quantity)
			})
			if n != 0 || v != c.want {
				t.Errorf("%v allocations, %+v, want none, %+v", n, v, c.want)
			}
		})
	}
}

func TestClock_allocatesNothing(t *testing.T) {
	var c Clock
	mono := int64(0)
	monotonic := func() int64 { mono += 2; return mono }
	for _, wall := range []int64{1000, 500} {
		if n := testing.AllocsPerRun(100, func() { c.Now(wall, monotonic) }); n != 0 {
			t.Errorf("at %d: %v allocations", wall, n)
		}
	}
}

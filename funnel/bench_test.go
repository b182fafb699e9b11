package funnel_test

import (
	"testing"

	"gothrottle/funnel"
)

// throttleCases are the paths that a call can take. Each has the verdict that it must return:
// a benchmark that takes another path than its name says fails.
var throttleCases = []struct {
	name   string
	state  funnel.ThrottleState
	params funnel.ThrottleParams
	want   funnel.Verdict
}{
	{"admitted/dividing", funnel.ThrottleState{},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: 1},
		funnel.Verdict{Remaining: 15, ResetAfter: 2e9, Granted: 1, Change: funnel.Store}},
	{"admitted/reduced", funnel.ThrottleState{TAT: origin + 2e9, Rate: funnel.Rate{2e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{2e9, 1}, Quantity: 1},
		funnel.Verdict{Remaining: 14, ResetAfter: 4e9, Granted: 1, Change: funnel.Store}},
	{"admitted/fraction", funnel.ThrottleState{TAT: origin + 8571428571, Frac: 3, Rate: funnel.Rate{60e9, 7}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 7}, Quantity: 1},
		funnel.Verdict{Remaining: 14, ResetAfter: 17142857143, Granted: 1, Change: funnel.Store}},
	{"admitted/widest", funnel.ThrottleState{TAT: origin + 1e18, Rate: funnel.Rate{funnel.MaxPeriod - 1, funnel.MaxLimit}},
		funnel.ThrottleParams{Limit: funnel.MaxLimit, Rate: funnel.Rate{funnel.MaxPeriod - 1, funnel.MaxLimit}, Quantity: 1e11},
		funnel.Verdict{Remaining: 582902080162, ResetAfter: 1315360000000000000, Granted: 1e11, Change: funnel.Store}},
	{"denied/dividing", funnel.ThrottleState{TAT: origin + 32e9, Rate: funnel.Rate{2e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: 1},
		funnel.Verdict{Limited: true, RetryAfter: 2e9, ResetAfter: 32e9}},
	{"denied/fraction", funnel.ThrottleState{TAT: origin + 137142857142, Frac: 6, Rate: funnel.Rate{60e9, 7}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 7}, Quantity: 1},
		funnel.Verdict{Limited: true, RetryAfter: 8571428572, ResetAfter: 137142857143}},
	{"peek", funnel.ThrottleState{TAT: origin + 2e9, Rate: funnel.Rate{2e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: 0},
		funnel.Verdict{Remaining: 15, ResetAfter: 2e9}},
	{"refund", funnel.ThrottleState{TAT: origin + 4e9, Rate: funnel.Rate{2e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: -1},
		funnel.Verdict{Remaining: 15, ResetAfter: 2e9, Granted: -1, Change: funnel.Store}},
	{"rate-change", funnel.ThrottleState{TAT: origin + 36e12, Rate: funnel.Rate{3600e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 7}, Quantity: 1},
		funnel.Verdict{Remaining: 5, ResetAfter: 94285714286, Granted: 1, Change: funnel.Store}},
	{"adopted", funnel.ThrottleState{TAT: origin + 2e9},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: 1},
		funnel.Verdict{Remaining: 14, ResetAfter: 4e9, Granted: 1, Change: funnel.Store}},
	{"upto",
		funnel.ThrottleState{TAT: origin + 28e9, Rate: funnel.Rate{2e9, 1}},
		funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{60e9, 30}, Quantity: 5, UpTo: true},
		funnel.Verdict{RetryAfter: 2e9, ResetAfter: 32e9, Granted: 2, Change: funnel.Store}},
}

func BenchmarkThrottle(b *testing.B) {
	for _, c := range throttleCases {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var v funnel.Verdict
			for b.Loop() {
				_, v = funnel.Throttle(origin, c.state, &c.params)
			}
			if v != c.want {
				b.Errorf("%+v, want %+v", v, c.want)
			}
		})
	}
}

func BenchmarkClock(b *testing.B) {
	mono := funnel.Micros(0)
	monotonic := func() funnel.Micros { mono += 2; return mono }
	b.Run("following", func(b *testing.B) {
		b.ReportAllocs()
		var c funnel.Clock
		wall := originMicros
		for b.Loop() {
			wall++
			c.Now(wall, monotonic)
		}
	})
	b.Run("behind", func(b *testing.B) {
		b.ReportAllocs()
		var c funnel.Clock
		c.Now(originMicros, monotonic)
		for b.Loop() {
			c.Now(0, monotonic)
		}
	})
}

func TestThrottle_allocatesNothing(t *testing.T) {
	for _, c := range throttleCases {
		t.Run(c.name, func(t *testing.T) {
			var v funnel.Verdict
			n := testing.AllocsPerRun(100, func() {
				_, v = funnel.Throttle(origin, c.state, &c.params)
			})
			if n != 0 || v != c.want {
				t.Errorf("%v allocations, %+v, want none, %+v", n, v, c.want)
			}
		})
	}
}

func TestClock_allocatesNothing(t *testing.T) {
	var c funnel.Clock
	mono := funnel.Micros(0)
	monotonic := func() funnel.Micros { mono += 2; return mono }
	for _, wall := range []funnel.Micros{1000, 500} {
		if n := testing.AllocsPerRun(100, func() { c.Now(wall, monotonic) }); n != 0 {
			t.Errorf("at %d: %v allocations", wall, n)
		}
	}
}

// limitsNow is 3 s into a part of 600 s.
const limitsNow funnel.Micros = originMicros + 3e6

// A window with one live entry of 10 units, and one in which 4 older ones were given back.
var (
	benchEntry  = funnel.WindowEntry{Time: limitsNow - 1e6, Total: 10, Weight: 10}
	benchLog    = funnel.WindowState{Newest: benchEntry, Oldest: benchEntry}
	benchRefund = funnel.WindowState{
		Newest: funnel.WindowEntry{Time: limitsNow - 1e6, Total: 10, Weight: 5, Cap: 6, Capped: true},
		Oldest: funnel.WindowEntry{Time: limitsNow - 2e6, Total: 5, Weight: 5},
	}
)

var windowCases = []struct {
	name   string
	state  funnel.WindowState
	params funnel.WindowParams // for a period of 600 s
	want   funnel.WindowVerdict
}{
	{"admitted/first", funnel.WindowState{}, funnel.WindowParams{Limit: 120, Quantity: 1},
		funnel.WindowVerdict{Verdict: funnel.Verdict{Remaining: 119, ResetAfter: 600e9, Granted: 1, Change: funnel.Store}}},
	{"admitted/own", benchLog, funnel.WindowParams{Limit: 120, Quantity: 1},
		funnel.WindowVerdict{Verdict: funnel.Verdict{Remaining: 109, ResetAfter: 600e9, Granted: 1, Change: funnel.Store}}},
	{"admitted/exact", benchLog, funnel.WindowParams{Limit: 1e6, Quantity: 1, Exact: true},
		funnel.WindowVerdict{Verdict: funnel.Verdict{Remaining: 999989, ResetAfter: 600e9, Granted: 1, Change: funnel.Store}}},
	{"admitted/shared", benchLog, funnel.WindowParams{Limit: 1e6, Quantity: 1},
		funnel.WindowVerdict{
			Verdict: funnel.Verdict{Remaining: 999989, ResetAfter: 600e9, Granted: 1, Change: funnel.Store}, Share: true}},
	{"admitted/refunded", benchRefund, funnel.WindowParams{Limit: 1e6, Quantity: 1},
		funnel.WindowVerdict{
			Verdict: funnel.Verdict{Remaining: 999993, ResetAfter: 600e9, Granted: 1, Change: funnel.Store}, Share: true}},
	{"denied", benchLog, funnel.WindowParams{Limit: 10, Quantity: 1},
		funnel.WindowVerdict{
			Verdict: funnel.Verdict{Limited: true, ResetAfter: 599e9}, Lapse: 1, Await: true}},
	{"peek", benchLog, funnel.WindowParams{Limit: 120, Quantity: 0},
		funnel.WindowVerdict{Verdict: funnel.Verdict{Remaining: 110, ResetAfter: 599e9}}},
	{"refund", benchLog, funnel.WindowParams{Limit: 120, Quantity: -4},
		funnel.WindowVerdict{
			Verdict: funnel.Verdict{Remaining: 114, ResetAfter: 599e9, Granted: -4, Change: funnel.Store}, Share: true}},
}

var quotaCases = []struct {
	name   string
	state  funnel.QuotaState
	params funnel.QuotaParams // for a limit of 10 in 60 s
	want   funnel.Verdict
}{
	{"admitted/first", funnel.QuotaState{}, funnel.QuotaParams{Quantity: 1},
		funnel.Verdict{Remaining: 9, ResetAfter: 60e9, Granted: 1, Change: funnel.Store}},
	{"admitted/aligned", funnel.QuotaState{}, funnel.QuotaParams{Quantity: 1, Align: true},
		funnel.Verdict{Remaining: 9, ResetAfter: 37e9, Granted: 1, Change: funnel.Store}},
	{"admitted", funnel.QuotaState{4, limitsNow + 1}, funnel.QuotaParams{Quantity: 1},
		funnel.Verdict{Remaining: 5, ResetAfter: 1000, Granted: 1, Change: funnel.Store}},
	{"denied", funnel.QuotaState{10, limitsNow + 1}, funnel.QuotaParams{Quantity: 1},
		funnel.Verdict{Limited: true, RetryAfter: 1000, ResetAfter: 1000}},
}

var leaseCases = []struct {
	name  string
	state funnel.LeaseState
	want  funnel.LeaseVerdict
}{
	{"admitted", funnel.LeaseState{Used: 9, Latest: limitsNow + 1}, funnel.LeaseVerdict{
		Verdict: funnel.Verdict{ResetAfter: 60e9, Granted: 1, Change: funnel.Store}, Lapse: limitsNow + 60e6}},
	{"renewed", funnel.LeaseState{Used: 10, Own: limitsNow + 1, Latest: limitsNow + 90e6}, funnel.LeaseVerdict{
		Verdict: funnel.Verdict{ResetAfter: 90e9, Granted: 1, Change: funnel.Store, Renewed: true}, Lapse: limitsNow + 60e6}},
	{"denied", funnel.LeaseState{Used: 10, Latest: limitsNow + 90e6}, funnel.LeaseVerdict{
		Verdict: funnel.Verdict{Limited: true, ResetAfter: 90e9}, Await: 1}},
}

// limitPaths runs f for each path. call makes the call; right reports whether the call
// returned what its path must.
func limitPaths(f func(name string, call func(), right func() bool)) {
	var window funnel.WindowVerdict
	for _, c := range windowCases {
		c.params.Period = 600e6
		f("Window/"+c.name, func() {
			_, window = funnel.Window(limitsNow, c.state, c.params)
		}, func() bool { return window == c.want })
	}
	var quota funnel.Verdict
	for _, c := range quotaCases {
		c.params.Limit, c.params.Period = 10, 60e6
		f("Quota/"+c.name, func() {
			_, quota = funnel.Quota(limitsNow, c.state, c.params)
		}, func() bool { return quota == c.want })
	}
	var lease funnel.LeaseVerdict
	for _, c := range leaseCases {
		f("Lease/"+c.name, func() {
			lease = funnel.Lease(limitsNow, c.state, funnel.LeaseParams{Limit: 10, TTL: 60e6})
		}, func() bool { return lease == c.want })
	}
}

func BenchmarkLimits(b *testing.B) {
	limitPaths(func(name string, call func(), right func() bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
			if !right() {
				b.Error("took another path")
			}
		})
	})
}

func TestLimits_allocateNothing(t *testing.T) {
	limitPaths(func(name string, call func(), right func() bool) {
		if n := testing.AllocsPerRun(100, call); n != 0 || !right() {
			t.Errorf("%s: %v allocations, right: %v", name, n, right())
		}
	})
}

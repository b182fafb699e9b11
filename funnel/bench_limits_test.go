package funnel

import "testing"

// limitsNow is 3 s into a part of 600 s.
const limitsNow = originMicros + 3e6

// A window with one live entry of 10 units, and one in which 4 older ones were given back.
var (
	benchEntry  = WindowEntry{Time: limitsNow - 1e6, Total: 10, Weight: 10}
	benchLog    = WindowState{Newest: benchEntry, Oldest: benchEntry}
	benchRefund = WindowState{
		Newest: WindowEntry{Time: limitsNow - 1e6, Total: 10, Weight: 5, Kept: 6},
		Oldest: WindowEntry{Time: limitsNow - 2e6, Total: 5, Weight: 5},
	}
)

var windowCases = []struct {
	name     string
	state    WindowState
	limit    int64
	quantity int64
	exact    bool
	want     WindowVerdict
}{
	{"admitted/first", WindowState{}, 120, 1, false,
		WindowVerdict{Verdict: Verdict{Remaining: 119, RetryAfter: Never, ResetAfter: 600e9, Granted: 1, Change: Store}}},
	{"admitted/own", benchLog, 120, 1, false,
		WindowVerdict{Verdict: Verdict{Remaining: 109, RetryAfter: Never, ResetAfter: 600e9, Granted: 1, Change: Store}}},
	{"admitted/exact", benchLog, 1e6, 1, true,
		WindowVerdict{Verdict: Verdict{Remaining: 999989, RetryAfter: Never, ResetAfter: 600e9, Granted: 1, Change: Store}}},
	{"admitted/shared", benchLog, 1e6, 1, false, WindowVerdict{
		Verdict: Verdict{Remaining: 999989, RetryAfter: Never, ResetAfter: 600e9, Granted: 1, Change: Store}, Share: true}},
	{"admitted/refunded", benchRefund, 1e6, 1, false, WindowVerdict{
		Verdict: Verdict{Remaining: 999993, RetryAfter: Never, ResetAfter: 600e9, Granted: 1, Change: Store}, Share: true}},
	{"denied", benchLog, 10, 1, false, WindowVerdict{
		Verdict: Verdict{Limited: true, RetryAfter: Never, ResetAfter: 599e9}, Lapse: 1, Wait: true}},
	{"peek", benchLog, 120, 0, false,
		WindowVerdict{Verdict: Verdict{Remaining: 110, RetryAfter: Never, ResetAfter: 599e9}}},
	{"refund", benchLog, 120, -4, false, WindowVerdict{
		Verdict: Verdict{Remaining: 114, RetryAfter: Never, ResetAfter: 599e9, Granted: -4, Change: Store}, Share: true}},
}

var quotaCases = []struct {
	name     string
	state    QuotaState
	quantity int64
	align    bool
	want     Verdict
}{
	{"admitted/first", QuotaState{}, 1, false,
		Verdict{Remaining: 9, RetryAfter: Never, ResetAfter: 60e9, Granted: 1, Change: Store}},
	{"admitted/aligned", QuotaState{}, 1, true,
		Verdict{Remaining: 9, RetryAfter: Never, ResetAfter: 37e9, Granted: 1, Change: Store}},
	{"admitted", QuotaState{4, limitsNow + 1}, 1, false,
		Verdict{Remaining: 5, RetryAfter: Never, ResetAfter: 1000, Granted: 1, Change: Store}},
	{"denied", QuotaState{10, limitsNow + 1}, 1, false,
		Verdict{Limited: true, RetryAfter: 1000, ResetAfter: 1000}},
}

var leaseCases = []struct {
	name  string
	state LeaseState
	want  LeaseVerdict
}{
	{"admitted", LeaseState{Used: 9}, LeaseVerdict{Lapse: limitsNow + 60e6}},
	{"renewed", LeaseState{Used: 10, Held: limitsNow + 1}, LeaseVerdict{Lapse: limitsNow + 60e6}},
	{"denied", LeaseState{Used: 10}, LeaseVerdict{Limited: true, Await: 1}},
}

// limitPaths runs f for each path: call makes the call, right tells whether it answered
// what its path must.
func limitPaths(f func(name string, call func(), right func() bool)) {
	var window WindowVerdict
	for _, c := range windowCases {
		f("Window/"+c.name, func() {
			_, window = Window(limitsNow, c.state, c.limit, 600e6, c.quantity, c.exact)
		}, func() bool { return window == c.want })
	}
	var quota Verdict
	for _, c := range quotaCases {
		f("Quota/"+c.name, func() {
			_, quota = Quota(limitsNow, c.state, 10, 60e6, c.quantity, c.align, 0)
		}, func() bool { return quota == c.want })
	}
	var lease LeaseVerdict
	for _, c := range leaseCases {
		f("Lease/"+c.name, func() {
			lease = Lease(limitsNow, c.state, 10, 60e6)
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

package funnel_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// rules are the specification of Throttle as steps on one limiter, absent at first:
//
//	now  limit  rate  quantity [upto]  ->  limited  remaining  retry_after  reset_after  granted  change
//
// Times are Go durations and now counts from origin. A retry_after of "-" is 0. A line
// "adopt TAT" makes the state that of a redis-cell key, which has a TAT and no rate.
var rules = []struct{ rule, steps string }{
	{"What fits fits exactly", `
		0s              16  30/1m  1  ->  no   15  -   2s       1  store
		0s              16  30/1m 15  ->  no    0  -   32s     15  store
		0s              16  30/1m  1  ->  yes   0  2s  32s      0  keep
		1.999999999s    16  30/1m  1  ->  yes   0  1ns 30.000000001s   0  keep
		2s              16  30/1m  1  ->  no    0  -   32s      1  store
		34s             16  30/1m 16  ->  no    0  -   32s     16  store
	`},
	{"What fits fits exactly where the interval is no whole number of ns", `
		0s              16  7/1m   1  ->  no   15  -            8.571428572s     1  store
		0s              16  7/1m   5  ->  no   10  -            51.428571429s    5  store
		0s              16  7/1m  10  ->  no    0  -            137.142857143s  10  store
		0s              16  7/1m   1  ->  yes   0  8.571428572s 137.142857143s   0  keep
		8.571428571s    16  7/1m   1  ->  yes   0  1ns          128.571428572s   0  keep
		8.571428572s    16  7/1m   1  ->  no    0  -            137.142857143s   1  store
		60s             16  7/1m   6  ->  no    0  -            137.142857143s   6  store
		60s             16  7/1m   1  ->  yes   0  8.571428572s 137.142857143s   0  keep
	`},
	{"What fits fits exactly where many units share one nanosecond", `
		0s              10  4/1ns  3  ->  no    7  -   1ns   3  store
		0s              10  4/1ns  7  ->  no    0  -   3ns   7  store
		0s              10  4/1ns  1  ->  yes   0  1ns 3ns   0  keep
		1ns             10  4/1ns  4  ->  no    0  -   3ns   4  store
		3ns             10  4/1ns  2  ->  no    6  -   1ns   2  store
	`},
	{"Remaining counts whole units", `
		0s              3   1/10s  2  ->  no   1  -  20s            2  store
		9.999999999s    3   1/10s  0  ->  no   1  -  10.000000001s  0  keep
		10s             3   1/10s  0  ->  no   2  -  10s            0  keep
		19.999999999s   3   1/10s  0  ->  no   2  -  1ns            0  keep
		20s             3   1/10s  0  ->  no   3  -  0s             0  keep
		1h              3   1/10s  0  ->  no   3  -  0s             0  keep
	`},
	{"A peek changes nothing", `
		0s  2  1/10s  0  ->  no  2  -  0s    0  keep
		0s  2  1/10s  2  ->  no  0  -  20s   2  store
		0s  2  1/10s  0  ->  no  0  -  20s   0  keep
		5s  2  1/10s  0  ->  no  0  -  15s   0  keep
		5s  4  1/10s  0  ->  no  2  -  15s   0  keep
		// Not even at another rate: what was in use drains on at its own.
		5s  2  1/1s   0  ->  no  0  -  1.5s  0  keep
		6s  2  1/1s   0  ->  no  0  -  1.4s  0  keep
		6s  2  1/10s  0  ->  no  0  -  14s   0  keep
	`},
	{"A peek is limited only while more than the limit is in use", `
		0s           9  1/10s  9  ->  no   0  -    90s   9  store
		0s           5  1/10s  0  ->  yes  0  40s  90s   0  keep
		39.999999999s  5  1/10s  0  ->  yes  0  1ns  50.000000001s   0  keep
		40s          5  1/10s  0  ->  no   0  -    50s   0  keep
		40s          5  1/10s  1  ->  yes  0  10s  50s   0  keep
	`},
	{"More than the limit is never admitted and leaves no trace", `
		0s   5  1/10s  6              ->  yes  5  never  0s    0  keep
		0s   5  1/10s  2              ->  no   3  -  20s   2  store
		0s   5  1/10s  1000000000001  ->  yes  3  never  20s   0  keep
		0s   5  1/1s   6              ->  yes  3  never  2s    0  keep
		0s   5  1/10s  0              ->  no   3  -  20s   0  keep
	`},
	{"A refund gives back up to what is in use", `
		0s   5  1/10s  4  ->  no  1  -  40s   4  store
		0s   5  1/10s -1  ->  no  2  -  30s   -1  store
		5s   5  1/10s -2  ->  no  4  -  5s    -2  store
		// Half a unit is in use: one more than fills it up.
		5s   5  1/10s -1  ->  no  5  -  0s    -1  forget
		5s   5  1/10s -1  ->  no  5  -  0s     0  keep
		5s   5  1/10s  5  ->  no  0  -  50s   5  store
		5s   5  1/10s -1000000000001  ->  no  5  -  0s   -5  forget
		5s   5  1/10s  5  ->  no  0  -  50s   5  store
		5s   5  1/10s -5  ->  no  5  -  0s    -5  forget
	`},
	{"A refund is admitted even if more than the limit is in use", `
		0s   9  1/10s  9  ->  no   0  -    90s   9  store
		0s   5  1/10s -2  ->  no   0  -    70s   -2  store
		0s   5  1/10s  1  ->  yes  0  30s  70s   0  keep
		0s   5  1/10s -7  ->  no   5  -    0s    -7  forget
	`},
	{"A refund of a fraction of what is in use is exact", `
		0s  16  7/1m  16  ->  no  0  -  137.142857143s  16  store
		0s  16  7/1m  -9  ->  no  9  -  60s              -9  store
		0s  16  7/1m   9  ->  no  0  -  137.142857143s   9  store
		0s  16  7/1m -16  ->  no 16  -  0s              -16  forget
	`},
	{"A lowered limit forgets nothing", `
		0s   10  1/10s  10 ->  no   0  -    100s  10  store
		0s    3  1/10s  1  ->  yes  0  80s  100s   0  keep
		0s   10  1/10s  1  ->  yes  0  10s  100s   0  keep
		80s   3  1/10s  1  ->  no   0  -    30s    1  store
	`},
	{"A raised limit leaves room at once", `
		0s   3   1/10s  3  ->  no   0  -  30s    3  store
		0s   10  1/10s  7  ->  no   0  -  100s   7  store
		0s   10  1/10s  1  ->  yes  0  10s  100s   0  keep
	`},
	{"A small limit keeps a reserve for a larger one", `
		0s    4     1/1s    4  ->  no   0    -     4s     4  store
		0s    1000  1/1s  200  ->  no   796  -     204s  200  store
		0s    4     1/1s    1  ->  yes  0    201s  204s   0  keep
		201s  4     1/1s    1  ->  no   0    -     4s     1  store
	`},
	{"Usage carries over in units when the rate changes", `
		0s    10  1/1h  10  ->  no   0  -   10h  10  store
		// The rewrite by a denied call is what makes its retry_after true.
		0s    10  1/1s  1   ->  yes  0  1s  10s   0  store
		0s    10  1/1s  1   ->  yes  0  1s  10s   0  keep
		1s    10  1/1s  1   ->  no   0  -   10s   1  store
		// And back: nine and a half units take as many hours.
		1.5s  10  1/1h  1   ->  yes  0  30m 9h30m   0  store
		1.5s  10  1/1m  1   ->  yes  0  30s 9m30s   0  store
		// An admitted call adds to what was carried, a refund takes from it.
		31.5s 10  1/1m  1   ->  no   0  -   10m     1  store
		31.5s 10  2/1s -4   ->  no   4  -   3s      -4  store
		31.5s 10  1/1s  4   ->  no   0  -   10s     4  store
	`},
	{"A rate that only changes its terms is no change", `
		0s  10  6/1m    10  ->  no   0  -    100s  10  store
		0s  10  1/10s   1   ->  yes  0  10s  100s   0  keep
		0s  10  360/1h  1   ->  yes  0  10s  100s   0  keep
		10s 10  60/10m  1   ->  no   0  -    100s   1  store
	`},
	{"Nothing in use, nothing to carry over", `
		0s   10  1/1s  10  ->  no  0   -   10s  10  store
		10s  10  1/1h  0   ->  no  10  -   0s    0  keep
		10s  10  1/1h -1   ->  no  10  -   0s     0  keep
		10s  10  1/1h  10  ->  no  0   -   10h  10  store
	`},
	{"A fraction carried over is rounded up", `
		0s   1  7/1m  1  ->  no   0  -    8.571428572s   1  store
		// A little less than one unit, which is a little less than 1 ns at 1/1ns.
		1ns  1  1/1ns 0  ->  no   0  -    1ns            0  keep
		1ns  1  1/1ns 1  ->  yes  0  1ns  1ns            0  store
		2ns  1  1/1ns 1  ->  no   0  -    1ns            1  store
	`},
	{"An adopted key's time is taken as it is", `
		adopt 30s
		0s   5  1/10s  0  ->  no   2  -   30s   0  keep
		0s   5  1/1s   0  ->  yes  0  25s 30s   0  keep
		// A denied call does not settle the rate ...
		0s   5  1/10s  3  ->  yes  2  10s 30s   0  keep
		0s   5  1/20s  5  ->  yes  3  30s 30s   0  keep
		// ... an admitted one does: from here on units carry over.
		0s   5  1/20s  1  ->  no   2  -   50s   1  store
		0s   5  1/10s  0  ->  no   2  -   25s   0  keep
	`},
	{"An adopted key may lie in the past or be refunded", `
		adopt 30s
		31s  5  1/10s  1  ->  no  4  -  10s   1  store
		adopt 30s
		30s  5  1/10s  0  ->  no  5  -  0s    0  keep
		adopt 30s
		10s  5  1/10s -1  ->  no  4  -  10s   -1  store
		10s  5  1/10s -1  ->  no  5  -  0s    -1  forget
	`},
	{"A clock set back makes no room", `
		100s  5  1/10s  5  ->  no   0  -    50s    5  store
		40s   5  1/10s  1  ->  yes  0  70s  110s   0  keep
		40s   5  1/10s  0  ->  yes  0  60s  110s   0  keep
		110s  5  1/10s  1  ->  no   0  -    50s    1  store
	`},
	{"UPTO takes what is left, and tells the wait for one more unit", `
		0s    10  1/10s    4 upto  ->  no   6  -    40s   4  store
		5s    10  1/10s  100 upto  ->  no   0  5s   95s   6  store
		5s    10  1/10s    1 upto  ->  yes  0  5s   95s   0  keep
		5s    10  1/10s  100 upto  ->  yes  0  5s   95s   0  keep
		9.999999999s 10 1/10s 9 upto -> yes 0  1ns  90.000000001s  0  keep
		10s   10  1/10s    9 upto  ->  no   0  10s  100s  1  store
		10s   10  1/10s    0 upto  ->  no   0  -    100s  0  keep
		10s   10  1/10s   -3 upto  ->  no   3  -    70s  -3  store
		10s   10  1/10s    3 upto  ->  no   0  -    100s  3  store
		// More than the limit is in use.
		10s    8  1/10s    2 upto  ->  yes  0  30s  100s  0  keep
	`},
	{"UPTO of more than the limit takes the limit", `
		0s    5   1/10s  1000000000001 upto  ->  no   0  10s          50s            5  store
		0s    5   1/10s  1000000000001 upto  ->  yes  0  10s          50s            0  keep
		50s   16  7/1m   17 upto             ->  no   0  8.571428572s 137.142857143s 16  store
	`},
	{"UPTO with a changed rate shares out what the new rate leaves", `
		0s    10  1/1h     4       ->  no   6  -    4h    4  store
		30m   10  1/1m     9 upto  ->  no   0  30s  9m30s 6  store
		30m   10  1/1s     9 upto  ->  yes  0  500ms 9.5s 0  store
	`},
	{"An adopted key has room for UPTO", `
		adopt 30s
		5s    5   1/10s  1 upto  ->  no   1  -    35s   1  store
		adopt 30s
		5s    5   1/10s  9 upto  ->  no   0  5s   45s   2  store
		adopt 30s
		5s    2   1/10s  9 upto  ->  yes  0  15s  25s   0  keep
	`},
	{"Usage that would drain only after 2262 keeps its rate when a call is denied", `
		0s    100000  100000/1h  100000  ->  no   0  -         1h        100000  store
		0s         1  1/24h           1  ->  yes  0  2400000h  2400000h       0  keep
		0s         1  1/24h      1 upto  ->  yes  0  2400000h  2400000h       0  keep
		0s         1  1/24h           0  ->  yes  0  2399976h  2400000h       0  keep
		0s         1  1/24h           2  ->  yes  0  never     2400000h       0  keep
		// The denied calls have lost nothing at the first rate.
		0s    100000  100000/1h       0  ->  no   0  -         1h             0  keep
		30m   100000  100000/1h       0  ->  no   50000  -     30m            0  keep
		// What is left by then can be stored at the second rate.
		30m        1  1/24h           1  ->  yes  0  1200000h  1200000h       0  store
		30m   100000  100000/1h       0  ->  no   50000  -     30m            0  keep
		54m        1  1/24h           0  ->  yes  0  1199975h36m  1199999h36m 0  keep
	`},
	{"A refund of such usage takes units off at the rate that the usage has", `
		0s    100000  100000/1h  100000  ->  no   0  -         1h        100000  store
		0s         1  1/24h      -20000  ->  no   0  -         1920000h  -20000  store
		0s    100000  100000/1h       0  ->  no   20000  -     48m            0  keep
		30m   100000  100000/1h       0  ->  no   70000  -     18m            0  keep
		30m   100000  100000/1h   70000  ->  no   0  -         1h         70000  store
		// Half a unit has drained. At the second rate it takes 12 h.
		30m0.018s  1  1/24h          -1  ->  no   0  -         2399964h      -1  store
		30m0.018s  100000  100000/1h  0  ->  no   1  -         59m59.946s     0  keep
		// All but half a unit goes back, and then all.
		30m0.018s  2  1/24h      -99998  ->  no   1  -         12h       -99998  store
		30m0.018s  100000  100000/1h  99999 -> no 0  -         59m59.982s 99999  store
		30m0.018s  2  1/24h -1000000000001 -> no  2  -         0s       -100000  forget
	`},
	{"A wait that no int64 can hold saturates", `
		0s    100000  100000/1h  100000  ->  no   0  -         1h        100000  store
		0s         1  1/876000h       1  ->  yes  0  2562047h47m16.854775807s  2562047h47m16.854775807s  0  keep
		0s        10  1/87600h        1  ->  yes  0  2562047h47m16.854775807s  2562047h47m16.854775807s  0  keep
		0s        10  1/87600h       -1  ->  no   0  -         2562047h47m16.854775807s  -1  store
		0s    100000  100000/1h       0  ->  no   1  -         59m59.964s     0  keep
	`},
}

func TestThrottle_rules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.rule, func(t *testing.T) {
			l := limiterOf(funnel.ThrottleState{})
			for line := range strings.Lines(r.steps) {
				line = strings.TrimSpace(line)
				if tat, ok := strings.CutPrefix(line, "adopt "); ok {
					l = limiterOf(funnel.ThrottleState{TAT: origin + duration(t, tat)})
				} else if line != "" && !strings.HasPrefix(line, "//") {
					l.step(t, line)
				}
			}
		})
	}
}

// step runs one line of rules.
func (l *limiter) step(t *testing.T, line string) {
	t.Helper()
	left, want, _ := strings.Cut(line, "->")
	f := strings.Fields(left)
	count, period, _ := strings.Cut(f[2], "/")
	before := l.state
	v := l.call(t, origin+duration(t, f[0]), funnel.ThrottleParams{
		Limit:    number(t, f[1]),
		Rate:     funnel.Rate{Period: duration(t, period), Count: number(t, count)},
		Quantity: number(t, f[3]),
		UpTo:     slices.Contains(f[4:], "upto"),
	})
	if got := verdictText(v); got != columns(t, want) {
		t.Errorf("%s\n got %s\nfrom %+v", strings.Join(strings.Fields(line), " "), got, before)
	}
}

// apply does to a state what the verdict says.
func apply(old, next funnel.ThrottleState, v funnel.Verdict) funnel.ThrottleState {
	switch v.Change {
	case funnel.Store:
		return next
	case funnel.Forget:
		return funnel.ThrottleState{}
	}
	return old
}

// Seven per minute with a burst of 15 is the classic trap: an interval that is rounded up
// denies the sixteenth call, one that is rounded down shows 14 where 15 remain.
func TestThrottle_sevenPerMinute(t *testing.T) {
	var s funnel.ThrottleState
	p := funnel.ThrottleParams{Limit: 16, Rate: funnel.Rate{Period: 60e9, Count: 7}, Quantity: 1}
	for want := int64(15); want >= 0; want-- {
		next, v := funnel.Throttle(origin, s, &p)
		if v.Limited || v.Remaining != want {
			t.Fatalf("limited %v with %d remaining, want %d", v.Limited, v.Remaining, want)
		}
		s = apply(s, next, v)
	}
	if _, v := funnel.Throttle(origin, s, &p); !v.Limited {
		t.Fatal("the seventeenth is admitted")
	}
}

// redis-cell makes a caller wait for as long as the old rate says even after the rate was
// raised (brandur/redis-cell#54). Here a client that obeys retry_after once is admitted.
func TestThrottle_obedientClientAfterRaisedRate(t *testing.T) {
	now := origin
	p := funnel.ThrottleParams{Limit: 10, Rate: funnel.Rate{Period: 3600e9, Count: 1}, Quantity: 10}
	s, _ := funnel.Throttle(now, funnel.ThrottleState{}, &p)
	p.Rate, p.Quantity = funnel.Rate{Period: 1e9, Count: 1}, 1
	for tries := 1; ; tries++ {
		next, v := funnel.Throttle(now, s, &p)
		if !v.Limited {
			break
		}
		if tries == 2 {
			t.Fatalf("told to wait %d ns after having waited", v.RetryAfter)
		}
		s = apply(s, next, v)
		now += v.RetryAfter
	}
	if now != origin+1e9 {
		t.Errorf("admitted after %d ns, want 1 s", now-origin)
	}
}

func TestThrottleState_Void(t *testing.T) {
	for _, c := range []struct {
		state funnel.ThrottleState
		now   funnel.Nanos
		want  bool
	}{
		{funnel.ThrottleState{}, 0, true},
		{funnel.ThrottleState{TAT: 5, Rate: funnel.Rate{Period: 1, Count: 1}}, 4, false},
		{funnel.ThrottleState{TAT: 5, Rate: funnel.Rate{Period: 1, Count: 1}}, 5, true},
		{funnel.ThrottleState{TAT: 5, Frac: 1, Rate: funnel.Rate{Period: 1, Count: 2}}, 5, false},
		{funnel.ThrottleState{TAT: 5, Frac: 1, Rate: funnel.Rate{Period: 1, Count: 2}}, 6, true},
		{funnel.ThrottleState{TAT: math.MaxInt64}, math.MaxInt64 - 1, false},
	} {
		if got := c.state.Void(c.now); got != c.want {
			t.Errorf("%+v.Void(%d) = %v", c.state, c.now, got)
		}
		if got := limiterOf(c.state).oracle.Void(c.now); got != c.want {
			t.Errorf("oracle of %+v: Void(%d) = %v", c.state, c.now, got)
		}
	}
}

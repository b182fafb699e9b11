package funnel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// origin is the instant that the tables call 0.
const origin = 1_700_000_000_000_000_000

// rules are the specification of Throttle as steps on one limiter, absent at first:
//
//	now  limit  rate  quantity  ->  limited  remaining  retry_after  reset_after  granted  change
//
// Times are Go durations, now counts from origin, "-" is Never. A line
// "adopt TAT" puts the time of a redis-cell key, which has no rate, in the state.
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
		0s   5  1/10s  6              ->  yes  5  -  0s    0  keep
		0s   5  1/10s  2              ->  no   3  -  20s   2  store
		0s   5  1/10s  1000000000001  ->  yes  3  -  20s   0  keep
		0s   5  1/1s   6              ->  yes  3  -  2s    0  keep
		0s   5  1/10s  0              ->  no   3  -  20s   0  keep
	`},
	{"A refund gives back up to what is in use", `
		0s   5  1/10s  4  ->  no  1  -  40s   4  store
		0s   5  1/10s -1  ->  no  2  -  30s   -1  store
		5s   5  1/10s -2  ->  no  4  -  5s    -2  store
		// Half a unit is in use: one more than fills it up.
		5s   5  1/10s -1  ->  no  5  -  0s    -1  forget
		5s   5  1/10s -1  ->  no  5  -  0s     0  forget
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
		10s  10  1/1h -1   ->  no  10  -   0s     0  forget
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
}

func TestThrottle_rules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.rule, func(t *testing.T) {
			var s State
			for line := range strings.Lines(r.steps) {
				line = strings.TrimSpace(line)
				if tat, ok := strings.CutPrefix(line, "adopt "); ok {
					s = State{TAT: origin + duration(t, tat)}
				} else if line != "" && !strings.HasPrefix(line, "//") {
					s = step(t, s, line)
				}
			}
		})
	}
}

// step runs one line of rules and returns the state that it leaves.
func step(t *testing.T, s State, line string) State {
	t.Helper()
	left, want, _ := strings.Cut(line, "->")
	f := strings.Fields(left)
	count, period, _ := strings.Cut(f[2], "/")
	rate := Rate{Period: duration(t, period), Count: number(t, count)}
	now := origin + duration(t, f[0])
	next, v := Throttle(now, s, number(t, f[1]), rate, number(t, f[3]))
	if got := verdict(v); got != columns(t, want) {
		t.Errorf("%s\n got %s\nfrom %+v", strings.Join(strings.Fields(line), " "), got, s)
	}
	return apply(s, next, v)
}

// columns brings the right side of a line into the form of verdict.
func columns(t *testing.T, want string) string {
	t.Helper()
	f := strings.Fields(want)
	for i := 2; i <= 3; i++ {
		if f[i] != "-" {
			f[i] = time.Duration(duration(t, f[i])).String()
		}
	}
	return strings.Join(f, " ")
}

func verdict(v Verdict) string {
	limited, retry := "no", "-"
	if v.Limited {
		limited = "yes"
	}
	if v.RetryAfter != Never {
		retry = time.Duration(v.RetryAfter).String()
	}
	change := map[Change]string{Keep: "keep", Store: "store", Forget: "forget"}[v.Change]
	return fmt.Sprint(limited, " ", v.Remaining, " ", retry, " ", time.Duration(v.ResetAfter), " ", v.Granted, " ", change)
}

// apply does to a state what the verdict says.
func apply(old, next State, v Verdict) State {
	switch v.Change {
	case Store:
		return next
	case Forget:
		return State{}
	}
	return old
}

func duration(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Seven per minute with a burst of 15 is the classic trap: an interval rounded up
// denies the sixteenth, one rounded down shows 14 where 15 remain.
func TestThrottle_sevenPerMinute(t *testing.T) {
	var s State
	for want := int64(15); want >= 0; want-- {
		next, v := Throttle(origin, s, 16, Rate{60e9, 7}, 1)
		if v.Limited || v.Remaining != want {
			t.Fatalf("limited %v with %d remaining, want %d", v.Limited, v.Remaining, want)
		}
		s = apply(s, next, v)
	}
	if _, v := Throttle(origin, s, 16, Rate{60e9, 7}, 1); !v.Limited {
		t.Fatal("the seventeenth is admitted")
	}
}

// redis-cell keeps a raised rate waiting for the whole time of the old one
// (brandur/redis-cell#54); a client that obeys must get through.
func TestThrottle_obedientClientAfterRaisedRate(t *testing.T) {
	now := int64(origin)
	s, _ := Throttle(now, State{}, 10, Rate{3600e9, 1}, 10)
	for tries := 1; ; tries++ {
		next, v := Throttle(now, s, 10, Rate{1e9, 1}, 1)
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

func TestState_Void(t *testing.T) {
	for _, c := range []struct {
		state State
		now   int64
		want  bool
	}{
		{State{}, 0, true},
		{State{TAT: 5, Rate: Rate{1, 1}}, 4, false},
		{State{TAT: 5, Rate: Rate{1, 1}}, 5, true},
		{State{TAT: 5, Frac: 1, Rate: Rate{1, 2}}, 5, false},
		{State{TAT: 5, Frac: 1, Rate: Rate{1, 2}}, 6, true},
		{State{TAT: math.MaxInt64}, math.MaxInt64 - 1, false},
	} {
		if got := c.state.Void(c.now); got != c.want {
			t.Errorf("%+v.Void(%d) = %v", c.state, c.now, got)
		}
	}
}

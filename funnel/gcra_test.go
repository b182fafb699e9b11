package funnel_test

import (
	"math"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// rules are what no transcript can say, because a server's clock has no ns and never runs back. They are steps on one
// limiter, absent at first:
//
//	now  limit  rate  quantity  ->  limited  remaining  retry_after  reset_after  granted  change
//
// Times are Go durations and now counts from origin. A retry_after of "-" is 0.
var rules = []struct{ rule, steps string }{
	{"What fits fits exactly", `
		0s              16  30/1m  1  ->  no   15  -   2s       1  store
		0s              16  30/1m 15  ->  no    0  -   32s     15  store
		0s              16  30/1m  1  ->  yes   0  2s  32s      0  keep
		1.999999999s    16  30/1m  1  ->  yes   0  1ns 30.000000001s   0  keep
		2s              16  30/1m  1  ->  no    0  -   32s      1  store
		34s             16  30/1m 16  ->  no    0  -   32s     16  store
	`},
	{"What fits fits exactly where many units share one nanosecond", `
		0s              10  4/1ns  3  ->  no    7  -   1ns   3  store
		0s              10  4/1ns  7  ->  no    0  -   3ns   7  store
		0s              10  4/1ns  1  ->  yes   0  1ns 3ns   0  keep
		1ns             10  4/1ns  4  ->  no    0  -   3ns   4  store
		3ns             10  4/1ns  2  ->  no    6  -   1ns   2  store
	`},
	{"A fraction carried over is rounded up", `
		0s   1  7/1m  1  ->  no   0  -    8.571428572s   1  store
		// A little less than one unit, which is a little less than 1 ns at 1/1ns.
		1ns  1  1/1ns 0  ->  no   0  -    1ns            0  keep
		1ns  1  1/1ns 1  ->  yes  0  1ns  1ns            0  store
		2ns  1  1/1ns 1  ->  no   0  -    1ns            1  store
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
			l := limiterOf(funnel.ThrottleState{})
			for line := range strings.Lines(r.steps) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
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

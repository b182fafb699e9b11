package funnel

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// midnight is the instant that quotaRules call 0, in µs: 2023-11-14 00:00 UTC.
const midnight = 1_699_920_000_000_000

// quotaRules are the specification of Quota as steps on one fixed window, none at first:
//
//	now limit/period quantity [align offset] [upto] -> limited remaining retry_after reset_after granted change [state]
//
// The state is what the call leaves: the units used and when the window ends. Where it
// is left out, it must be as before.
var quotaRules = []struct{ rule, steps string }{
	{"A window starts at the first admitted call and at its end a new one does", `
		0s          10/60s   0 ->  no  10  -    0s    0  keep
		0s          10/60s  11 ->  yes 10  -    0s    0  keep
		7s          10/60s   4 ->  no   6  -    60s   4  store  4@1m7s
		20s         10/60s   6 ->  no   0  -    47s   6  store  10@1m7s
		20s         10/60s   1 ->  yes  0  47s  47s   0  keep
		66.999999s  10/60s   1 ->  yes  0  1us  1us   0  keep
		67s         10/60s   0 ->  no  10  -    0s    0  keep
		70s         10/60s  10 ->  no   0  -    60s  10  store  10@2m10s
		130s        10/60s  10 ->  no   0  -    60s  10  store  10@3m10s
	`},
	{"ALIGN ends windows at multiples of the period", `
		10s         10/60s   3 align 0s ->  no  7  -  50s  3  store  3@1m0s
		59.999999s  10/60s   7 align 0s ->  no  0  -  1us  7  store  10@1m0s
		59.999999s  10/60s   1 align 0s ->  yes 0  1us 1us 0  keep
		60s         10/60s   1 align 0s ->  no  9  -  60s  1  store  1@2m0s
		25h         10/24h   1 align 0s ->  no  9  -  23h  1  store  1@48h0m0s
		10h         10/24h   1 align 0s ->  no  8  -  38h  1  store  2@48h0m0s
	`},
	{"and the offset after them or before", `
		10s   10/60s   1 align 15s          ->  no   9  -  5s   1  store   1@15s
		15s   10/60s   1 align 15s          ->  no   9  -  60s  1  store   1@1m15s
		75s   10/60s   1 align -15s         ->  no   9  -  30s  1  store   1@1m45s
		105s  10/60s   1 align 75s          ->  no   9  -  30s  1  store   1@2m15s
		135s  10/60s   1 align -59.999999s  ->  no   9  -  45.000001s  1  store   1@3m0.000001s
		12h   10/24h   1 align -2h          ->  no   9  -  10h  1  store   1@22h0m0s
	`},
	{"also if the offset lies in the future", `
		10s   10/1h    1 align 875999h30m  ->  no   9  -  29m50s  1  store   1@30m0s
		30m   10/1h    1 align 876000h     ->  no   9  -  30m     1  store   1@1h0m0s
		1h    10/1h    1 align -876000h    ->  no   9  -  1h      1  store   1@2h0m0s
	`},
	{"A changed period takes effect with the next window", `
		0s    10/60s   4 ->  no   6  -    60s  4  store  4@1m0s
		10s   10/10s   5 ->  no   1  -    50s  5  store  9@1m0s
		10s   10/10s   2 ->  yes  1  50s  50s  0  keep
		50s   10/10s   1 align 5s ->  no   0  -    10s  1  store  10@1m0s
		60s   10/10s   1 ->  no   9  -    10s  1  store  1@1m10s
		65s   10/24h   1 ->  no   8  -    5s   1  store  2@1m10s
		70s   10/24h   1 ->  no   9  -    24h  1  store  1@24h1m10s
	`},
	{"A changed limit takes effect at once", `
		0s    10/60s  10 ->  no   0  -    60s  10  store  10@1m0s
		5s    12/60s   2 ->  no   0  -    55s   2  store  12@1m0s
		5s    10/60s   1 ->  yes  0  55s  55s   0  keep
		5s    20/60s   1 ->  no   7  -    55s   1  store  13@1m0s
	`},
	{"A peek is limited only while more than the limit is in use", `
		0s    9/60s   9 ->  no   0  -    60s   9  store  9@1m0s
		10s   9/60s   0 ->  no   0  -    50s   0  keep
		10s   8/60s   0 ->  yes  0  50s  50s   0  keep
		60s   8/60s   0 ->  no   8  -    0s    0  keep
	`},
	{"A refund gives back up to what is in use, and then no window is left", `
		0s    10/60s -1 ->  no  10  -    0s    0  forget
		0s    10/60s  4 ->  no   6  -    60s   4  store  4@1m0s
		10s   10/60s -1 ->  no   7  -    50s  -1  store  3@1m0s
		10s    2/60s -0 ->  yes  0  50s  50s   0  keep
		10s    2/60s -1 ->  no   0  -    50s  -1  store  2@1m0s
		20s   10/60s -3 ->  no  10  -    0s   -2  forget
		30s   10/60s  1 ->  no   9  -    60s   1  store  1@1m30s
		30s   10/60s -1000000000001 ->  no  10  -  0s  -1  forget
		30s   10/60s  1 ->  no   9  -    60s   1  store  1@1m30s
		90s   10/60s -1 ->  no  10  -    0s    0  forget
	`},
	{"UPTO takes what is left, and waits for the next window if that is nothing", `
		0s    10/60s   4 upto ->  no   6  -    60s   4  store  4@1m0s
		5s    10/60s 100 upto ->  no   0  -    55s   6  store  10@1m0s
		5s    10/60s 100 upto ->  yes  0  55s  55s   0  keep
		5s    10/60s   0 upto ->  no   0  -    55s   0  keep
		5s    10/60s  -3 upto ->  no   3  -    55s  -3  store  7@1m0s
	`},
	{"A clock set back makes no room and no new window", `
		100s  10/60s   4 ->  no   6  -     60s   4  store  4@2m40s
		40s   10/60s   7 ->  yes  6  120s  120s  0  keep
		40s   10/60s   6 ->  no   0  -     120s  6  store  10@2m40s
		160s  10/60s   1 ->  no   9  -     60s   1  store  1@3m40s
	`},
}

func TestQuota_rules(t *testing.T) {
	for _, r := range quotaRules {
		t.Run(r.rule, func(t *testing.T) {
			var s QuotaState
			for line := range strings.Lines(r.steps) {
				line = strings.Join(strings.Fields(line), " ")
				if line != "" {
					s = quotaStep(t, s, line)
				}
			}
		})
	}
}

// quotaStep runs one line of quotaRules and returns the state that it leaves.
func quotaStep(t *testing.T, s QuotaState, line string) QuotaState {
	t.Helper()
	left, right, _ := strings.Cut(line, " -> ")
	f := strings.Fields(left)
	limit, period, _ := strings.Cut(f[1], "/")
	c := quotaCall{
		now:      midnight + duration(t, f[0])/micro,
		limit:    number(t, limit),
		period:   duration(t, period) / micro,
		quantity: number(t, f[2]),
		upTo:     slices.Contains(f[3:], "upto"),
		align:    slices.Contains(f[3:], "align"),
	}
	if c.align {
		c.offset = duration(t, f[4]) / micro
	}
	f = strings.Fields(right)
	want := columns(t, strings.Join(f[:6], " ")) + " " + quotaText(s)
	if len(f) > 6 || f[5] == "forget" {
		want = columns(t, strings.Join(f[:6], " ")) + " " + strings.Join(f[6:], " ")
	}
	s, v := c.on(s)
	if got := verdict(v) + " " + quotaText(s); got != want {
		t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
	return s
}

func quotaText(s QuotaState) string {
	if s == (QuotaState{}) {
		return ""
	}
	return fmt.Sprint(s.Used, "@", time.Duration((s.End-midnight)*micro))
}

// quotaCall is one call of a fixed window.
type quotaCall struct {
	now, limit, period, quantity, offset int64
	align, upTo                          bool
}

// on makes the call on a state and returns the one that it leaves.
func (c quotaCall) on(s QuotaState) (QuotaState, Verdict) {
	if c.upTo {
		_, peek := Quota(c.now, s, c.limit, c.period, 0, c.align, c.offset)
		c.quantity = min(c.quantity, max(peek.Remaining, 1))
	}
	next, v := Quota(c.now, s, c.limit, c.period, c.quantity, c.align, c.offset)
	switch v.Change {
	case Store:
		return next, v
	case Forget:
		return QuotaState{}, v
	}
	return s, v
}

// slowQuota is the slow oracle: a window and the calls in it.
type slowQuota struct {
	end   int64
	calls []int64
}

// call decides as the specification says.
func (o *slowQuota) call(c quotaCall) Verdict {
	used, end := int64(0), int64(0)
	if c.now < o.end {
		end = o.end
		for _, n := range o.calls {
			used += n
		}
	}
	left := max(c.limit-used, 0)
	quantity := c.quantity
	if c.upTo && quantity > left {
		quantity = max(left, 1)
	}
	v := Verdict{RetryAfter: Never, Remaining: left}
	if end > 0 {
		v.ResetAfter = (end - c.now) * micro
	}
	switch {
	case quantity > c.limit:
		v.Limited = true
	case quantity >= 0 && used+quantity > c.limit:
		v.Limited, v.RetryAfter = true, v.ResetAfter
	case quantity < 0 && used+quantity <= 0:
		v = Verdict{RetryAfter: Never, Remaining: c.limit, Granted: -used, Change: Forget}
		*o = slowQuota{}
	case quantity != 0:
		if end == 0 {
			end = c.now + c.period
			if c.align {
				end = nextMultiple(c.now, c.period, c.offset)
			}
			*o = slowQuota{end: end}
		}
		o.calls = append(o.calls, quantity)
		v = Verdict{
			RetryAfter: Never,
			Remaining:  max(c.limit-used-quantity, 0),
			ResetAfter: (end - c.now) * micro,
			Granted:    quantity,
			Change:     Store,
		}
	}
	return v
}

// nextMultiple returns the first instant after now that is a multiple of period, plus offset.
func nextMultiple(now, period, offset int64) int64 {
	p := big.NewInt(period)
	n := new(big.Int).Div(big.NewInt(now-offset), p) // rounds down
	n.Add(n, big.NewInt(1)).Mul(n, p)
	return n.Add(n, big.NewInt(offset)).Int64()
}

// check compares a call with the oracle and its retry_after with what comes.
func (o *slowQuota) check(t testing.TB, s QuotaState, c quotaCall) (QuotaState, Verdict) {
	t.Helper()
	next, v := c.on(s)
	if want := o.call(c); v != want {
		t.Fatalf("%+v on %+v =\n%+v, want\n%+v", c, s, v, want)
	}
	if v.Change == Store && (next.Used < 1 || next.End <= c.now) || v.Change == Keep && next != s {
		t.Fatalf("%+v on %+v left %+v", c, s, next)
	}
	if v.RetryAfter != Never {
		again := c
		again.now += v.RetryAfter / micro
		if _, v := again.on(next); v.Limited {
			t.Fatalf("%+v on %+v: waited, and %+v", c, s, v)
		}
		again.now--
		if _, v := again.on(next); !v.Limited {
			t.Fatalf("%+v on %+v: 1 us early, and %+v", c, s, v)
		}
	}
	return next, v
}

func TestQuota_agreesWithOracle(t *testing.T) {
	limited, forgotten, windows := 0, 0, 0
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		var state QuotaState
		var o slowQuota
		s.refundsToo, s.upTo, s.setsBack = s.IntN(4) > 0, true, s.IntN(3) == 0
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
		if s.IntN(4) == 0 {
			s.now = s.logUniform(originMicros) // in front of most offsets
		}
		align := s.IntN(2) == 0
		for range 100 {
			c := s.call()
			if s.oneIn(s.newLimits * 2) {
				align = !align
			}
			before := state
			state, s.last = o.check(t, state, quotaCall{c.now, c.limit, c.period, c.quantity, s.offset, align, c.upTo})
			switch {
			case s.last.RetryAfter != Never:
				limited++
			case s.last.Change == Forget:
				forgotten++
			case state.End != before.End:
				windows++
			}
		}
	})
	if !t.Failed() && min(limited, forgotten, windows) < 2000 {
		t.Errorf("%d limited calls, %d refunds of all and %d windows prove nothing", limited, forgotten, windows)
	}
}

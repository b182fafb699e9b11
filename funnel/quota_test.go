package funnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// midnight is the instant that quotaRules call 0, in µs: 2023-11-14 00:00 UTC.
const midnight funnel.Micros = 1_699_920_000_000_000

// quotaRules are the specification of Quota as steps on one fixed window, none at first:
//
//	now limit/period quantity [align offset] [upto] -> limited remaining retry_after reset_after granted change [state]
//
// The state is what the call leaves: the units used and when the window ends. Where it
// is left out, it must be as before.
var quotaRules = []struct{ rule, steps string }{
	{"A window starts at the first admitted call and at its end a new one does", `
		0s          10/60s   0 ->  no  10  -    0s    0  keep
		0s          10/60s  11 ->  yes 10  never    0s    0  keep
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
	{"The offset of ALIGN moves the ends of windows later or earlier", `
		10s   10/60s   1 align 15s          ->  no   9  -  5s   1  store   1@15s
		15s   10/60s   1 align 15s          ->  no   9  -  60s  1  store   1@1m15s
		75s   10/60s   1 align -15s         ->  no   9  -  30s  1  store   1@1m45s
		105s  10/60s   1 align 75s          ->  no   9  -  30s  1  store   1@2m15s
		135s  10/60s   1 align -59.999999s  ->  no   9  -  45.000001s  1  store   1@3m0.000001s
		12h   10/24h   1 align -2h          ->  no   9  -  10h  1  store   1@22h0m0s
	`},
	{"The offset of ALIGN may be longer than the time since the epoch", `
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
		0s    10/60s -1 ->  no  10  -    0s    0  keep
		0s    10/60s  4 ->  no   6  -    60s   4  store  4@1m0s
		10s   10/60s -1 ->  no   7  -    50s  -1  store  3@1m0s
		10s    2/60s -0 ->  yes  0  50s  50s   0  keep
		10s    2/60s -1 ->  no   0  -    50s  -1  store  2@1m0s
		20s   10/60s -3 ->  no  10  -    0s   -2  forget
		30s   10/60s  1 ->  no   9  -    60s   1  store  1@1m30s
		30s   10/60s -1000000000001 ->  no  10  -  0s  -1  forget
		30s   10/60s  1 ->  no   9  -    60s   1  store  1@1m30s
		90s   10/60s -1 ->  no  10  -    0s    0  keep
	`},
	{"UPTO takes what is left, and waits for the next window if that is nothing", `
		0s    10/60s   4 upto ->  no   6  -    60s   4  store  4@1m0s
		5s    10/60s 100 upto ->  no   0  55s  55s   6  store  10@1m0s
		5s    10/60s 100 upto ->  yes  0  55s  55s   0  keep
		5s    10/60s   0 upto ->  no   0  -    55s   0  keep
		5s    10/60s  -3 upto ->  no   3  -    55s  -3  store  7@1m0s
	`},
	{"UPTO waits for the end of the window that the call starts", `
		7s    10/60s  11 upto          ->  no   0  60s  60s  10  store  10@1m7s
		67s   10/60s  11 upto align 0s ->  no   0  53s  53s  10  store  10@2m0s
		80s    9/60s   9 upto          ->  yes  0  40s  40s   0  keep
		120s  10/60s  10 upto          ->  no   0  -    60s  10  store  10@3m0s
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
			q := quotaOf(funnel.QuotaState{})
			for line := range strings.Lines(r.steps) {
				line = strings.Join(strings.Fields(line), " ")
				if line != "" {
					q.step(t, line)
				}
			}
		})
	}
}

// step runs one line of quotaRules.
func (q *quota) step(t *testing.T, line string) {
	t.Helper()
	left, right, _ := strings.Cut(line, " -> ")
	f := strings.Fields(left)
	limit, period, _ := strings.Cut(f[1], "/")
	p := funnel.QuotaParams{
		Limit:    number(t, limit),
		Period:   duration(t, period).Micros(),
		Quantity: number(t, f[2]),
		UpTo:     slices.Contains(f[3:], "upto"),
	}
	if i := slices.Index(f, "align"); i > 0 {
		p.Align, p.Offset = true, duration(t, f[i+1]).Micros()
	}
	now := midnight + duration(t, f[0]).Micros()
	f = strings.Fields(right)
	want := columns(t, strings.Join(f[:6], " ")) + " " + quotaText(q.state)
	if len(f) > 6 || f[5] == "forget" {
		want = columns(t, strings.Join(f[:6], " ")) + " " + strings.Join(f[6:], " ")
	}
	v := q.call(t, now, p)
	if got := verdictText(v) + " " + quotaText(q.state); got != want {
		t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
}

func quotaText(s funnel.QuotaState) string {
	if s == (funnel.QuotaState{}) {
		return ""
	}
	return fmt.Sprint(s.Used, "@", time.Duration(s.End-midnight)*time.Microsecond)
}

// quota is a fixed window and its oracle, which must agree after every call.
type quota struct {
	state  funnel.QuotaState
	oracle *oracle.Quota
}

// quotaOf returns a fixed window in any state.
func quotaOf(s funnel.QuotaState) *quota { return &quota{s, oracle.NewQuota(s.Used, s.End)} }

// decide makes a call and returns the state that the call leaves.
func (q *quota) decide(now funnel.Micros, p funnel.QuotaParams) (funnel.QuotaState, funnel.Verdict) {
	next, v := funnel.Quota(now, q.state, p)
	switch v.Change {
	case funnel.Store:
		return next, v
	case funnel.Forget:
		return funnel.QuotaState{}, v
	}
	return q.state, v
}

// call makes a call on both, compares the verdicts and what is stored, and checks RetryAfter.
func (q *quota) call(t testing.TB, now funnel.Micros, p funnel.QuotaParams) (v funnel.Verdict) {
	t.Helper()
	before := q.state
	q.state, v = q.decide(now, p)
	if want := q.oracle.Call(now, p); !agree(v, want) {
		t.Fatalf("Quota(%d, %+v, %+v) =\n%+v, want\n%+v", now, before, p, v, want)
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v)
	used, end := q.oracle.State()
	if stored := (funnel.QuotaState{Used: used, End: end}); q.state != stored {
		t.Fatalf("Quota(%d, %+v, %+v) left %+v, want %+v", now, before, p, q.state, stored)
	}
	if v.RetryAfter > 0 {
		at := now + v.RetryAfter.Micros()
		if _, v := q.decide(at, p); v.Limited {
			t.Fatalf("Quota(%d, %+v, %+v): waited, and %+v", at, q.state, p, v)
		}
		if _, v := q.decide(at-1, p); !v.Limited {
			t.Fatalf("Quota(%d, %+v, %+v): 1 us early, and %+v", at-1, q.state, p, v)
		}
	}
	return v
}

func TestQuota_agreesWithOracle(t *testing.T) {
	limited, forgotten, windows, partials, debts, tooMuch := 0, 0, 0, 0, 0, 0
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		q := quotaOf(funnel.QuotaState{})
		s.refundsToo, s.upTo, s.setsBack, s.force = s.IntN(4) > 0, true, s.IntN(3) == 0, s.IntN(2) == 0
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
		if s.IntN(4) == 0 {
			s.now = logUniform(s.Rand, originMicros) // in front of most offsets
		} else if s.IntN(8) == 0 {
			s.now = lastMicros - logUniform(s.Rand, maxPeriodMicros)
		}
		if s.force && s.IntN(2) == 0 {
			used := funnel.MaxInUse - logUniform[int64](s.Rand, s.limit)
			q = quotaOf(funnel.QuotaState{Used: used, End: s.now + 1 + s.below(s.period)})
		}
		align := s.IntN(2) == 0
		for range 100 {
			c := s.call()
			if s.oneIn(s.newLimits * 2) {
				align = !align
			}
			end := q.state.End
			s.last = q.call(t, c.now, funnel.QuotaParams{
				Limit: c.Limit, Period: c.Period, Quantity: c.Quantity, UpTo: c.UpTo, Force: c.Force,
				Align: align, Offset: s.offset,
			})
			switch {
			case s.last.TooMuch:
				tooMuch++
			case c.Force && q.state.Used > c.Limit && s.last.Granted > 0:
				debts++
			case s.last.Limited:
				limited++
			case partial(c.Quantity, s.last):
				partials++
			case s.last.Change == funnel.Forget:
				forgotten++
			case q.state.End != end:
				windows++
			}
		}
	})
	if !t.Failed() && (min(limited, windows) < 2000 || forgotten < 1000 || min(partials, debts) < 500 || tooMuch < 20) {
		t.Errorf("%d limited calls, %d refunds of all, %d windows, %d partial grants, %d debts, %d of them too large prove nothing",
			limited, forgotten, windows, partials, debts, tooMuch)
	}
}

// FuzzQuota makes a call on any fixed window, and the same call a while later.
func FuzzQuota(f *testing.F) {
	seed := func(now, used, end, limit, period, quantity, offset int64, align bool, wait int64) {
		for option := range uint8(3) {
			f.Add(now, used, end, limit, period, quantity, offset, align, option, wait)
		}
	}
	const start, years = int64(originMicros), int64(maxPeriodMicros)
	seed(start, 0, 0, 10, 60e6, 1, 0, false, 60e6)
	seed(start, 7, start+9, 10, 60e6, 4, 5, true, 8)
	seed(start, 7, start, 10, 60e6, -4, -5, true, 0)
	seed(1, 7, 9, 5, 1000, 0, years, true, 7)
	seed(start, funnel.MaxInUse-4, start+9, 10, 60e6, 4, 5, true, 8)
	seed(1<<52, 1, 1<<53, funnel.MaxLimit, years, funnel.MaxLimit+1, -years, true, 7)
	f.Fuzz(func(
		t *testing.T,
		now, used, end, limit, period, quantity, offset int64, align bool, option uint8, wait int64,
	) {
		var s funnel.QuotaState
		if used != 0 {
			s = funnel.QuotaState{Used: within(used, 1, funnel.MaxInUse), End: within(funnel.Micros(end), 1, 1<<53)}
		}
		at := within(funnel.Micros(now), 0, lastMicros)
		p := funnel.QuotaParams{
			Limit:    within(limit, 1, funnel.MaxLimit),
			Period:   within(funnel.Micros(period), 1000, maxPeriodMicros),
			Quantity: within(quantity, -funnel.MaxLimit-1, funnel.MaxLimit+1),
			UpTo:     option%3 == 1,
			Force:    option%3 == 2,
			Align:    align,
			Offset:   within(funnel.Micros(offset), -maxPeriodMicros, maxPeriodMicros),
		}
		q := quotaOf(s)
		q.call(t, at, p)
		q.call(t, at+within(funnel.Micros(wait), 0, lastMicros-at), p)
	})
}

package funnel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// originMicros is origin in the unit of windows, quotas and leases.
const originMicros = origin / micro

// windowRules are the specification of Window as steps on one window, empty at first:
//
//	now limit/period quantity [exact] [upto] -> limited remaining retry_after reset_after granted change [log]
//
// The log is what the call leaves: of each entry its time, its units and, if the newest
// one says so, how many of all units are in use at most. Where it is left out, it must be
// as before. A line "total N" starts a window of which the totals go on from N.
var windowRules = []struct{ rule, steps string }{
	{"What fits fits exactly and leaves a period after it came", `
		0s          10/60s   4 ->  no   6  -    60s   4  store  0s+4
		0s          10/60s   6 ->  no   0  -    60s   6  store  0s+10
		0s          10/60s   1 ->  yes  0  60s  60s   0  keep
		59.999999s  10/60s   1 ->  yes  0  1us  1us   0  keep
		60s         10/60s   0 ->  no  10  -    0s    0  keep
		60s         10/60s  10 ->  no   0  -    60s  10  store  1m0s+10
	`},
	{"Units come back as the calls that took them leave", `
		0s   10/60s   5 ->  no   5  -    60s  5  store  0s+5
		20s  10/60s   3 ->  no   2  -    60s  3  store  0s+5 20s+3
		30s  10/60s   2 ->  no   0  -    60s  2  store  0s+5 20s+3 30s+2
		30s  10/60s   1 ->  yes  0  30s  60s  0  keep
		30s  10/60s   5 ->  yes  0  30s  60s  0  keep
		30s  10/60s   6 ->  yes  0  50s  60s  0  keep
		30s  10/60s   8 ->  yes  0  50s  60s  0  keep
		30s  10/60s   9 ->  yes  0  60s  60s  0  keep
		30s  10/60s  10 ->  yes  0  60s  60s  0  keep
		60s  10/60s   0 ->  no   5  -    30s  0  keep
		60s  10/60s   5 ->  no   0  -    60s  5  store  20s+3 30s+2 1m0s+5
		60s  10/60s   1 ->  yes  0  20s  60s  0  keep
	`},
	{"Calls in the same microsecond all count and share an entry", `
		0s   3/60s  1 ->  no   2  -    60s        1  store  0s+1
		0s   3/60s  1 ->  no   1  -    60s        1  store  0s+2
		1us  3/60s  1 ->  no   0  -    60s        1  store  0s+2 1µs+1
		1us  3/60s  1 ->  yes  0  59.999999s 60s  0  keep
		60s  3/60s  3 ->  yes  2  1us  1us        0  keep
	`},
	{"A denied call leaves no trace, so a client that hammers recovers", `
		0s   1/10s  1 ->  no   0  -    10s  1  store  0s+1
		2s   1/10s  1 ->  yes  0  8s   8s   0  keep
		9s   1/10s  1 ->  yes  0  1s   1s   0  keep
		10s  1/10s  1 ->  no   0  -    10s  1  store  10s+1
	`},
	{"A peek changes nothing and is limited only while more than the limit is in use", `
		0s    9/60s  0 ->  no   9  -    0s    0  keep
		0s    9/60s  3 ->  no   6  -    60s   3  store  0s+3
		10s   9/60s  6 ->  no   0  -    60s   6  store  0s+3 10s+6
		10s   9/60s  0 ->  no   0  -    60s   0  keep
		10s   6/60s  0 ->  yes  0  50s  60s   0  keep
		10s   5/60s  0 ->  yes  0  60s  60s   0  keep
		60s   6/60s  0 ->  no   0  -    10s   0  keep
		60s   5/60s  0 ->  yes  0  10s  10s   0  keep
		60s   9/60s  0 ->  no   3  -    10s   0  keep
	`},
	{"More than the limit is never admitted and leaves no trace", `
		0s   5/10s  6             ->  yes  5  -  0s    0  keep
		0s   5/10s  2             ->  no   3  -  10s   2  store  0s+2
		0s   5/10s  1000000000001 ->  yes  3  -  10s   0  keep
		5s   5/10s  6             ->  yes  3  -  5s    0  keep
	`},
	{"UPTO takes what is left, and waits for one unit if that is nothing", `
		0s   10/60s   4 upto            ->  no   6  -    60s   4  store  0s+4
		5s   10/60s 100 upto            ->  no   0  -    60s   6  store  0s+4 5s+6
		5s   10/60s   9 upto            ->  yes  0  55s  60s   0  keep
		5s   10/60s   1000000000001 upto -> yes  0  55s  60s   0  keep
		5s   10/60s   0 upto            ->  no   0  -    60s   0  keep
		5s    4/60s   2 upto            ->  yes  0  60s  60s   0  keep
		60s  10/60s 100 upto            ->  no   0  -    60s   4  store  5s+6 1m0s+4
		60s  10/60s  -3 upto            ->  no   3  -    60s  -3  store  5s+6 1m0s+4(7)
	`},
	{"A refund takes from the oldest units", `
		0s   10/60s  3 ->  no   7  -    60s   3  store  0s+3
		10s  10/60s  4 ->  no   3  -    60s   4  store  0s+3 10s+4
		20s  10/60s -2 ->  no   5  -    50s  -2  store  0s+3 10s+4(5)
		20s  10/60s  6 ->  yes  5  40s  50s   0  keep
		20s  10/60s  8 ->  yes  5  50s  50s   0  keep
		20s  10/60s -1 ->  no   6  -    50s  -1  store  0s+3 10s+4(4)
		// Another call clears away what was given back.
		20s  10/60s  1 ->  no   5  -    60s   1  store  10s+4 20s+1(5)
		21s  10/60s  1 ->  no   4  -    60s   1  store  10s+4 20s+1 21s+1
	`},
	{"What a refund leaves stays for its full time, whichever call it undid", `
		0s   10/60s  5 ->  no   5  -    60s   5  store  0s+5
		30s  10/60s  5 ->  no   0  -    60s   5  store  0s+5 30s+5
		30s  10/60s -5 ->  no   5  -    60s  -5  store  0s+5 30s+5(5)
		60s  10/60s  6 ->  yes  5  30s  30s   0  keep
		90s  10/60s  6 ->  no   4  -    60s   6  store  1m30s+6
	`},
	{"What a refund took out of an entry does not leave again", `
		0s   10/60s  5 ->  no   5  -    60s   5  store  0s+5
		30s  10/60s  5 ->  no   0  -    60s   5  store  0s+5 30s+5
		30s  10/60s -3 ->  no   3  -    60s  -3  store  0s+5 30s+5(7)
		40s  10/60s  1 ->  no   2  -    60s   1  store  0s+5 30s+5 40s+1(8)
		60s  10/60s  0 ->  no   4  -    40s   0  keep
		60s  10/60s  1 ->  no   3  -    60s   1  store  30s+5 40s+1 1m0s+1
	`},
	{"A refund goes no further than full, and then nothing is left", `
		0s   10/60s -1             ->  no  10  -  0s    0  forget
		0s   10/60s  3             ->  no   7  -  60s   3  store  0s+3
		9s   10/60s -3             ->  no  10  -  0s   -3  forget
		9s   10/60s  3             ->  no   7  -  60s   3  store  9s+3
		9s   10/60s -1000000000001 ->  no  10  -  0s   -3  forget
		9s   10/60s  3             ->  no   7  -  60s   3  store  9s+3
		70s  10/60s -1             ->  no  10  -  0s    0  forget
	`},
	{"A refund is admitted even if more than the limit is in use", `
		0s   9/60s  9 ->  no   0  -    60s   9  store  0s+9
		0s   5/60s -2 ->  no   0  -    60s  -2  store  0s+9(7)
		0s   5/60s  1 ->  yes  0  60s  60s   0  keep
		0s   5/60s -7 ->  no   5  -    0s   -7  forget
	`},
	{"An entry never holds more than is in use", `
		0s   10/60s 10 ->  no   0  -    60s  10  store  0s+10
		0s   10/60s -9 ->  no   9  -    60s  -9  store  0s+10(1)
		0s   10/60s  5 ->  no   4  -    60s   5  store  0s+6(6)
		0s   10/60s -5 ->  no   9  -    60s  -5  store  0s+6(1)
		1s   10/60s  2 ->  no   7  -    60s   2  store  0s+6 1s+2(3)
	`},
	{"Above 120, calls in the same 120th part of the period share an entry", `
		0s          120/120s  1 ->  no  119  -  120s  1  store  0s+1
		1us         120/120s  1 ->  no  118  -  120s  1  store  0s+1 1µs+1
		500ms       121/120s  1 ->  no  118  -  120s  1  store  0s+1 500ms+2
		999.999ms   121/120s  1 ->  no  117  -  120s  1  store  0s+1 999.999ms+3
		1s          121/120s  1 ->  no  116  -  120s  1  store  0s+1 999.999ms+3 1s+1
		1.5s        120/120s  1 ->  no  114  -  120s  1  store  0s+1 999.999ms+3 1s+1 1.5s+1
	`},
	{"A shared entry leaves when its newest call does, at most a part late", `
		0s          1000/120s  400 ->  no   600  -        120s         400  store  0s+400
		999.999ms   1000/120s  600 ->  no   0    -        120s         600  store  999.999ms+1000
		1s          1000/120s  1   ->  yes  0    119.999999s 119.999999s 0  keep
		120s        1000/120s  1   ->  yes  0    999.999ms   999.999ms   0  keep
		120.999999s 1000/120s  1   ->  no   999  -        120s           1  store  2m0.999999s+1
	`},
	{"EXACT gives every microsecond its entry", `
		0s   1000/120s  1 exact ->  no  999  -  120s  1  store  0s+1
		1us  1000/120s  1 exact ->  no  998  -  120s  1  store  0s+1 1µs+1
		2us  1000/120s  1       ->  no  997  -  120s  1  store  0s+1 2µs+2
		2us  1000/120s  1 exact ->  no  996  -  120s  1  store  0s+1 2µs+3
		3us  1000/120s  1 exact ->  no  995  -  120s  1  store  0s+1 2µs+3 3µs+1
	`},
	{"A raised limit leaves room at once, a lowered one forgets nothing", `
		0s      100/120s    60  ->  no      40  -       120s     60   store  0s+60
		200ms   100/120s    40  ->  no       0  -       120s     40   store  0s+60 200ms+40
		300ms   10000/120s 5000 ->  no    4900  -       120s   5000   store  0s+60 300ms+5040
		400ms   100/120s    1   ->  yes      0  119.9s  119.9s    0   keep
		120s    100/120s    1   ->  yes      0  300ms   300ms     0   keep
		120.3s  100/120s    100 ->  no       0  -       120s    100   store  2m0.3s+100
	`},
	{"A longer period starts from what the shorter one kept", `
		0s   10/60s  4 ->  no  6  -  60s  4  store  0s+4
		45s  10/60s  2 ->  no  4  -  60s  2  store  0s+4 45s+2
		// A peek lets nothing go, an admitted call does.
		50s  10/10s  0 ->  no  8  -  5s   0  keep
		50s  10/60s  0 ->  no  4  -  55s  0  keep
		50s  10/10s  3 ->  no  5  -  10s  3  store  45s+2 50s+3
		50s  10/60s  0 ->  no  5  -  60s  0  keep
		55s  10/5s  -1 ->  no 10  -  0s   0  forget
	`},
	{"A window whose clock was set back counts on from its newest call", `
		100s  10/60s  4 ->  no   6  -    60s  4  store  1m40s+4
		90s   10/60s  4 ->  no   2  -    70s  4  store  1m40s+8
		90s   10/60s  3 ->  yes  2  70s  70s  0  keep
		10s   10/60s  0 ->  no   2  -   150s  0  keep
		160s  10/60s  3 ->  no   7  -    60s  3  store  2m40s+3
	`},
	{"Totals go round at 2^64", `
		total 18446744073709551610
		0s   10/60s  4 ->  no   6  -    60s   4  store  0s+4
		10s  10/60s  5 ->  no   1  -    60s   5  store  0s+4 10s+5
		10s  10/60s  2 ->  yes  1  50s  60s   0  keep
		10s  10/60s  6 ->  yes  1  60s  60s   0  keep
		10s  10/60s -4 ->  no   5  -    60s  -4  store  0s+4 10s+5(5)
		20s  10/60s  5 ->  no   0  -    60s   5  store  10s+5 20s+5(10)
		70s  10/60s  5 ->  no   0  -    60s   5  store  20s+5 1m10s+5
	`},
}

func TestWindow_rules(t *testing.T) {
	for _, r := range windowRules {
		t.Run(r.rule, func(t *testing.T) {
			var l windowLog
			for line := range strings.Lines(r.steps) {
				line = strings.Join(strings.Fields(line), " ")
				var total uint64
				if n, _ := fmt.Sscanf(line, "total %d", &total); n == 1 {
					l = newWindowLog(total)
				} else if line != "" && !strings.HasPrefix(line, "//") {
					l.step(t, line)
				}
			}
		})
	}
}

// step runs one line of windowRules.
func (l *windowLog) step(t *testing.T, line string) {
	t.Helper()
	left, right, _ := strings.Cut(line, " -> ")
	f := strings.Fields(left)
	limit, period, _ := strings.Cut(f[1], "/")
	c := windowCall{
		now:      originMicros + duration(t, f[0])/micro,
		limit:    number(t, limit),
		period:   duration(t, period) / micro,
		quantity: number(t, f[2]),
		exact:    slices.Contains(f[3:], "exact"),
		upTo:     slices.Contains(f[3:], "upto"),
	}
	f = strings.Fields(right)
	want := columns(t, strings.Join(f[:6], " ")) + " " + l.String()
	if len(f) > 6 || f[5] == "forget" {
		want = columns(t, strings.Join(f[:6], " ")) + " " + strings.Join(f[6:], " ")
	}
	v := l.call(t, c)
	if got := verdict(v.Verdict) + " " + l.String(); got != want {
		t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
}

// windowCall is one call of a window.
type windowCall struct {
	now, limit, period, quantity int64
	exact, upTo                  bool
}

// clearMost is how many dead entries commands/windowlog.go clears away at most.
const clearMost = 128

// windowLog is a sliding window's log in memory, kept by the verdicts as
// commands/windowlog.go keeps it in a sorted set, but without any shortcut.
type windowLog struct {
	entries []WindowEntry // by time
}

// newWindowLog returns a log without a live entry, of which the totals go on from total.
func newWindowLog(total uint64) windowLog {
	return windowLog{[]WindowEntry{{Total: total, Weight: 1}}}
}

func (l *windowLog) String() string {
	var parts []string
	for _, e := range l.entries {
		part := fmt.Sprint(time.Duration((e.Time-originMicros)*micro), "+", e.Weight)
		if e.Kept > 0 && e == l.entries[len(l.entries)-1] {
			part += fmt.Sprint("(", e.Kept, ")")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// state finds the two entries that decide.
func (l *windowLog) state(now, period int64) (s WindowState) {
	if len(l.entries) > 0 {
		s.Newest = l.entries[len(l.entries)-1]
	}
	for _, e := range l.entries {
		if e.Time > now-period {
			s.Oldest = e
			break
		}
	}
	return s
}

// decide makes a call without applying what it changes.
func (l *windowLog) decide(t testing.TB, c windowCall) (WindowState, WindowEntry, WindowVerdict) {
	t.Helper()
	s := l.state(c.now, c.period)
	if s.Oldest.Weight > 0 && !s.Sound() {
		t.Fatalf("not sound: %+v of %s", s, l)
	}
	if c.upTo {
		_, peek := Window(c.now, s, c.limit, c.period, 0, c.exact)
		c.quantity = min(c.quantity, max(peek.Remaining, 1))
	}
	next, v := Window(c.now, s, c.limit, c.period, c.quantity, c.exact)
	if v.Wait {
		i := slices.IndexFunc(l.entries, func(e WindowEntry) bool {
			return e.Time >= s.Oldest.Time && int64(e.Total-v.Lapse) >= 0
		})
		if i < 0 {
			t.Fatalf("%+v waits for what is not there: %+v of %s", c, v, l)
		}
		v.RetryAfter = (l.entries[i].Time + c.period - c.now) * micro
	}
	return s, next, v
}

// call makes a call and applies what it changes.
func (l *windowLog) call(t testing.TB, c windowCall) WindowVerdict {
	t.Helper()
	s, next, v := l.decide(t, c)
	switch v.Change {
	case Forget:
		l.entries = nil
	case Store:
		gone := 0
		for gone < min(clearMost, len(l.entries)) && s.Gone(l.entries[gone], c.now, c.period) {
			gone++
		}
		kept := slices.Clone(l.entries[gone:])
		if v.Share {
			if len(kept) == 0 {
				t.Fatalf("%+v shares with none", c)
			}
			kept = kept[:len(kept)-1]
		}
		l.entries = append(kept, next)
		if n := len(kept); n > 0 && kept[n-1].Time >= next.Time {
			t.Fatalf("%+v leaves entries out of order: %s", c, l)
		}
	}
	return v
}

// retried checks that retry_after is enough and not a microsecond too much.
func (l *windowLog) retried(t testing.TB, c windowCall, v WindowVerdict) {
	t.Helper()
	if v.RetryAfter == Never {
		return
	}
	if v.RetryAfter <= 0 || !v.Limited {
		t.Fatalf("%+v retries without need: %+v", c, v)
	}
	c.now += v.RetryAfter / micro
	if _, _, v := l.decide(t, c); v.Limited {
		t.Fatalf("%+v: waited, and %+v of %s", c, v, l)
	}
	c.now--
	if _, _, v := l.decide(t, c); !v.Limited {
		t.Fatalf("%+v: 1 us early, and %+v of %s", c, v, l)
	}
}

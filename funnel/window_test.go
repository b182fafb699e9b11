package funnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// windowRules are the specification of Window as steps on one window, empty at first:
//
//	now limit/period quantity [exact] [upto] -> limited remaining retry_after reset_after granted change [log]
//
// The log is what the call leaves. Each entry has its time and its units. In parentheses
// follows how many units are in use at most, if the newest entry says so. A step without a log
// leaves the log as it was.
//
// A line "total N" starts a window whose totals go on from N. A line "keep the log" makes a
// refund of everything keep the log.
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
		0s   5/10s  6             ->  yes  5  never  0s    0  keep
		0s   5/10s  2             ->  no   3  -  10s   2  store  0s+2
		0s   5/10s  1000000000001 ->  yes  3  never  10s   0  keep
		5s   5/10s  6             ->  yes  3  never  5s    0  keep
	`},
	{"UPTO takes what is left, and waits for one unit if that is nothing", `
		0s   10/60s   4 upto            ->  no   6  -    60s   4  store  0s+4
		5s   10/60s 100 upto            ->  no   0  55s  60s   6  store  0s+4 5s+6
		5s   10/60s   9 upto            ->  yes  0  55s  60s   0  keep
		5s   10/60s   1000000000001 upto -> yes  0  55s  60s   0  keep
		5s   10/60s   0 upto            ->  no   0  -    60s   0  keep
		5s    4/60s   2 upto            ->  yes  0  60s  60s   0  keep
		60s  10/60s 100 upto            ->  no   0  5s   60s   4  store  5s+6 1m0s+4
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
		0s   10/60s -1             ->  no  10  -  0s    0  keep
		0s   10/60s  3             ->  no   7  -  60s   3  store  0s+3
		9s   10/60s -3             ->  no  10  -  0s   -3  forget
		9s   10/60s  3             ->  no   7  -  60s   3  store  9s+3
		9s   10/60s -1000000000001 ->  no  10  -  0s   -3  forget
		9s   10/60s  3             ->  no   7  -  60s   3  store  9s+3
		70s  10/60s -1             ->  no  10  -  0s    0  keep
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
		// A refund of nothing lets nothing go either.
		55s  10/5s  -1 ->  no 10  -  0s   0  keep
		55s  10/60s  0 ->  no  5  -  55s  0  keep
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
	{"UPTO waits for the new entry if the new entry is all that is in use", `
		0s    10/60s 100 upto  ->  no   0  60s  60s  10  store  0s+10
		60s   10/60s  11 upto  ->  no   0  60s  60s  10  store  1m0s+10
		200s  10/60s  11 upto  ->  no   0  60s  60s  10  store  3m20s+10
	`},
	{"UPTO waits for the newest entry if the call shares it", `
		0s         10/60s      4        ->  no   6    -     60s   4    store  0s+4
		0s         10/60s      9 upto   ->  no   0    60s   60s   6    store  0s+10
		181s        1000/120s  400      ->  no   600  -     120s  400  store  3m1s+400
		181.999999s 1000/120s  700 upto ->  no   0    120s  120s  600  store  3m1.999999s+1000
		182s        1000/120s  1 upto   ->  yes  0    119.999999s 119.999999s  0  keep
	`},
	{"UPTO waits for an older entry if the call shares the newest one", `
		0s     1000/120s  1         ->  no   999  -     120s  1    store  0s+1
		1s     1000/120s  400       ->  no   599  -     120s  400  store  0s+1 1s+400
		1.5s   1000/120s  700 upto  ->  no   0    118.5s 120s 599  store  0s+1 1.5s+999
	`},
	{"UPTO after a refund waits for what is still in use", `
		0s   10/60s   5      ->  no   5  -    60s   5  store  0s+5
		30s  10/60s   5      ->  no   0  -    60s   5  store  0s+5 30s+5
		30s  10/60s  -5      ->  no   5  -    60s  -5  store  0s+5 30s+5(5)
		40s  10/60s   9 upto ->  no   0  50s  60s   5  store  30s+5 40s+5(10)
		40s  10/60s  -7      ->  no   7  -    60s  -7  store  30s+5 40s+5(3)
		40s  10/60s   9 upto ->  no   0  60s  60s   7  store  40s+10(10)
	`},
	{"UPTO while the clock is set back waits as long as the newest call", `
		100s  10/60s  4      ->  no   6  -    60s  4  store  1m40s+4
		90s   10/60s  9 upto ->  no   0  70s  70s  6  store  1m40s+10
	`},
	{"A log that is kept after a refund of everything counts for nothing", `
		keep the log
		0s   10/60s  3 ->  no   7  -     60s   3  store   0s+3
		9s   10/60s -3 ->  no  10  -     0s   -3  forget  0s+3(0)
		9s   10/60s  0 ->  no  10  -     0s    0  keep
		9s   10/60s 11 ->  yes 10  never 0s    0  keep
		9s   10/60s -1 ->  no  10  -     0s    0  keep
		20s  10/60s  4 ->  no   6  -     60s   4  store   20s+4(4)
		21s  10/60s  2 ->  no   4  -     60s   2  store   20s+4 21s+2
		22s  10/60s -9 ->  no  10  -     0s   -6  forget  20s+4 21s+2(0)
		22s  10/60s 99 upto -> no  0  60s  60s  10  store   22s+10(10)
	`},
	{"A log that is kept may share its newest entry, and shares no units that were given back", `
		keep the log
		0s     1000/120s  400 ->  no   600   -  120s   400  store   0s+400
		500ms  1000/120s -400 ->  no   1000  -  0s    -400  forget  0s+400(0)
		600ms  1000/120s    7 ->  no   993   -  120s     7  store   600ms+7(7)
		600ms  1000/120s   -7 ->  no   1000  -  0s      -7  forget  600ms+7(0)
		600ms  1000/120s    9 ->  no   991   -  120s     9  store   600ms+9(9)
	`},
	{"A log that is kept may have lapsed", `
		keep the log
		0s   10/60s  3 ->  no   7  -  60s   3  store   0s+3
		70s  10/60s -1 ->  no  10  -  0s    0  keep
		80s  10/60s  2 ->  no   8  -  60s   2  store   1m20s+2
	`},
}

func TestWindow_rules(t *testing.T) {
	for _, r := range windowRules {
		t.Run(r.rule, func(t *testing.T) {
			var l windowLog
			var o oracle.Window
			for line := range strings.Lines(r.steps) {
				line = strings.Join(strings.Fields(line), " ")
				var total uint64
				if n, _ := fmt.Sscanf(line, "total %d", &total); n == 1 {
					l = newWindowLog(total)
				} else if line == "keep the log" {
					l.keepsEmpty = true
				} else if line != "" && !strings.HasPrefix(line, "//") {
					l.step(t, &o, line)
				}
			}
		})
	}
}

// step runs one line of windowRules.
func (l *windowLog) step(t *testing.T, o *oracle.Window, line string) {
	t.Helper()
	left, right, _ := strings.Cut(line, " -> ")
	f := strings.Fields(left)
	limit, period, _ := strings.Cut(f[1], "/")
	c := windowCall{originMicros + duration(t, f[0]).Micros(), funnel.WindowParams{
		Limit:    number(t, limit),
		Period:   duration(t, period).Micros(),
		Quantity: number(t, f[2]),
		Exact:    slices.Contains(f[3:], "exact"),
		UpTo:     slices.Contains(f[3:], "upto"),
	}}
	f = strings.Fields(right)
	want := columns(t, strings.Join(f[:6], " ")) + " " + l.String()
	if len(f) > 6 || f[5] == "forget" {
		want = columns(t, strings.Join(f[:6], " ")) + " " + strings.Join(f[6:], " ")
	}
	v := l.call(t, c)
	if got := verdictText(v.Verdict) + " " + l.String(); got != want {
		t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
	if want := o.Call(c.now, c.WindowParams); v.Verdict != want {
		t.Errorf("%s\n got    %s\noracle %s", line, verdictText(v.Verdict), verdictText(want))
	}
	l.retried(t, c, v)
}

// A log that is kept after a refund of everything still has the time of its newest entry: no
// later entry comes before it.
func TestWindow_emptiedWithClockSetBack(t *testing.T) {
	l := windowLog{keepsEmpty: true}
	p := funnel.WindowParams{Limit: 10, Period: 60e6, Quantity: 4}
	l.call(t, windowCall{originMicros + 100e6, p})
	p.Quantity = -4
	l.call(t, windowCall{originMicros + 100e6, p})
	p.Quantity = 3
	v := l.call(t, windowCall{originMicros + 90e6, p})
	if got := l.String(); got != "1m40s+3(3)" || v.ResetAfter != 70e9 || v.Remaining != 7 {
		t.Errorf("%s, %+v", got, v)
	}
}

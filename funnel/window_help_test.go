package funnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
)

// windowCall is one call of a window.
type windowCall struct {
	now funnel.Micros
	funnel.WindowParams
}

// clearMost bounds the entries that a call clears away because they no longer count.
const clearMost = 128

// windowLog is a sliding window's log in memory. It is kept by the verdicts as a server's
// sorted set is, but without any shortcut.
type windowLog struct {
	entries    []funnel.WindowEntry // by time
	keepsEmpty bool                 // a refund of everything keeps the entries
}

// newWindowLog returns a log without a live entry, whose totals go on from total.
func newWindowLog(total uint64) windowLog {
	return windowLog{entries: []funnel.WindowEntry{{Total: total, Weight: 1}}}
}

func (l *windowLog) String() string {
	var parts []string
	for i, e := range l.entries {
		part := fmt.Sprint(time.Duration(e.Time-originMicros)*time.Microsecond, "+", e.Weight)
		if e.Capped && i == len(l.entries)-1 {
			part += fmt.Sprint("(", e.Cap, ")")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// firstLive returns the index of the first entry with a time after after, or -1.
func (l *windowLog) firstLive(after funnel.Micros) int {
	return slices.IndexFunc(l.entries, func(e funnel.WindowEntry) bool { return e.Time > after })
}

// state finds the two entries that decide.
func (l *windowLog) state(now, period funnel.Micros) (s funnel.WindowState) {
	if len(l.entries) > 0 {
		s.Newest = l.entries[len(l.entries)-1]
	}
	if i := l.firstLive(now - period); i >= 0 {
		s.Oldest = l.entries[i]
	}
	return s
}

// inUse returns the units in use.
func (l *windowLog) inUse(now, period funnel.Micros) (units int64) {
	s := l.state(now, period)
	if s.Oldest.Weight > 0 {
		units = int64(s.Newest.Total-s.Oldest.Total) + s.Oldest.Weight
	}
	if s.Newest.Capped {
		units = min(units, s.Newest.Cap)
	}
	return units
}

// decide makes a call and returns the log that the call leaves. RetryAfter is set.
func (l *windowLog) decide(t testing.TB, c windowCall) (after windowLog, v funnel.WindowVerdict) {
	t.Helper()
	after = windowLog{slices.Clone(l.entries), l.keepsEmpty}
	v = after.call(t, c)
	return after, v
}

// call makes a call and applies what it changes. RetryAfter is set.
func (l *windowLog) call(t testing.TB, c windowCall) funnel.WindowVerdict {
	t.Helper()
	s := l.state(c.now, c.Period)
	if s.Oldest.Weight > 0 && !s.Sound() {
		t.Fatalf("not sound: %+v of %s", s, l)
	}
	next, v := funnel.Window(c.now, s, c.WindowParams)
	l.apply(t, c, s, next, v)
	if v.Await {
		i := max(l.firstLive(c.now-c.Period), 0)
		for i < len(l.entries) && int64(l.entries[i].Total-v.Lapse) < 0 {
			i++
		}
		if i == len(l.entries) {
			t.Fatalf("%+v waits for what is not there: %+v, left %s", c, v, l)
		}
		v.RetryAfter = (l.entries[i].Time + c.Period - c.now).Nanos()
	}
	inRange(t, c.Limit, c.Quantity, c.UpTo || c.Force, v.Verdict)
	return v
}

// apply does what a verdict says.
func (l *windowLog) apply(t testing.TB, c windowCall, s funnel.WindowState, next funnel.WindowEntry, v funnel.WindowVerdict) {
	t.Helper()
	last := len(l.entries) - 1
	switch {
	case v.Change == funnel.Forget && l.keepsEmpty && last >= 0:
		l.entries[last] = next
	case v.Change == funnel.Forget:
		l.entries = nil
	case v.Change == funnel.Store:
		if v.Share {
			if last < 0 {
				t.Fatalf("%+v shares with none", c)
			}
			l.entries = l.entries[:last]
		}
		gone := 0
		for gone < min(clearMost, len(l.entries)) && s.Gone(l.entries[gone], c.now, c.Period) {
			gone++
		}
		l.entries = append(l.entries[gone:], next)
		if n := len(l.entries); n > 1 && l.entries[n-2].Time >= next.Time {
			t.Fatalf("%+v leaves entries out of order: %s", c, l)
		}
	}
}

// retried checks that the call c, which has got v, is admitted after RetryAfter and not a
// microsecond sooner.
func (l *windowLog) retried(t testing.TB, c windowCall, v funnel.WindowVerdict) {
	t.Helper()
	if v.RetryAfter <= 0 {
		return
	}
	c.now += v.RetryAfter.Micros()
	if _, v := l.decide(t, c); v.Limited {
		t.Fatalf("%+v: waited, and %+v of %s", c, v, l)
	}
	c.now--
	if _, v := l.decide(t, c); !v.Limited {
		t.Fatalf("%+v: 1 us early, and %+v of %s", c, v, l)
	}
}

package funnel_test

// A sliding window with its log of entries, as a host keeps it, for the tests of random calls.

import (
	"slices"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
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
		t.Fatalf("not sound: %+v of %+v", s, l)
	}
	next, v := funnel.Window(c.now, s, c.WindowParams)
	windowInRange(t, c.WindowParams, next, v)
	l.apply(t, c, s, next, v)
	if v.Await {
		i := max(l.firstLive(c.now-c.Period), 0)
		for i < len(l.entries) && int64(l.entries[i].Total-v.Lapse) < 0 {
			i++
		}
		if i == len(l.entries) {
			t.Fatalf("%+v waits for what is not there: %+v, left %+v", c, v, l)
		}
		v.RetryAfter = (l.entries[i].Time + c.Period - c.now).Nanos()
	}
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
			t.Fatalf("%+v leaves entries out of order: %+v", c, l)
		}
	}
}

// windowInRange checks what holds for every verdict and every stored entry. The wait is not
// known here.
func windowInRange(t testing.TB, p funnel.WindowParams, next funnel.WindowEntry, v funnel.WindowVerdict) {
	t.Helper()
	if v.Await && v.RetryAfter != 0 {
		t.Fatalf("two waits: %+v", v)
	}
	if v.Await {
		v.RetryAfter = 1
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v.Verdict)
	if v.Change == funnel.Store && (next.Time < 0 || next.Weight < 1 || next.Cap < 0 || next.Cap > 0 && !next.Capped) ||
		v.Granted > 0 && !p.Force && (next.Weight > p.Limit || next.Capped && next.Cap > p.Limit) ||
		v.Granted > 0 && (next.Weight > funnel.MaxInUse || next.Capped && next.Cap > funnel.MaxInUse) {
		t.Fatalf("malformed entry for %+v: %+v", p, next)
	}
}

// admission is what is left of the units of an admitted call.
type admission struct {
	time  funnel.Micros
	units int64
	letGo bool // by a later call: see audit
}

// cut takes units away from a list, the first or the last ones, at most all of them.
func cut(list []admission, units int64, last bool) []admission {
	for units > 0 && len(list) > 0 {
		i := 0
		if last {
			i = len(list) - 1
		}
		n := min(units, list[i].units)
		units -= n
		if list[i].units -= n; list[i].units == 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// audit is the promise: in no span (t - period, t] is more admitted than the limit, whichever
// calls the refunds undid, unless by FORCE. What FORCE admitted counts for the calls after it. A call with a shorter period
// lets units go, and so does a call before the clock is set back; such units no longer count.
type audit struct {
	oldest []admission // what is left if the oldest units in use were undone
	newest []admission // what is left if the newest were
}

// call audits a call that was made. used is what the window says was in use before; time is
// when the call's units were admitted.
func (a *audit) call(t testing.TB, c windowCall, v funnel.WindowVerdict, used int64, time funnel.Micros) {
	t.Helper()
	if v.Change == funnel.Keep {
		return
	}
	for _, list := range [][]admission{a.oldest, a.newest} {
		for i := range list {
			list[i].letGo = list[i].letGo || list[i].time <= c.now-c.Period
		}
	}
	if v.Granted < 0 {
		all := int64(0)
		for _, e := range a.oldest {
			all += e.units
		}
		dead := max(all-used, 0)
		a.oldest = cut(a.oldest, dead-v.Granted, false)
		a.newest = cut(a.newest, -v.Granted, true)
	}
	if v.Granted <= 0 {
		return
	}
	for _, list := range []*[]admission{&a.oldest, &a.newest} {
		*list = append(*list, admission{time: time, units: v.Granted})
		sum := int64(0)
		for _, e := range *list {
			if e.time > time-c.Period && !e.letGo {
				sum += e.units
			}
		}
		if sum > c.Limit && !c.Force {
			t.Fatalf("%+v: %d admitted in one period: %v", c, sum, *list)
		}
	}
}

// checkedWindow is a window with its oracle and its audit.
type checkedWindow struct {
	windowLog
	oracle *oracle.Window // nil: no comparison
	audit  audit
}

// call makes a call and checks the verdict and what it leaves.
func (w *checkedWindow) call(t testing.TB, c windowCall) funnel.WindowVerdict {
	t.Helper()
	before, s := slices.Clone(w.entries), w.state(c.now, c.Period)
	v := w.windowLog.call(t, c)
	if v.Change == funnel.Keep && !slices.Equal(w.entries, before) {
		t.Fatalf("%+v of %+v leaves %+v", c, before, w.entries)
	}
	if w.oracle != nil {
		if want := w.oracle.Call(c.now, c.WindowParams); !agree(v.Verdict, want) {
			t.Fatalf("%+v of %+v =\n%+v, want\n%+v", c, before, v.Verdict, want)
		}
	}
	w.audit.call(t, c, v, s.InUse(), max(c.now, s.Newest.Time))
	void := func(at funnel.Micros) bool {
		if w.oracle != nil {
			return w.oracle.Void(at, c.Period)
		}
		s := w.state(at, c.Period)
		return s.InUse() == 0
	}
	promises(t, c.now, v.Verdict, void, func(at funnel.Micros) funnel.Verdict {
		_, v := w.decide(t, windowCall{at, c.WindowParams})
		return v.Verdict
	})
	return v
}

// window returns an empty window for the schedule: at times with totals that go round, or one
// that is kept after a refund of everything.
func (s *schedule) window() *checkedWindow {
	w := &checkedWindow{oracle: new(oracle.Window)}
	switch s.IntN(4) {
	case 0:
		s.longest = originMicros / 8
		s.earliest = s.longest // the log's first entry is never alive
		s.now = max(s.now, originMicros)
		s.newPeriod()
		w.windowLog = newWindowLog(-uint64(logUniform(s.Rand, 4*s.limit)))
	case 1:
		w.keepsEmpty = true
		if s.setsBack {
			w.oracle = nil // the oracle forgets the time of the newest entry
		}
	}
	return w
}

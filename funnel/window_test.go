package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

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

// retried checks that the call c, which has got v, is admitted after RetryAfter and not a
// microsecond sooner.
func (l *windowLog) retried(t testing.TB, c windowCall, v funnel.WindowVerdict) {
	t.Helper()
	if v.RetryAfter <= 0 {
		return
	}
	c.now += v.RetryAfter.Micros()
	if _, v := l.decide(t, c); v.Limited {
		t.Fatalf("%+v: waited, and %+v of %+v", c, v, l)
	}
	c.now--
	if _, v := l.decide(t, c); !v.Limited {
		t.Fatalf("%+v: 1 us early, and %+v of %+v", c, v, l)
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
	w.retried(t, c, v)
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

// Whatever the calls, every reply is the exact model's, no span of a period holds too much, and calls that share entries leave
// few of them.
func TestWindow_agreesWithOracle(t *testing.T) {
	for _, c := range []struct {
		name                            string
		newPeriods, newLimits, newExact int
		shared                          bool // entries are shared
	}{
		{"one limit", 0, 0, 0, false},
		{"shared entries", 0, 0, 0, true},
		{"changing limits", 0, 8, 10, false},
		{"changing periods", 5, 8, 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := tally{}
			eachSchedule(t, 400, func(t *testing.T, s *schedule) {
				s.newPeriods, s.newLimits, s.newExact = c.newPeriods, c.newLimits, c.newExact
				if s.exact = !c.shared && s.IntN(3) == 0; c.shared {
					s.limit = max(s.limit, funnel.WindowParts+1+s.Int64N(100))
				}
				w := s.window()
				for range 120 {
					call := s.call()
					v := w.call(t, call)
					s.last = v.Verdict
					if after := w.state(call.now, call.Period); call.Force && v.Granted > 0 && after.InUse() > call.Limit {
						seen["debt"]++
					}
					seen.count("denial", v.Limited)
					seen.count("refund", v.Granted < 0)
					seen.count("shared entry", v.Granted > 0 && v.Share)
					seen.count("partial grant", partial(call.Quantity, v.Verdict))
					if c.shared && len(w.entries) > funnel.WindowParts+1 {
						t.Fatalf("%d entries", len(w.entries))
					}
				}
			})
			seen.atLeast(t, 500, "debt", "partial grant")
			seen.atLeast(t, 1500, "denial", "refund", "shared entry")
		})
	}
}

// A large limit and forced calls take at most WindowParts + 1 entries, however many calls there are. FORCE with EXACT has an
// entry for each microsecond.
func TestWindow_fewEntries(t *testing.T) {
	for _, c := range []struct {
		limit        int64
		period, step funnel.Micros
		force, exact bool
		most         int
	}{
		{1_000_000, 60e6, 5000, false, false, funnel.WindowParts + 1},
		{1_000_000, 1000, 1, false, false, funnel.WindowParts + 1},
		{1_000_000, 119_999, 99, false, false, funnel.WindowParts + 1},
		{1_000_000, maxPeriodMicros, 1e12, false, false, funnel.WindowParts + 1},
		{1, 60e6, 6007, true, false, funnel.WindowParts + 1},
		{funnel.WindowParts, 1007, 3, true, false, funnel.WindowParts + 1},
		{1, 1000, 1, true, true, 1000},
	} {
		var l windowLog
		most := 0
		for now := originMicros; now < originMicros+3*c.period; now += c.step {
			p := funnel.WindowParams{Limit: c.limit, Period: c.period, Quantity: 7, Force: c.force, Exact: c.exact}
			if v := l.call(t, windowCall{now, p}); v.Granted != 7 {
				t.Fatalf("%+v: %+v", c, v)
			}
			most = max(most, len(l.entries))
		}
		if most != c.most {
			t.Errorf("%+v: %d entries", c, most)
		}
	}
}

// The first call shares no entry, not even at the epoch, where the zero entry of an empty log
// would be in the same part.
func TestWindow_firstSharesWithNone(t *testing.T) {
	for _, now := range []funnel.Micros{0, 1, 1e6} {
		var l windowLog
		l.call(t, windowCall{now, funnel.WindowParams{Limit: 1000, Period: 120e6, Quantity: 1}})
		if len(l.entries) != 1 || l.entries[0] != (funnel.WindowEntry{Time: now, Total: 1, Weight: 1}) {
			t.Errorf("at %d: %+v", now, l.entries)
		}
	}
}

// Entries that no longer count may be more than a call clears away. Those that are left change no decision, and a partial
// grant does not wait for them.
func TestWindow_clearsAFewAtATime(t *testing.T) {
	for _, refund := range []int64{0, -700, -1000} {
		w := checkedWindow{oracle: new(oracle.Window), windowLog: windowLog{keepsEmpty: true}}
		c := windowCall{originMicros, funnel.WindowParams{Limit: 2000, Period: 3600e6, Quantity: 1, Exact: true}}
		for range 1000 {
			w.call(t, c)
			c.now++
		}
		if c.Quantity = refund; refund == 0 {
			c.now += c.Period
		}
		w.call(t, c)
		for _, quantity := range []int64{1, 1, 5000} {
			before := len(w.entries)
			c.now++
			c.Quantity, c.UpTo = quantity, quantity > 1
			if w.call(t, c); len(w.entries) != before-clearMost+1 {
				t.Errorf("after a refund of %d, a call for %d leaves %d of %d entries", refund, quantity, len(w.entries), before)
			}
		}
	}
}

func TestWindowState_Sound(t *testing.T) {
	for _, c := range []struct {
		why            string
		newest, oldest funnel.WindowEntry
		want           bool
	}{
		{"One entry", funnel.WindowEntry{Time: 5, Total: 9, Weight: 9}, funnel.WindowEntry{Time: 5, Total: 9, Weight: 9}, true},
		{"Two", funnel.WindowEntry{Time: 5, Total: 9, Weight: 1}, funnel.WindowEntry{Time: 4, Total: 8, Weight: 8}, true},
		{"Totals that go round", funnel.WindowEntry{Time: 5, Total: 3, Weight: 1}, funnel.WindowEntry{Time: 4, Total: ^uint64(0), Weight: 8}, true},
		{"Times that fall", funnel.WindowEntry{Time: 3, Total: 9, Weight: 1}, funnel.WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
		{"Totals that fall", funnel.WindowEntry{Time: 5, Total: 7, Weight: 1}, funnel.WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
		{"As many between as can be", funnel.WindowEntry{Time: 5, Total: 1<<62 + 7, Weight: 1}, funnel.WindowEntry{Time: 4, Total: 8, Weight: 8}, true},
		{"More", funnel.WindowEntry{Time: 5, Total: 1<<62 + 8, Weight: 1}, funnel.WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
	} {
		s := funnel.WindowState{Newest: c.newest, Oldest: c.oldest}
		if got := s.Sound(); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

// The corners: nothing wraps, whatever entries a log may hold.
func TestWindow_saturates(t *testing.T) {
	units := []int64{1, 2, funnel.WindowParts, funnel.MaxLimit, 1 << 62}
	var calls []funnel.WindowParams
	for _, period := range []funnel.Micros{1000, 60e6, maxPeriodMicros} {
		for _, limit := range []int64{1, funnel.WindowParts + 1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				p := funnel.WindowParams{Limit: limit, Period: period, Quantity: quantity}
				upTo, force := p, p
				upTo.UpTo, force.Force = true, true
				calls = append(calls, p, upTo, force)
			}
		}
	}
	for _, now := range []funnel.Micros{0, originMicros, lastMicros} {
		for _, newest := range []funnel.Micros{0, now, lastMicros} {
			for _, weight := range units {
				for _, most := range append(units, 0, -1) { // -1: no cap
					e := funnel.WindowEntry{Time: newest, Total: 1<<62 + 5, Weight: weight, Cap: max(most, 0), Capped: most >= 0}
					for _, p := range calls {
						s := funnel.WindowState{Newest: e}
						if newest > now-p.Period {
							s.Oldest = funnel.WindowEntry{Time: max(now-p.Period+1, 0), Total: 6, Weight: weight}
						}
						next, v := funnel.Window(now, s, p)
						windowInRange(t, p, next, v)
					}
				}
			}
		}
	}
}

// FuzzWindow makes calls on a window under one period: of each step's three bytes, the
// first says how, the second how much later and the third how many units.
func FuzzWindow(f *testing.F) {
	f.Add(uint64(0), int64(10), int64(60e6), false, []byte{0, 0, 0, 8, 0, 32, 2, 0, 0, 3, 0, 0})
	f.Add(uint64(0), int64(500), int64(120e6), false, []byte{8, 0, 32, 13, 8, 8, 13, 9, 60, 16, 0, 20, 14, 64, 9, 2, 0, 0})
	f.Add(^uint64(3), int64(150), int64(1007), true, []byte{0, 0, 1, 9, 0, 40, 17, 0, 9, 24, 3, 2, 167, 20, 1, 14, 90, 10})
	f.Add(uint64(1<<63), int64(funnel.MaxLimit), int64(maxPeriodMicros), false, []byte{8, 0, 64, 12, 0, 3, 210, 99, 3, 31, 9, 2, 255, 0, 0})
	f.Fuzz(func(t *testing.T, total uint64, limit, period int64, exact bool, steps []byte) {
		c := windowCall{originMicros, funnel.WindowParams{
			Limit:  within(limit, 1, funnel.MaxLimit),
			Period: within(funnel.Micros(period), 1000, maxPeriodMicros),
			Exact:  exact,
		}}
		w := checkedWindow{oracle: new(oracle.Window)}
		earliest := funnel.Micros(0)
		if c.Period < originMicros {
			w.windowLog = newWindowLog(total)
			earliest = c.Period // the log's first entry is dead
		}
		var v funnel.WindowVerdict
		part := max(c.Period/funnel.WindowParts, 1)
		// So few calls that each call clears away all entries that no longer count.
		for steps = steps[:min(len(steps), 3*(clearMost-1))]; len(steps) >= 3; steps = steps[3:] {
			how, later, units := steps[0], funnel.Micros(steps[1]), int64(steps[2])
			d := []funnel.Micros{
				0, 1, v.RetryAfter.Micros(), v.RetryAfter.Micros() - 1, part - c.now%part,
				later * part / 16, later * c.Period / 128, -later * c.Period / 64,
			}[how%8]
			if at := c.now + d; d < 0 && how%8 == 7 || d > 0 && at <= lastMicros {
				c.now = max(at, earliest)
			}
			c.Quantity = []int64{units, units * c.Limit / 64, -units * c.Limit / 64, v.Remaining + units%3 - 1}[how/8%4]
			c.Quantity = min(max(c.Quantity, -funnel.MaxLimit-1), funnel.MaxLimit+1)
			c.UpTo = how>>5 == 7 && !c.Force
			switch how >> 5 {
			case 4:
				c.Force = !c.Force
			case 5:
				c.Exact = !c.Exact
			case 6:
				c.Limit = []int64{1, funnel.WindowParts, funnel.WindowParts + 1, 10_000, funnel.MaxLimit, units + 1}[later%6]
			}
			v = w.call(t, c)
		}
	})
}

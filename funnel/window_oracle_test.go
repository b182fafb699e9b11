package funnel_test

import (
	"slices"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// admission is what is left of the units of an admitted call.
type admission struct {
	time  funnel.Micros
	units int64
	letGo bool // by a later call: see audit
}

func sumOf(list []admission) (sum int64) {
	for _, a := range list {
		sum += a.units
	}
	return sum
}

// after returns what was admitted after a time and not let go.
func after(list []admission, time funnel.Micros) (live []admission) {
	for _, a := range list {
		if a.time > time && !a.letGo {
			live = append(live, a)
		}
	}
	return live
}

// cut takes units away from a list, the first or the last ones, at most all of them.
func cut(list []admission, units int64, last bool) []admission {
	list = slices.Clone(list)
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
// calls the refunds undid, unless by FORCE. What FORCE admitted counts for the calls after it. A call with a shorter period lets units go, and so does a call
// before the clock is set back; such units no longer count.
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
		dead := max(sumOf(a.oldest)-used, 0)
		a.oldest = cut(a.oldest, dead-v.Granted, false)
		a.newest = cut(a.newest, -v.Granted, true)
	}
	if v.Granted <= 0 {
		return
	}
	for _, list := range []*[]admission{&a.oldest, &a.newest} {
		*list = append(*list, admission{time: time, units: v.Granted})
		if sum := sumOf(after(*list, time-c.Period)); sum > c.Limit && !c.Force {
			t.Fatalf("%+v: %d admitted in one period: %v", c, sum, *list)
		}
	}
}

// everyInstant checks all that was admitted under one limit and one period. It looks at the
// spans that end when an admission enters or leaves, 1 us earlier and 1 us later. The clock
// must never have been set back.
func (a *audit) everyInstant(t testing.TB, limit int64, period funnel.Micros) {
	t.Helper()
	for _, list := range [][]admission{a.oldest, a.newest} {
		for _, start := range list {
			for _, at := range []funnel.Micros{start.time, start.time + period} {
				for instant := at - 1; instant <= at+1; instant++ {
					sum := int64(0)
					for _, b := range list {
						if instant-period < b.time && b.time <= instant {
							sum += b.units
						}
					}
					if sum > limit {
						t.Fatalf("%d of %d admitted in the period up to %d: %v", sum, limit, instant, list)
					}
				}
			}
		}
	}
}

// wait returns how long it takes until no more than room units of a list are in use.
func wait(list []admission, now, period funnel.Micros, room int64) funnel.Micros {
	at := now
	live := after(list, at-period)
	for sumOf(live) > room {
		at = live[0].time + period
		live = after(live, at-period)
	}
	return at - now
}

// waited checks that a call waits no less than it must, and less than a part longer.
func (a *audit) waited(t testing.TB, c windowCall, v funnel.WindowVerdict) {
	t.Helper()
	wanted := c.Quantity
	if c.UpTo {
		wanted = min(wanted, 1)
	}
	if c.Quantity < 0 || wanted > c.Limit || c.Force {
		return
	}
	list, room := slices.Clone(a.oldest), c.Limit-wanted
	if v.Granted > 0 && !partial(c.Quantity, v.Verdict) {
		// There was room for the call without a wait.
		list, room = cut(list, v.Granted, true), c.Limit-v.Granted
	}
	must := wait(list, c.now, c.Period, room)
	for i := range list {
		list[i].letGo = false
	}
	may := wait(list, c.now, c.Period, room)
	told := v.RetryAfter.Micros()
	if told < must || (told-may)*funnel.WindowParts >= c.Period {
		t.Fatalf("%+v waits %d us where it must %d and may %d: %v", c, told, must, may, list)
	}
	// What is in use is at least all that is in use by the exact times of the calls, and at
	// most what was in use a part ago as well.
	most, part := int64(0), (c.Period-1)/funnel.WindowParts
	for _, b := range a.oldest {
		if b.time > c.now-c.Period-part {
			most += b.units
		}
	}
	least := min(sumOf(after(a.oldest, c.now-c.Period)), c.Limit)
	if used := c.Limit - v.Remaining; used < least || used > min(most, c.Limit) {
		t.Fatalf("%+v has %d in use, not %d to %d: %v", c, used, least, most, a.oldest)
	}
}

// checkedWindow is a window with its oracle and its audit.
type checkedWindow struct {
	windowLog
	oracle   *oracle.Window // nil: no comparison
	audit    audit
	anyWaits bool // calls may wait longer than a part: a period has changed

	limited, partials, refunds, shared, debts int // how many calls were so
}

// call makes a call and checks the verdict and what it leaves.
func (w *checkedWindow) call(t testing.TB, c windowCall) funnel.WindowVerdict {
	t.Helper()
	before, newest := w.String(), w.state(c.now, c.Period).Newest.Time
	used := w.inUse(c.now, c.Period)
	v := w.windowLog.call(t, c)
	if v.Change == funnel.Keep && w.String() != before {
		t.Fatalf("%+v of %s leaves %s", c, before, w)
	}
	if w.oracle != nil {
		if want := w.oracle.Call(c.now, c.WindowParams); !agree(v.Verdict, want) {
			t.Fatalf("%+v of %s =\n%+v, want\n%+v", c, before, v.Verdict, want)
		}
	}
	w.audit.call(t, c, v, used, max(c.now, newest))
	w.retried(t, c, v)
	if !w.anyWaits {
		w.audit.waited(t, c, v)
	}
	w.count(c, v)
	return v
}

func (w *checkedWindow) count(c windowCall, v funnel.WindowVerdict) {
	switch {
	case c.Force && v.Granted > 0 && w.inUse(c.now, c.Period) > c.Limit:
		w.debts++
	case v.Limited:
		w.limited++
	case partial(c.Quantity, v.Verdict):
		w.partials++
	case v.Granted < 0:
		w.refunds++
	case v.Share:
		w.shared++
	}
}

// call makes up the schedule's next call.
func (s *schedule) call() windowCall {
	s.next()
	c := windowCall{s.now, funnel.WindowParams{
		Limit: s.limit, Period: s.period, Quantity: s.quantity(), Exact: s.exact, UpTo: s.upTo && s.IntN(3) == 0,
	}}
	c.Force = s.force && !c.UpTo && s.IntN(4) == 0
	return c
}

// window returns an empty window for the schedule: at times with totals that go round, or one
// that is kept after a refund of everything.
func (s *schedule) window() *checkedWindow {
	w := &checkedWindow{oracle: new(oracle.Window), anyWaits: s.newPeriods > 0}
	switch s.IntN(4) {
	case 0:
		s.longest = originMicros / 8
		s.earliest = s.longest // the log's first entry is never alive
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

// checkWindows runs n schedules of 120 calls, which init sets up. each sees what a call leaves.
func checkWindows(t *testing.T, n uint64, init func(*schedule), each func(*testing.T, *checkedWindow)) {
	var sum checkedWindow
	eachSchedule(t, n, func(t *testing.T, s *schedule) {
		s.refundsToo, s.upTo, s.setsBack, s.force = s.IntN(4) > 0, true, s.IntN(3) == 0, s.IntN(3) == 0
		if s.IntN(8) == 0 {
			s.now = lastMicros - logUniform(s.Rand, maxPeriodMicros)
		}
		init(s)
		w := s.window()
		for range 120 {
			s.last = w.call(t, s.call()).Verdict
			each(t, w)
		}
		if !s.setsBack && !s.force && s.newPeriods == 0 && s.newLimits == 0 {
			w.audit.everyInstant(t, s.limit, s.period)
		}
		sum.limited += w.limited
		sum.partials += w.partials
		sum.refunds += w.refunds
		sum.shared += w.shared
		sum.debts += w.debts
	})
	if !t.Failed() && (min(sum.limited, sum.refunds, sum.shared) < 2000 || min(sum.partials, sum.debts) < 500) {
		t.Errorf("%d limited calls, %d partial grants, %d refunds, %d shared entries and %d debts prove nothing",
			sum.limited, sum.partials, sum.refunds, sum.shared, sum.debts)
	}
}

// With any limits and periods, every reply is the oracle's.
func TestWindow_agreesWithOracle(t *testing.T) {
	checkWindows(t, 600, func(s *schedule) {
		s.exact = s.IntN(2) == 0
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
	}, func(*testing.T, *checkedWindow) {})
}

// However calls share entries, no span of a period holds more than the limit, no call waits a
// part of the period longer than it must, and there are few entries.
func TestWindow_sharedNeverAdmitsMore(t *testing.T) {
	checkWindows(t, 600, func(s *schedule) {
		s.limit = max(s.limit, funnel.WindowParts+1+s.Int64N(100))
	}, func(t *testing.T, w *checkedWindow) {
		if len(w.entries) > funnel.WindowParts+1 {
			t.Fatalf("%d entries: %s", len(w.entries), w)
		}
	})
}

// The same while the limit changes, above and below WindowParts, and EXACT comes and goes.
func TestWindow_changedLimitNeverAdmitsMore(t *testing.T) {
	checkWindows(t, 500, func(s *schedule) {
		s.newExact, s.newLimits = 10, 8
	}, func(*testing.T, *checkedWindow) {})
}

// The same while the period changes as well. A call may then wait longer, but no span holds
// too much of what no shorter period has let go.
func TestWindow_changedPeriodNeverAdmitsMore(t *testing.T) {
	checkWindows(t, 500, func(s *schedule) {
		s.newPeriods, s.newExact, s.newLimits = 5, 10, 8
	}, func(*testing.T, *checkedWindow) {})
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

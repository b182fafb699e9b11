package funnel

import (
	"slices"
	"testing"
)

// admission is what is left of an admitted call.
type admission struct {
	time, units int64
	letGo       bool // by a later call: see audit
}

func sumOf(list []admission) (sum int64) {
	for _, a := range list {
		sum += a.units
	}
	return sum
}

// after returns what was admitted after a time and not let go.
func after(list []admission, time int64) (live []admission) {
	for _, a := range list {
		if a.time > time && !a.letGo {
			live = append(live, a)
		}
	}
	return live
}

// cut takes units away, the first or the last of the list, as far as there are any.
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

// slowWindow is the slow oracle: the list of what was admitted, which it walks at
// every call. It knows nothing of entries, totals or parts.
type slowWindow struct {
	admitted []admission // by time
}

// time is that of a call at now: never before an earlier one's, if it is still known.
func (o *slowWindow) time(now int64) int64 {
	if n := len(o.admitted); n > 0 {
		return max(now, o.admitted[n-1].time)
	}
	return now
}

// wait returns how long until no more than room units are in use.
func (o *slowWindow) wait(now, period, room int64) int64 {
	live := after(o.admitted, now-period)
	for sumOf(live) > room {
		now = live[0].time + period
		live = after(live, now-period)
	}
	return now
}

// call decides as the specification says.
func (o *slowWindow) call(c windowCall) Verdict {
	live := after(o.admitted, c.now-c.period)
	used := sumOf(live)
	left := max(c.limit-used, 0)
	if c.upTo {
		c.quantity = min(c.quantity, max(left, 1))
	}
	v := Verdict{RetryAfter: Never}
	switch {
	case c.quantity < 0:
		v.Granted, v.Change = max(c.quantity, -used), Store
		live = cut(live, -c.quantity, false)
		if len(live) == 0 {
			v.Change = Forget
		}
	case c.quantity > c.limit:
		v.Limited = true
	case used+c.quantity > c.limit:
		v.Limited = true
		v.RetryAfter = (o.wait(c.now, c.period, c.limit-c.quantity) - c.now) * micro
	case c.quantity > 0:
		v.Granted, v.Change = c.quantity, Store
		live = append(live, admission{time: o.time(c.now), units: c.quantity})
	}
	if v.Change != Keep {
		o.admitted = live
	}
	v.Remaining = max(c.limit-sumOf(live), 0)
	if len(live) > 0 {
		v.ResetAfter = (live[len(live)-1].time + c.period - c.now) * micro
	}
	return v
}

// call makes up the schedule's next call.
func (s *schedule) call() windowCall {
	s.next()
	return windowCall{s.now, s.limit, s.period, s.quantity(), s.exact, s.upTo && s.IntN(3) == 0}
}

// Where every call has an entry of its own, every reply is the oracle's.
func TestWindow_agreesWithOracle(t *testing.T) {
	limited, refunds := 0, 0
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		var l windowLog
		var o slowWindow
		s.refundsToo, s.upTo, s.setsBack = s.IntN(4) > 0, true, s.IntN(3) == 0
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
		if s.IntN(4) == 0 {
			s.longest = originMicros / 8 // so that the first entry is dead
			s.newPeriod()
			l = newWindowLog(-uint64(s.logUniform(4 * s.limit)))
		}
		for range 120 {
			c := s.call()
			c.exact = c.limit > WindowParts || s.IntN(2) == 0
			before := l.String()
			v := l.call(t, c)
			s.last = v.Verdict
			if want := o.call(c); v.Verdict != want {
				t.Fatalf("%+v of %s =\n%+v, want\n%+v", c, before, v.Verdict, want)
			}
			if v.Change == Keep && l.String() != before {
				t.Fatalf("%+v of %s leaves %s", c, before, &l)
			}
			l.retried(t, c, v)
			if v.RetryAfter != Never {
				limited++
			}
			if v.Granted < 0 {
				refunds++
			}
		}
	})
	if !t.Failed() && min(limited, refunds) < 2000 {
		t.Errorf("%d limited calls and %d refunds prove nothing", limited, refunds)
	}
}

// audit is the promise: in no span (t - period, t] is more admitted than the limit,
// whichever calls the refunds undid. What a call with a shorter period, or one before the
// clock was set back, has let go counts no more.
type audit struct {
	oldest []admission // what is left if the oldest units in use were undone
	newest []admission // what is left if the newest were
}

// call audits a call that was made. used is what was in use before, as the window has it.
func (a *audit) call(t testing.TB, c windowCall, v WindowVerdict, used, time int64) {
	t.Helper()
	if v.Change == Keep {
		return
	}
	for _, list := range [][]admission{a.oldest, a.newest} {
		for i := range list {
			list[i].letGo = list[i].letGo || list[i].time <= c.now-c.period
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
		if sum := sumOf(after(*list, time-c.period)); sum > c.limit {
			t.Fatalf("%+v: %d admitted in one period: %v", c, sum, *list)
		}
	}
}

// everyInstant looks again at all that was admitted, under one limit and one period: at
// each instant at which the span's content changes, and around it.
//
// Only for a clock that was never set back.
func (a *audit) everyInstant(t testing.TB, limit, period int64) {
	t.Helper()
	for _, list := range [][]admission{a.oldest, a.newest} {
		for _, start := range list {
			for _, at := range []int64{start.time, start.time + period} {
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

// waited checks that a call waits no less than it must, and less than a part longer.
func (a *audit) waited(t testing.TB, c windowCall, v WindowVerdict) {
	t.Helper()
	taken := max(v.Granted, 0)
	wanted := c.quantity
	if c.upTo {
		wanted = min(wanted, 1)
	}
	if c.quantity < 0 || wanted > c.limit {
		return
	}
	room := c.limit - max(wanted, taken)
	before := slowWindow{cut(a.oldest, taken, true)}
	must := before.wait(c.now, c.period, room) - c.now
	for i := range before.admitted {
		before.admitted[i].letGo = false
	}
	may := before.wait(c.now, c.period, room) - c.now
	wait := max(v.RetryAfter, 0) / micro
	if wait < must || (wait-may)*WindowParts >= c.period {
		t.Fatalf("%+v waits %d us where it must %d and may %d: %v", c, wait, must, may, before.admitted)
	}
	// The same of what is in use: all that is, and nothing that was not a part ago.
	most, part := int64(0), (c.period-1)/WindowParts
	for _, b := range a.oldest {
		if b.time > c.now-c.period-part {
			most += b.units
		}
	}
	least := min(sumOf(after(a.oldest, c.now-c.period)), c.limit)
	if used := c.limit - v.Remaining; used < least || used > min(most, c.limit) {
		t.Fatalf("%+v has %d in use, not %d to %d: %v", c, used, least, most, a.oldest)
	}
}

// audited makes a call of a window and audits it.
func (a *audit) audited(t testing.TB, l *windowLog, c windowCall) WindowVerdict {
	t.Helper()
	before, state := l.String(), l.state(c.now, c.period)
	v := l.call(t, c)
	if v.Change == Keep && l.String() != before {
		t.Fatalf("%+v of %s leaves %s", c, before, l)
	}
	if v.Remaining < 0 || v.Remaining > c.limit || v.ResetAfter < 0 || v.Granted > 0 && v.Granted < c.quantity && v.Remaining > 0 {
		t.Fatalf("%+v of %s: %+v", c, before, v)
	}
	a.call(t, c, v, state.inUse(), max(c.now, state.Newest.Time))
	l.retried(t, c, v)
	return v
}

// However calls share entries, no span of a period holds more than the limit, none waits
// a part of the period longer than it must, and there are few entries.
func TestWindow_sharedNeverAdmitsMore(t *testing.T) {
	limited := 0
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		s.limit = max(s.limit, WindowParts+1+s.Int64N(100))
		s.refundsToo, s.upTo, s.setsBack = s.IntN(2) == 0, true, s.IntN(3) == 0
		var l windowLog
		if s.IntN(4) == 0 {
			s.longest = originMicros / 8
			s.newPeriod()
			l = newWindowLog(-uint64(s.logUniform(4 * s.limit)))
		}
		var a audit
		for range 150 {
			c := s.call()
			v := a.audited(t, &l, c)
			s.last = v.Verdict
			a.waited(t, c, v)
			if len(l.entries) > WindowParts+1 {
				t.Fatalf("%d entries: %s", len(l.entries), &l)
			}
			if v.RetryAfter != Never {
				limited++
			}
		}
		if !s.setsBack {
			a.everyInstant(t, s.limit, s.period)
		}
	})
	if !t.Failed() && limited < 2000 {
		t.Errorf("%d limited calls prove nothing", limited)
	}
}

// The same with the limit raised and lowered over WindowParts and EXACT switched on and off.
func TestWindow_changedLimitNeverAdmitsMore(t *testing.T) {
	eachSchedule(t, 400, func(t *testing.T, s *schedule) {
		s.newExact, s.newLimits, s.refundsToo, s.upTo, s.setsBack = 10, 8, s.IntN(2) == 0, true, s.IntN(3) == 0
		var l windowLog
		var a audit
		for range 150 {
			c := s.call()
			v := a.audited(t, &l, c)
			s.last = v.Verdict
			a.waited(t, c, v)
		}
	})
}

// And with the period changed as well: then a call may wait longer, but what a span holds
// since a shorter period let something go is never too much.
func TestWindow_changedPeriodNeverAdmitsMore(t *testing.T) {
	eachSchedule(t, 400, func(t *testing.T, s *schedule) {
		s.newPeriods, s.newExact, s.newLimits, s.refundsToo, s.upTo, s.setsBack = 5, 10, 8, s.IntN(2) == 0, true, s.IntN(3) == 0
		var l windowLog
		var a audit
		for range 150 {
			s.last = a.audited(t, &l, s.call()).Verdict
		}
	})
}

package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

import (
	"reflect"
	"strconv"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// window is a key that holds a sliding window, and its exact model.
type window struct {
	*schedule
	oracle   oracle.Window
	admitted []admission // what is left of the units of admitted calls if refunds undo the newest
}

// admission is units that a call took.
type admission struct {
	time  funnel.Micros
	units int64
}

// call makes a call, whose reply must be the model's. A call that changes nothing leaves the key as it is.
func (w *window) call(t testing.TB, p params) funnel.Verdict {
	t.Helper()
	option := ""
	if p.Exact {
		option = "EXACT"
	}
	before, v := w.Get("k"), w.oracle.Call(w.now, p)
	w.askFor(t, "GO.WINDOW", p, option, v)
	if v.Change == funnel.Keep && !reflect.DeepEqual(w.Get("k"), before) {
		t.Fatalf("%+v of %+v leaves %+v", p, before, w.Get("k"))
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v)
	void := func(at funnel.Micros) bool { return w.oracle.Void(at, p.Period) }
	promises(t, w.now, v, void, func(at funnel.Micros) funnel.Verdict { return w.oracle.Clone().Call(at, p) })
	return v
}

// audit is the promise: in no span (t - period, t] is more admitted than the limit, even if refunds undo the newest calls.
func (w *window) audit(t testing.TB, p params, v funnel.Verdict) {
	t.Helper()
	for units := -v.Granted; units > 0; {
		newest := &w.admitted[len(w.admitted)-1]
		n := min(units, newest.units)
		units -= n
		if newest.units -= n; newest.units == 0 {
			w.admitted = w.admitted[:len(w.admitted)-1]
		}
	}
	if v.Granted <= 0 {
		return
	}
	w.admitted = append(w.admitted, admission{w.now, v.Granted})
	sum := int64(0)
	for _, a := range w.admitted {
		if a.time > w.now-p.Period {
			sum += a.units
		}
	}
	if sum > p.Limit {
		t.Fatalf("%+v: %d admitted in one period: %v", p, sum, w.admitted)
	}
}

// put makes the key hold n entries of one unit, the first at a time, a microsecond apart. before is their total without them.
func (w *window) put(n int, at funnel.Micros, before uint64) {
	v := &memory.Value{Kind: commands.KindZset}
	for i := n; i > 0; i-- {
		text := "\x01" + strconv.FormatUint(before+uint64(i), 36)
		v.Set = append(v.Set, memory.Member{Score: -float64(at + funnel.Micros(i-1)), Text: text})
	}
	w.Put("k", v)
}

// newWindow returns an empty window: at times with totals that go round, or with more entries that are a period old than a
// call clears away, so that a refund of everything keeps them.
func newWindow(s *schedule) *window {
	w := &window{schedule: s}
	switch s.IntN(4) {
	case 0, 1:
		s.longest = originMicros / 8
		s.earliest = s.longest + 1000 // no entry of these is ever alive
		s.now = max(s.now, originMicros)
		s.newPeriod()
		w.put(1, 0, -uint64(logUniform(s.Rand, 4*s.limit)))
		if s.newPeriods == 0 && s.IntN(2) == 0 {
			s.setsBack = false // the model forgets the time of the newest entry
			w.put(500, 0, 0)
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
				w := newWindow(s)
				before := w.entries()
				most := before + funnel.WindowParts + 1
				for range 120 {
					p := s.call()
					v := w.call(t, p)
					if !s.setsBack && !s.force && c.newPeriods == 0 {
						w.audit(t, p, v)
					}
					after := w.entries()
					seen.count("debt", p.Force && v.Granted > 0 && w.oracle.InUse(s.now, p.Period) > p.Limit)
					seen.count("denial", v.Limited)
					seen.count("refund", v.Granted < 0)
					seen.count("shared entry", v.Granted > 0 && after == before)
					seen.count("partial grant", partial(p.Quantity, v))
					if before = after; c.shared && after > most {
						t.Fatalf("%d entries", after)
					}
				}
			})
			seen.atLeast(t, 500, "debt", "partial grant")
			seen.atLeast(t, 1500, "denial", "refund", "shared entry")
		})
	}
}

// The corners: nothing wraps, whatever entries a log may hold.
func TestWindow_saturates(t *testing.T) {
	units := []int64{1, 2, funnel.WindowParts, funnel.MaxLimit, 1 << 62}
	var calls []params
	for _, period := range []funnel.Micros{1000, 60e6, maxPeriodMicros} {
		for _, limit := range []int64{1, funnel.WindowParts + 1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				p := params{Limit: limit, Period: period, Quantity: quantity}
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

// windowInRange checks what holds for every verdict and every stored entry. The wait is not known here.
func windowInRange(t testing.TB, p params, next funnel.WindowEntry, v funnel.WindowVerdict) {
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

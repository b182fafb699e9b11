package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

import (
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

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

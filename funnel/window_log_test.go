package funnel_test

import (
	"testing"

	"gothrottle/funnel"
)

// A large limit takes at most WindowParts + 1 entries, however many calls there are.
func TestWindow_fewEntries(t *testing.T) {
	for _, c := range []struct{ period, step funnel.Micros }{
		{60e6, 5000}, {1000, 1}, {1007, 1}, {119_999, 99}, {maxPeriodMicros, 1e12},
	} {
		var l windowLog
		most, calls := 0, int64(0)
		for now := originMicros; now < originMicros+3*c.period; now += c.step {
			v := l.call(t, windowCall{now, funnel.WindowParams{Limit: 1_000_000, Period: c.period, Quantity: 80}})
			calls++
			if v.Granted != 80 || v.Remaining > 1_000_000-80*min(calls, int64(c.period/c.step)) {
				t.Fatalf("call %d in %d us: %+v", calls, c.period, v)
			}
			most = max(most, len(l.entries))
		}
		if most != funnel.WindowParts+1 {
			t.Errorf("%d entries in %d us, want %d", most, c.period, funnel.WindowParts+1)
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

// A client that calls all the time gets the limit once in each period, at most a part late.
func TestWindow_hammered(t *testing.T) {
	var l windowLog
	var times []funnel.Micros
	c := windowCall{originMicros, funnel.WindowParams{Limit: 500, Period: 1e6, Quantity: 1}}
	for ; c.now < originMicros+6e6; c.now += 100 {
		if v := l.call(t, c); !v.Limited {
			times = append(times, c.now)
		}
	}
	for i := 500; i < len(times); i++ {
		if d := times[i] - times[i-500]; d < 1e6 {
			t.Fatalf("the %d-th came %d us after the one 500 before it", i, d)
		}
	}
	// Each round of 500 lasts no more than a period and a part.
	if len(times) < 500*5 {
		t.Errorf("%d admitted", len(times))
	}
}

// A call clears away at most 128 entries that no longer count. Entries of that kind that are left
// change no decision.
func TestWindow_clearsAFewAtATime(t *testing.T) {
	const hour = 3600e6
	params := func(quantity int64) funnel.WindowParams {
		return funnel.WindowParams{Limit: 2000, Period: hour, Quantity: quantity, Exact: true}
	}
	filled := func() windowLog {
		var l windowLog
		for i := range funnel.Micros(1000) {
			l.call(t, windowCall{originMicros + i, params(1)})
		}
		return l
	}
	for _, c := range []struct {
		name   string
		refund int64
		now    funnel.Micros
		used   int64
		left   []int // how many entries each further call leaves: one is added, up to 128 go
	}{
		{"lapsed", 0, originMicros + hour + 999, 0, []int{873, 746, 619, 492, 365, 238, 111, 8, 9}},
		{"given back", -700, originMicros + 2000, 300, []int{873, 746, 619, 492, 365, 306, 307}},
		{"all given back", -1000, originMicros + 2000, 0, []int{873, 746, 619, 492, 365, 238, 111, 8, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := filled()
			l.keepsEmpty = true
			l.call(t, windowCall{originMicros + 1000, params(c.refund)})
			for i, want := range c.left {
				v := l.call(t, windowCall{c.now + funnel.Micros(i), params(1)})
				if len(l.entries) != want || v.Remaining != 2000-c.used-int64(i)-1 {
					t.Fatalf("call %d leaves %d entries, want %d: %+v", i, len(l.entries), want, v)
				}
			}
		})
	}
}

// Units that were given back may be more than a call clears away. A partial grant does not
// wait for them.
func TestWindow_partialGrantWaitsForUnitsInUse(t *testing.T) {
	const hour = 3600e6
	var l windowLog
	p := funnel.WindowParams{Limit: 2000, Period: hour, Quantity: 1, Exact: true}
	for i := range funnel.Micros(1000) {
		l.call(t, windowCall{originMicros + i, p})
	}
	c := windowCall{originMicros + 2000, p}
	c.Quantity = -700
	l.call(t, c)
	c.Quantity, c.UpTo = 5000, true
	v := l.call(t, c)
	if want := (originMicros + 700 + hour - c.now).Nanos(); v.Granted != 1700 || v.RetryAfter != want {
		t.Errorf("%+v, want a wait of %d", v, want)
	}
	l.retried(t, c, v)
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

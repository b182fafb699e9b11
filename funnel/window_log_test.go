package funnel

import "testing"

// A million in any period takes no more entries than a few calls do.
func TestWindow_fewEntries(t *testing.T) {
	for _, c := range []struct{ period, step int64 }{{60e6, 5000}, {1000, 1}, {1007, 1}, {119_999, 99}, {MaxPeriod / micro, 1e12}} {
		var l windowLog
		most, calls := 0, int64(0)
		for now := int64(originMicros); now < originMicros+3*c.period; now += c.step {
			v := l.call(t, windowCall{now: now, limit: 1_000_000, period: c.period, quantity: 80})
			calls++
			if v.Granted != 80 || v.Remaining > 1_000_000-80*min(calls, c.period/c.step) {
				t.Fatalf("call %d in %d us: %+v", calls, c.period, v)
			}
			most = max(most, len(l.entries))
		}
		if most != WindowParts+1 {
			t.Errorf("%d entries in %d us, want %d", most, c.period, WindowParts+1)
		}
	}
}

// Not even at the epoch, in the part that a window without entries seems to end in.
func TestWindow_firstSharesWithNone(t *testing.T) {
	for _, now := range []int64{0, 1, 1e6} {
		var l windowLog
		l.call(t, windowCall{now: now, limit: 1000, period: 120e6, quantity: 1})
		if len(l.entries) != 1 || l.entries[0] != (WindowEntry{Time: now, Total: 1, Weight: 1}) {
			t.Errorf("at %d: %+v", now, l.entries)
		}
	}
}

// A client that never stops gets the limit, and after each period again, a part late at most.
func TestWindow_hammered(t *testing.T) {
	var l windowLog
	var times []int64
	c := windowCall{now: originMicros, limit: 500, period: 1e6, quantity: 1}
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

// A call clears away a few dead entries; the ones that are left count for nothing.
func TestWindow_clearsAFewAtATime(t *testing.T) {
	const hour = 3600e6
	filled := func() windowLog {
		var l windowLog
		for i := range int64(1000) {
			l.call(t, windowCall{now: originMicros + i, limit: 2000, period: hour, quantity: 1, exact: true})
		}
		return l
	}
	for _, c := range []struct {
		name   string
		refund int64
		now    int64
		used   int64
		left   []int // how many entries each further call leaves: one is added, up to 128 go
	}{
		{"lapsed", 0, originMicros + hour + 999, 0, []int{873, 746, 619, 492, 365, 238, 111, 8, 9}},
		{"given back", -700, originMicros + 2000, 300, []int{873, 746, 619, 492, 365, 306, 307}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := filled()
			l.call(t, windowCall{now: originMicros + 1000, limit: 2000, period: hour, quantity: c.refund})
			for i, want := range c.left {
				call := windowCall{now: c.now + int64(i), limit: 2000, period: hour, quantity: 1, exact: true}
				v := l.call(t, call)
				if len(l.entries) != want || v.Remaining != 2000-c.used-int64(i)-1 {
					t.Fatalf("call %d leaves %d entries, want %d: %+v", i, len(l.entries), want, v)
				}
			}
		})
	}
}

func TestWindowState_Sound(t *testing.T) {
	for _, c := range []struct {
		why            string
		newest, oldest WindowEntry
		want           bool
	}{
		{"One entry", WindowEntry{Time: 5, Total: 9, Weight: 9}, WindowEntry{Time: 5, Total: 9, Weight: 9}, true},
		{"Two", WindowEntry{Time: 5, Total: 9, Weight: 1}, WindowEntry{Time: 4, Total: 8, Weight: 8}, true},
		{"Totals that go round", WindowEntry{Time: 5, Total: 3, Weight: 1}, WindowEntry{Time: 4, Total: ^uint64(0), Weight: 8}, true},
		{"Times that fall", WindowEntry{Time: 3, Total: 9, Weight: 1}, WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
		{"Totals that fall", WindowEntry{Time: 5, Total: 7, Weight: 1}, WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
		{"As many between as can be", WindowEntry{Time: 5, Total: 1<<62 + 7, Weight: 1}, WindowEntry{Time: 4, Total: 8, Weight: 8}, true},
		{"More", WindowEntry{Time: 5, Total: 1<<62 + 8, Weight: 1}, WindowEntry{Time: 4, Total: 8, Weight: 8}, false},
	} {
		s := WindowState{Newest: c.newest, Oldest: c.oldest}
		if got := s.Sound(); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

// The corners: nothing wraps, whatever entries a log may hold.
func TestWindow_saturates(t *testing.T) {
	const lastTime = 1<<53 - MaxPeriod/micro
	units := []int64{1, 2, WindowParts, MaxLimit, 1 << 62}
	quantities := []int64{-MaxLimit - 1, -1, 0, 1, MaxLimit, MaxLimit + 1}
	for _, now := range []int64{0, originMicros, lastTime} {
		for _, newest := range []int64{0, now, lastTime} {
			for _, period := range []int64{1000, 60e6, MaxPeriod / micro} {
				for _, weight := range units {
					for _, kept := range append(units, 0) {
						for _, limit := range []int64{1, WindowParts + 1, MaxLimit} {
							for _, quantity := range quantities {
								s := WindowState{Newest: WindowEntry{Time: newest, Total: 1<<62 + 5, Weight: weight, Kept: kept}}
								if newest > now-period {
									s.Oldest = WindowEntry{Time: max(now-period+1, 0), Total: 6, Weight: weight}
								}
								next, v := Window(now, s, limit, period, quantity, false)
								windowInRange(t, limit, next, v)
							}
						}
					}
				}
			}
		}
	}
}

// windowInRange checks what holds for every reply and every stored entry.
func windowInRange(t testing.TB, limit int64, next WindowEntry, v WindowVerdict) {
	t.Helper()
	if v.Remaining < 0 || v.Remaining > limit || v.ResetAfter < 0 || v.RetryAfter != Never || v.Wait && !v.Limited {
		t.Fatalf("out of range with limit %d: %+v", limit, v)
	}
	if v.Change == Store && (next.Time < 0 || next.Weight < 1 || next.Kept < 0) || v.Granted > 0 && next.Weight > limit {
		t.Fatalf("malformed entry with limit %d: %+v", limit, next)
	}
}

package funnel

import "testing"

// FuzzWindow makes calls on a window under one period: of each step's three bytes, the
// first says how, the second how much later and the third how many units.
func FuzzWindow(f *testing.F) {
	f.Add(uint64(0), int64(10), int64(60e6), false, []byte{0, 0, 0, 8, 0, 32, 2, 0, 0, 3, 0, 0})
	f.Add(uint64(0), int64(500), int64(120e6), false, []byte{8, 0, 32, 13, 8, 8, 13, 9, 60, 16, 0, 20, 14, 64, 9, 2, 0, 0})
	f.Add(^uint64(3), int64(150), int64(1007), true, []byte{0, 0, 1, 9, 0, 40, 17, 0, 9, 24, 3, 2, 167, 20, 1, 14, 90, 10})
	f.Add(uint64(1<<63), int64(MaxLimit), int64(MaxPeriod/micro), false, []byte{8, 0, 64, 12, 0, 3, 210, 99, 3, 31, 9, 2, 255, 0, 0})
	f.Fuzz(func(t *testing.T, total uint64, limit, period int64, exact bool, steps []byte) {
		c := windowCall{
			now:    originMicros,
			limit:  within(limit, 1, MaxLimit),
			period: within(period, 1000, MaxPeriod/micro),
			exact:  exact,
		}
		var l windowLog
		earliest := int64(0)
		if c.period < originMicros {
			l = newWindowLog(total)
			earliest = c.period // the log's first entry is dead
		}
		var a audit
		var v WindowVerdict
		part := max(c.period/WindowParts, 1)
		for steps = steps[:min(len(steps), 450)]; len(steps) >= 3; steps = steps[3:] {
			how, later, units := steps[0], int64(steps[1]), int64(steps[2])
			d := []int64{
				0, 1, v.RetryAfter / micro, v.RetryAfter/micro - 1, part - c.now%part,
				later * part / 16, later * c.period / 128, -later * c.period / 64,
			}[how%8]
			if at := c.now + d; d < 0 && how%8 == 7 || d > 0 && at <= 1<<52 {
				c.now = max(at, earliest)
			}
			c.quantity = []int64{units, units * c.limit / 64, -units * c.limit / 64, v.Remaining + units%3 - 1}[how/8%4]
			c.quantity = min(max(c.quantity, -MaxLimit-1), MaxLimit+1)
			c.upTo = how>>5 == 7
			switch how >> 5 {
			case 5:
				c.exact = !c.exact
			case 6:
				c.limit = []int64{1, WindowParts, WindowParts + 1, 10_000, MaxLimit, units + 1}[later%6]
			}
			v = a.audited(t, &l, c)
			a.waited(t, c, v)
		}
	})
}

// FuzzQuota makes a call on any fixed window, and the same call a while later.
func FuzzQuota(f *testing.F) {
	seed := func(now, used, end, limit, period, quantity, offset int64, align bool, wait int64) {
		f.Add(now, used, end, limit, period, quantity, offset, align, false, wait)
		f.Add(now, used, end, limit, period, quantity, offset, align, true, wait)
	}
	seed(originMicros, 0, 0, 10, 60e6, 1, 0, false, 60e6)
	seed(originMicros, 7, originMicros+9, 10, 60e6, 4, 5, true, 8)
	seed(originMicros, 7, originMicros, 10, 60e6, -4, -5, true, 0)
	seed(1, 7, 9, 5, 1000, 0, MaxPeriod/micro, true, 7)
	seed(1<<52, 1, 1<<53, MaxLimit, MaxPeriod/micro, MaxLimit+1, -MaxPeriod/micro, true, 7)
	f.Fuzz(func(
		t *testing.T,
		now, used, end, limit, period, quantity, offset int64, align, upTo bool, wait int64,
	) {
		const lastTime = 1<<53 - MaxPeriod/micro
		var s QuotaState
		if used != 0 {
			s = QuotaState{within(used, 1, MaxLimit), within(end, 1, 1<<53)}
		}
		c := quotaCall{
			now:      within(now, 0, lastTime),
			limit:    within(limit, 1, MaxLimit),
			period:   within(period, 1000, MaxPeriod/micro),
			quantity: within(quantity, -MaxLimit-1, MaxLimit+1),
			offset:   within(offset, -MaxPeriod/micro, MaxPeriod/micro),
			align:    align,
			upTo:     upTo,
		}
		var o slowQuota
		if s.Used > 0 {
			o = slowQuota{s.End, []int64{s.Used}}
		}
		s, _ = o.check(t, s, c)
		c.now += within(wait, 0, lastTime-c.now)
		s, v := o.check(t, s, c)
		if v.Remaining < 0 || v.Remaining > c.limit || v.ResetAfter < 0 || s.Used < 0 {
			t.Fatalf("%+v: %+v leaves %+v", c, v, s)
		}
	})
}

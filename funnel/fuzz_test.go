package funnel

import (
	"encoding/binary"
	"math"
	"testing"
)

// within leaves n where it is in bounds and folds it into them where not.
func within(n, low, high int64) int64 {
	if n >= low && n <= high {
		return n
	}
	return low + int64((uint64(n)-uint64(low))%(uint64(high)-uint64(low)+1))
}

// FuzzThrottle makes a call on any state, and the same call a while later.
func FuzzThrottle(f *testing.F) {
	seed := func(now, tat, frac, oldPeriod, oldCount, limit, period, count, quantity, wait int64) {
		f.Add(now, tat, frac, oldPeriod, oldCount, limit, period, count, quantity, wait)
	}
	seed(origin, 0, 0, 0, 0, 16, 60e9, 7, 1, 0)
	seed(origin, origin+8e9, 3, 60e9, 7, 16, 60e9, 7, -2, 9e9)
	seed(origin, origin+36e12, 0, 3600e9, 1, 10, 1e9, 1, 1, 1e9)
	seed(origin, origin+90e9, 0, 0, 0, 5, 10e9, 1, 0, 40e9)
	seed(math.MaxInt64-1, math.MaxInt64, 0, 1, 1, 1, MaxPeriod, 1, 1, 1)
	f.Fuzz(func(
		t *testing.T,
		now, tat, frac, oldPeriod, oldCount, limit, period, count, quantity, wait int64,
	) {
		now, tat = within(now, 1, math.MaxInt64), within(tat, 0, math.MaxInt64)
		limit = within(limit, 1, MaxLimit)
		rate := Rate{within(period, 1, MaxPeriod), within(count, 1, MaxLimit)}
		if !rate.Fits(limit) {
			t.Skip()
		}
		quantity = within(quantity, -MaxLimit-1, MaxLimit+1)
		s := State{TAT: tat}
		if oldCount != 0 {
			s.Rate = Rate{within(oldPeriod, 1, MaxPeriod), within(oldCount, 1, MaxLimit)}.Reduced()
			s.Frac = within(frac, 0, s.Rate.Count-1)
		}
		l := limiter{s, bucketOf(s)}
		v := l.call(t, now, limit, rate, quantity)
		inRange(t, limit, v, l.state)
		settled := l.state.Rate.Count == 0 || l.state.Rate == rate.Reduced()
		if v.RetryAfter != Never && settled && v.RetryAfter <= math.MaxInt64-now {
			if _, v := Throttle(now+v.RetryAfter, l.state, limit, rate, quantity); v.Limited {
				t.Fatalf("waited %d ns after %d and still limited", v.RetryAfter, now)
			}
			if _, v := Throttle(now+v.RetryAfter-1, l.state, limit, rate, quantity); !v.Limited {
				t.Fatalf("admitted 1 ns early")
			}
		}
		v = l.call(t, now+within(wait, 0, math.MaxInt64-now), limit, rate, quantity)
		inRange(t, limit, v, l.state)
	})
}

// FuzzClock lets the wall clock step about: two bytes how far it goes, one how far
// the monotonic clock does, again and again.
func FuzzClock(f *testing.F) {
	// Forward, not at all, back by 100, on until both agree, not at all, forward.
	f.Add([]byte{0, 100, 9, 0, 0, 9, 0xff, 0x9c, 9, 0, 40, 40, 0, 100, 100, 0, 60, 60, 0, 0, 9, 0, 9, 9})
	// Back, back again while behind, a monotonic clock that stands, a step over the lead.
	f.Add([]byte{0xff, 0x9c, 1, 0, 3, 3, 0xff, 0, 1, 0, 9, 0, 0, 1, 1, 0x7f, 0, 1, 0, 1, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var c Clock
		wall, mono, told := int64(1<<20), int64(0), int64(0)
		var since, lead int64 // when the wall clock fell behind, and what was told then
		behind := false
		for ; len(steps) >= 3; steps = steps[3:] {
			wall = max(wall+int64(int16(binary.BigEndian.Uint16(steps))), 0)
			mono += int64(steps[2])
			asked := false
			now := c.Now(wall, func() int64 { asked = true; return mono })
			switch {
			case now < told:
				t.Fatalf("ran backward from %d to %d", told, now)
			case now < wall:
				t.Fatalf("told %d where the wall clock says %d", now, wall)
			case asked != (behind || wall < told):
				t.Fatalf("the monotonic clock was asked: %v; behind: %v", asked, behind)
			}
			if now > wall {
				if !behind {
					since, lead = mono, told
				}
				// Half speed, and the halves do not add up to an error.
				if twice := 2 * (now - lead); twice > mono-since || twice < mono-since-1 {
					t.Fatalf("%d us by the monotonic clock made %d", mono-since, now-lead)
				}
			}
			behind, told = now > wall, now
		}
	})
}

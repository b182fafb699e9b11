package funnel_test

import (
	"testing"

	"gothrottle/funnel"
)

// The units of forced calls are in use until they leave, at most a part of the period late.
// While more than the limit is in use no plain call is admitted.
func TestWindow_forcedUnitsLeave(t *testing.T) {
	debts := 0
	eachSchedule(t, 300, func(t *testing.T, s *schedule) {
		s.force, s.newLimits, s.newExact = true, 20, 20
		var l windowLog
		var calls []admission
		for range 100 {
			c := s.call()
			v := l.call(t, c)
			s.last = v.Verdict
			if v.Granted > 0 {
				calls = append(calls, admission{time: c.now, units: v.Granted})
			}
			if c.Force && (v.Limited || v.Granted != c.Quantity) {
				t.Fatalf("%+v: %+v", c, v)
			}
			part := (c.Period - 1) / funnel.WindowParts
			used, least := l.inUse(c.now, c.Period), sumOf(after(calls, c.now-c.Period))
			if most := sumOf(after(calls, c.now-c.Period-part)); used < least || used > most {
				t.Fatalf("%+v leaves %d in use, want %d to %d: %s", c, used, least, most, &l)
			}
			if least > c.Limit {
				debts++
				if v.Remaining != 0 || !c.Force && v.Granted != 0 {
					t.Fatalf("%+v with %d in use: %+v", c, least, v)
				}
			}
			l.retried(t, c, v)
		}
	})
	if !t.Failed() && debts < 1000 {
		t.Errorf("%d debts prove nothing", debts)
	}
}

// However many forced calls there are, they leave at most WindowParts + 1 entries, whatever the
// limit. Plain calls and peeks in between are denied.
func TestWindow_millionForcedCalls(t *testing.T) {
	for _, c := range []struct {
		limit        int64
		period, step funnel.Micros
		calls        int
	}{
		{1, 60e6, 150, 1_000_000}, {100, 60e6, 6007, 20_000}, {funnel.WindowParts, 1000, 1, 20_000},
		{funnel.WindowParts + 1, 1007, 3, 20_000}, {1000, maxPeriodMicros, 1e12, 20_000},
	} {
		var l windowLog
		most := 0
		at := originMicros
		for i := range c.calls {
			p := funnel.WindowParams{Limit: c.limit, Period: c.period, Quantity: 7 + c.limit, Force: true}
			if v := l.call(t, windowCall{at, p}); v.Granted != p.Quantity {
				t.Fatalf("call %d under %+v: %+v", i, c, v)
			}
			if most = max(most, len(l.entries)); most > funnel.WindowParts+1 {
				t.Fatalf("call %d under %+v leaves %d entries", i, c, most)
			}
			if p.Force, p.Quantity = false, int64(i%2); i%100 == 0 {
				if v := l.call(t, windowCall{at, p}); !v.Limited {
					t.Fatalf("a plain call after forced call %d under %+v: %+v", i, c, v)
				}
			}
			at += c.step
		}
		if most != funnel.WindowParts+1 {
			t.Errorf("%+v: %d entries at most, want %d", c, most, funnel.WindowParts+1)
		}
	}
}

// Forced calls with EXACT have an entry for each microsecond, also under a small limit.
func TestWindow_forcedExact(t *testing.T) {
	var l windowLog
	for i := range funnel.Micros(500) {
		l.call(t, windowCall{originMicros + i, funnel.WindowParams{Limit: 1, Period: 60e6, Quantity: 1, Force: true, Exact: true}})
	}
	if len(l.entries) != 500 {
		t.Errorf("%d entries, want 500", len(l.entries))
	}
}

// An estimate that is settled later leaves as many units in use as the right quantity would
// have left, and never fewer afterwards.
func TestWindow_settledEstimate(t *testing.T) {
	more, less := 0, 0
	eachSchedule(t, 400, func(t *testing.T, s *schedule) {
		var before windowLog
		for range 40 {
			s.next()
			p := funnel.WindowParams{Limit: s.limit, Period: s.period, Quantity: logUniform(s.Rand, s.limit)}
			estimated, v := before.decide(t, windowCall{s.now, p})
			s.last = v.Verdict
			actual := p
			actual.Quantity = logUniform(s.Rand, s.limit)
			right, rightly := before.decide(t, windowCall{s.now, actual})
			later := s.now + s.below(s.period)
			if s.IntN(3) == 0 {
				later = s.now
			}
			if p.Quantity, p.Force = actual.Quantity-p.Quantity, true; v.Limited || rightly.Limited || p.Quantity == 0 {
				continue
			}
			estimated.call(t, windowCall{later, p})
			for at := later; at < later+2*s.period; at += max(s.period/16, 1) {
				got, want := estimated.inUse(at, s.period), right.inUse(at, s.period)
				if at == later && got != want || got < want {
					t.Fatalf("%+v settled by %d: %d in use %d us later, want %d", actual, p.Quantity, got, at-later, want)
				}
			}
			if p.Quantity > 0 {
				more++
			} else {
				less++
			}
			s.now, before = later, estimated
		}
	})
	if !t.Failed() && min(more, less) < 1000 {
		t.Errorf("%d estimates too low and %d too high prove nothing", more, less)
	}
}

// Within one fixed window a settled estimate leaves exactly what the right quantity would have
// left.
func TestQuota_settledEstimate(t *testing.T) {
	tried := 0
	eachSchedule(t, 300, func(t *testing.T, s *schedule) {
		var before funnel.QuotaState
		for range 40 {
			s.next()
			estimated, right := quotaOf(before), quotaOf(before)
			p := funnel.QuotaParams{Limit: s.limit, Period: s.period, Quantity: logUniform(s.Rand, s.limit)}
			actual := p
			actual.Quantity = logUniform(s.Rand, s.limit)
			v := estimated.call(t, s.now, p)
			s.last = v
			if v.Limited || right.call(t, s.now, actual).Limited || p.Quantity == actual.Quantity {
				continue
			}
			p.Quantity, p.Force = actual.Quantity-p.Quantity, true
			s.now += s.below(estimated.state.End - s.now)
			estimated.call(t, s.now, p)
			if estimated.state != right.state {
				t.Fatalf("%+v settled by %d: %+v, want %+v", actual, p.Quantity, estimated.state, right.state)
			}
			before = estimated.state
			tried++
		}
	})
	if !t.Failed() && tried < 1000 {
		t.Errorf("%d estimates prove nothing", tried)
	}
}

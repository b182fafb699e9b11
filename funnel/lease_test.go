package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

import (
	"slices"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// slots are leases in memory, kept by the verdicts as a server's sorted set is. After every
// call they must agree with their oracle.
type slots struct {
	lapses map[string]funnel.Micros
	oracle *oracle.Lease
}

func newSlots() *slots { return &slots{map[string]funnel.Micros{}, new(oracle.Lease)} }

// decide asks for a slot without taking it. RetryAfter is set.
func (s *slots) decide(t testing.TB, now funnel.Micros, id string, p funnel.LeaseParams) funnel.LeaseVerdict {
	t.Helper()
	var state funnel.LeaseState
	var lapses []funnel.Micros
	for holder, lapse := range s.lapses {
		switch {
		case lapse <= now:
			continue
		case holder == id:
			state.Own = lapse
		default:
			state.Latest = max(state.Latest, lapse)
		}
		lapses = append(lapses, lapse)
	}
	state.Used = int64(len(lapses))
	v := funnel.Lease(now, state, p)
	if v.Limited {
		slices.Sort(lapses)
		if v.Await < 1 || v.Await > state.Used {
			t.Fatalf("awaits %d of %d slots", v.Await, state.Used)
		}
		v.RetryAfter = (lapses[v.Await-1] - now).Nanos()
	}
	return v
}

// call asks for a slot, compares the verdict with the oracle's and checks RetryAfter.
func (s *slots) call(t testing.TB, now funnel.Micros, id string, p funnel.LeaseParams) funnel.LeaseVerdict {
	t.Helper()
	v := s.decide(t, now, id, p)
	if want := s.oracle.Call(now, id, p); v != want {
		t.Fatalf("%d: %s calls %+v: %+v, want %+v", now, id, p, v, want)
	}
	inRange(t, p.Limit, 1, false, v.Verdict)
	if !v.Limited {
		for holder, lapse := range s.lapses {
			if lapse <= now {
				delete(s.lapses, holder)
			}
		}
		s.lapses[id] = v.Lapse
	}
	promises(t, now, v.Verdict, s.oracle.Void, func(at funnel.Micros) funnel.Verdict { return s.decide(t, at, id, p).Verdict })
	return v
}

// release gives a slot back and reports whether it was held at now.
func (s *slots) release(t testing.TB, now funnel.Micros, id string) bool {
	t.Helper()
	held := s.lapses[id] > now
	delete(s.lapses, id)
	if got := s.oracle.Release(now, id); got != held {
		t.Fatalf("%d: the oracle says of %s: held: %v", now, id, got)
	}
	return held
}

// However ids come, renew, lapse and are given back, every reply is the oracle's and no new id
// goes over the limit.
func TestLease_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachSchedule(t, 400, func(t *testing.T, w *schedule) {
		s := newSlots()
		var retry funnel.Micros
		for range 100 {
			if w.IntN(10) == 0 {
				w.newPeriod()
			}
			if w.IntN(5) == 0 {
				w.limit = w.Int64N(8) + 1
			}
			w.now += []funnel.Micros{
				0, 0, 1, retry, max(retry-1, 0), w.below(w.period), w.below(w.period)/8 + 1,
			}[w.IntN(7)]
			if w.IntN(30) == 0 {
				w.now = max(w.now-logUniform(w.Rand, w.period), 0)
			}
			if w.now > 1<<52 {
				break
			}
			id := string(rune('a' + w.IntN(12)))
			if w.IntN(8) == 0 {
				s.release(t, w.now, id)
				continue
			}
			before := len(s.lapses)
			v := s.call(t, w.now, id, funnel.LeaseParams{Limit: w.limit, TTL: w.period})
			retry = v.RetryAfter.Micros()
			if int64(len(s.lapses)) > w.limit && !v.Limited && !v.Renewed {
				t.Fatalf("%d of %d slots are held after %+v", len(s.lapses), w.limit, v)
			}
			seen.count("denial", v.Limited)
			seen.count("renewal", v.Renewed)
			seen.count("slot in place of a lapsed one", len(s.lapses) <= before && !v.Limited && !v.Renewed)
		}
	})
	seen.atLeast(t, 1000, "denial", "renewal", "slot in place of a lapsed one")
}

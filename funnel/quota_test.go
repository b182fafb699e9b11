package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

import (
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// quota is a fixed window and its oracle, which must agree after every call.
type quota struct {
	state  funnel.QuotaState
	oracle *oracle.Quota
}

// quotaOf returns a fixed window in any state.
func quotaOf(s funnel.QuotaState) *quota { return &quota{s, oracle.NewQuota(s.Used, s.End)} }

// decide makes a call and returns the state that the call leaves.
func (q *quota) decide(now funnel.Micros, p funnel.QuotaParams) (funnel.QuotaState, funnel.Verdict) {
	next, v := funnel.Quota(now, q.state, p)
	switch v.Change {
	case funnel.Store:
		return next, v
	case funnel.Forget:
		return funnel.QuotaState{}, v
	}
	return q.state, v
}

// call makes a call on both, compares the verdicts and what is stored, and checks RetryAfter.
func (q *quota) call(t testing.TB, now funnel.Micros, p funnel.QuotaParams) (v funnel.Verdict) {
	t.Helper()
	before := q.state
	q.state, v = q.decide(now, p)
	if want := q.oracle.Call(now, p); !agree(v, want) {
		t.Fatalf("Quota(%d, %+v, %+v) =\n%+v, want\n%+v", now, before, p, v, want)
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v)
	used, end := q.oracle.State()
	if stored := (funnel.QuotaState{Used: used, End: end}); q.state != stored {
		t.Fatalf("Quota(%d, %+v, %+v) left %+v, want %+v", now, before, p, q.state, stored)
	}
	promises(t, now, v, q.oracle.Void, func(at funnel.Micros) funnel.Verdict {
		_, v := q.decide(at, p)
		return v
	})
	return v
}

// Whatever the calls, every reply and every state is the exact model's.
func TestQuota_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		q := quotaOf(funnel.QuotaState{})
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
		if s.force && s.IntN(2) == 0 {
			used := funnel.MaxInUse - logUniform[int64](s.Rand, s.limit)
			q = quotaOf(funnel.QuotaState{Used: used, End: s.now + 1 + s.below(s.period)})
		}
		align := s.IntN(2) == 0
		for range 100 {
			c := s.call()
			if s.oneIn(s.newLimits * 2) {
				align = !align
			}
			end := q.state.End
			v := q.call(t, c.now, funnel.QuotaParams{
				Limit: c.Limit, Period: c.Period, Quantity: c.Quantity, UpTo: c.UpTo, Force: c.Force,
				Align: align, Offset: s.offset,
			})
			s.last = v
			seen.count("too much", v.TooMuch)
			seen.count("debt", c.Force && q.state.Used > c.Limit && v.Granted > 0)
			seen.count("denial", v.Limited)
			seen.count("partial grant", partial(c.Quantity, v))
			seen.count("refund of all", v.Change == funnel.Forget)
			seen.count("new window", v.Granted > 0 && q.state.End != end)
		}
	})
	seen.atLeast(t, 20, "too much")
	seen.atLeast(t, 500, "debt", "partial grant", "refund of all")
	seen.atLeast(t, 2000, "denial", "new window")
}

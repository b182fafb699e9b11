package funnel_test

// No transcript holds what is true of random calls in any order.

import (
	"fmt"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// However ids come, renew, lapse and are given back, every reply is the exact model's, no new id goes over the limit, and the
// key holds the slots of the model.
func TestLease_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachSchedule(t, 400, func(t *testing.T, s *schedule) {
		o := new(oracle.Lease)
		for range 100 {
			if s.oneIn(10) {
				s.newPeriod()
			}
			if s.oneIn(5) {
				s.limit = s.Int64N(8) + 1
			}
			s.wait()
			id := string(rune('a' + s.IntN(12)))
			before := s.entries()
			if s.oneIn(8) {
				if n, err := s.Do(s.now, "GO.RELEASE", "k", id); n != one(o.Release(s.now, id)) {
					t.Fatalf("%d: released %v of %s, %v", s.now, n, id, err)
				}
				continue
			}
			p := funnel.LeaseParams{Limit: s.limit, TTL: s.period}
			v := o.Call(s.now, id, p)
			s.ask(t, fmt.Sprint("GO.LEASE k ", p.Limit, " ", int64(p.TTL)/1000, " ", id, " MS"), p.Limit, v.Verdict, one(v.Renewed))
			s.last = v.Verdict
			inRange(t, p.Limit, 1, false, v.Verdict)
			promises(t, s.now, v.Verdict, o.Void, func(at funnel.Micros) funnel.Verdict { return o.Clone().Call(at, id, p).Verdict })
			held := o.Held(s.now)
			if int64(len(held)) > s.limit && !v.Limited && !v.Renewed {
				t.Fatalf("%d of %d slots are held after %+v", len(held), s.limit, v)
			}
			if s.entries() != len(held) { // no more lapse than a call clears away
				t.Fatalf("%d slots are held, want %v", s.entries(), held)
			}
			seen.count("denial", v.Limited)
			seen.count("renewal", v.Renewed)
			seen.count("slot in place of a lapsed one", len(held) <= before && !v.Limited && !v.Renewed)
		}
	})
	seen.atLeast(t, 1000, "denial", "renewal", "slot in place of a lapsed one")
}

package failover

import (
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
)

// result is what one failover did.
type result struct {
	excess       int64         // the largest of the keys: units above burst + rate x span, in the worst span
	after        int64         // units that the old master was seen to admit after the fault
	held         time.Duration // from the fault to the last of them
	acknowledged int64         // units that the replicas acknowledged
	lost         int64         // of these, those that the new master does not know
	out          time.Duration // the longest time without a decision for the throttle.Clients of the coast
	back         time.Duration // from when they could find the new master
	calls        int           // of throttle.Clients
	failed       int
	over         int           // calls that took more than limit + tolerance
	longest      time.Duration // of these calls
}

// check holds the counts against the bounds.
func (e *episode) check(sum *summary) {
	e.t.Helper()
	r := &e.result
	for _, key := range []*limited{e.big, e.small} {
		forgotten := e.checkSlow(key)
		bound := key.units(e.maybeLost)
		if e.fault.lossless {
			bound = 0
		}
		assert.LessOrEqual(e.t, forgotten, bound, "%s: the new master has forgotten more units of %s than the old one can have kept to itself", e.fault.name, key.key)
	}
	for _, key := range e.others {
		assert.Zero(e.t, e.checkSlow(key), "%s: forgotten units of %s, whose master did not fail", e.fault.name, key.key)
	}
	e.checkSteady()
	e.checkOldMaster()
	every := func(admission) bool { return true }
	r.acknowledged = e.waited.units(every)
	r.lost = max(0, r.acknowledged-e.used(e.waited))
	assert.Zero(e.t, r.lost, "%s: lost units that all replicas had acknowledged", e.fault.name)
	e.checkClients()
	sum.add(e.fault, *r)
	fmt.Fprintf(os.Stderr, "%s %d: %s: excess %d, %d units in %d ms after the fault, no decision for %d ms, %d ms with a new master\n", e.d.kind,
		e.number, e.fault.name, r.excess, r.after, r.held.Milliseconds(), r.out.Milliseconds(), r.back.Milliseconds())
}

// checkSlow checks that no span of time has more units than the burst and the units that the new master has forgotten. It
// returns how many the new master has forgotten.
func (e *episode) checkSlow(key *limited) (forgotten int64) {
	e.t.Helper()
	all := func(admission) bool { return true }
	forgotten = max(0, key.units(all)-e.used(key))
	excess := key.pace.excess(key.granted)
	assert.LessOrEqual(e.t, excess, float64(forgotten), "%s: excess of %s, and forgotten units", e.fault.name, key.key)
	e.result.excess = max(e.result.excess, int64(math.Round(excess)))
	return forgotten
}

// checkSteady checks the key whose units come back at a rate. The times are those of the clients, so a span may look
// shorter than it was for the server, by the time of a call.
func (e *episode) checkSteady() {
	e.t.Helper()
	var call time.Duration
	for _, c := range e.callers {
		if c.key == e.steady {
			call = max(call, c.longest)
		}
	}
	bound := float64(e.steady.units(e.maybeLost)) + e.steady.pace.perSecond*call.Seconds() + 1
	if e.fault.lossless {
		bound = e.steady.pace.perSecond*call.Seconds() + 1
	}
	assert.LessOrEqual(e.t, e.steady.pace.excess(e.steady.granted), bound, "%s: excess of %s", e.fault.name, e.steady.key)
}

// maybeLost reports whether the old master can have admitted these units and kept them to itself. Units of more than a
// second before the fault have reached the replicas.
func (e *episode) maybeLost(a admission) bool {
	end := e.demoted
	if e.fault.cutOff && a.by.from == e.d.coast {
		end = e.failed
	}
	slack := e.slack()
	stopped := a.at > e.failed+slack && a.at < e.resumed
	return a.at >= e.failed-slack && a.at <= end+slack && !stopped
}

// checkOldMaster measures for how long the old master went on. The callers that ask it alone have seen it.
func (e *episode) checkOldMaster() {
	e.t.Helper()
	from := max(e.failed, e.cut, e.resumed)
	for _, key := range []*limited{e.big, e.small, e.steady} {
		e.result.after += key.units(func(a admission) bool { return a.by.only != nil && a.at > from })
		for _, a := range key.granted {
			if a.by.only != nil {
				e.result.held = max(e.result.held, a.at-from)
			}
		}
	}
	if e.fault.bounded {
		assert.LessOrEqual(e.t, e.result.held, e.fault.ends+e.slack(), "%s: the old master went on", e.fault.name)
	}
}

// checkClients checks the throttle.Clients: typed errors, no call much longer than its limit, and decisions again soon
// after there is a new master. A slow machine may add a second to a call, and ten to the way back.
func (e *episode) checkClients() {
	e.t.Helper()
	r := &e.result
	var decided []time.Duration
	for _, c := range e.callers {
		if !c.typed {
			continue
		}
		r.calls, r.failed, r.over, r.longest = r.calls+c.calls, r.failed+c.failed, r.over+c.over, max(r.longest, c.longest)
		assert.NoError(e.t, c.untyped, "%s: an error that is not ErrUnavailable", e.fault.name)
		if c.from == e.d.coast && !slices.Contains(e.others, c.key) {
			decided = append(decided, c.decided...)
		}
	}
	slices.Sort(decided)
	for i, at := range decided {
		if i > 0 && at > e.failed {
			r.out = max(r.out, at-decided[i-1])
		}
	}
	if i, _ := slices.BinarySearch(decided, e.named); assert.Less(e.t, i, len(decided), "no decisions after the failover") {
		r.back = decided[i] - e.named
	}
	assert.Less(e.t, r.longest, throttleTimeout+e.slack(), "%s: the longest call", e.fault.name)
	assert.Less(e.t, r.back, 9*time.Second+e.slack(), "%s: decisions come back", e.fault.name)
}

// add adds a failover to its row.
func (s *summary) add(f *fault, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(f.name)
	row.Failovers++
	row.Excess, row.Held, row.Longest = max(row.Excess, r.excess), max(row.Held, r.held.Milliseconds()), max(row.Longest, r.longest.Milliseconds())
	row.Acknowledged, row.Lost = row.Acknowledged+r.acknowledged, row.Lost+r.lost
	row.Calls, row.Over = row.Calls+r.calls, row.Over+r.over
	row.outs, row.backs = append(row.outs, r.out.Milliseconds()), append(row.backs, r.back.Milliseconds())
	row.Out, row.Back = middle(row.outs), middle(row.backs)
}

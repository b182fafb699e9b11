package clients

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"gothrottle/commands/memory/resp"
	"gothrottle/funnel"
	exact "gothrottle/tests/world"
)

// failover is when a copy took the place of a master. Both have an address.
type failover struct {
	at       time.Time
	old, new string
}

// done is a call that a server has run, with what the models held before it.
type done struct {
	resp.Run
	before exact.Keys
}

// losesTheLag: each reply of a server is that of the exact models. With a failover they forget what the old master has run within
// the lag of its copy, and nothing else.
func (r *run) losesTheLag() string {
	keys, failovers, journal, copies := exact.Keys{}, r.failovers, []done{}, map[string]bool{}
	for _, one := range r.runs {
		if slices.ContainsFunc(failovers, func(f failover) bool { return f.old == one.Addr && f.at.Equal(one.At) }) {
			return "" // chance decides whether it ran before or after
		}
		for len(failovers) > 0 && (failovers[0].at.Before(one.At) || failovers[0].at.Equal(one.At) && failovers[0].new == one.Addr) {
			copies[failovers[0].old], copies[failovers[0].new] = true, false
			journal = failovers[0].undo(r.Lag, keys, journal)
			failovers = failovers[1:]
		}
		if copies[one.Addr] { // it was a master when the client began to connect, and its copy of the data lags
			continue
		}
		c, known := exact.Policies{}.Parse(one.Words)
		if !known || !keys.Knows(c) {
			return fmt.Sprintf("the models don't know %q", one.Words)
		}
		d := done{one, exact.Keys{}}
		for i := range c.Clauses {
			maps.Copy(d.before, keys.Clone(c.Clauses[i].Key))
		}
		journal = append(journal, d)
		want, _ := c.Reply(keys, funnel.Micros(one.At.UnixMicro()))
		if _, refused := one.Reply.(error); refused != (want == exact.ErrTooMuch) || !refused && !reflect.DeepEqual(one.Reply, want) {
			return fmt.Sprintf("+%s: %s replies %v to %q, and the models %v", one.At.Sub(r.epoch), one.Addr, one.Reply, one.Words, want)
		}
	}
	return ""
}

// undo forgets the calls that the new master didn't get, and returns the others.
func (f failover) undo(lag time.Duration, keys exact.Keys, journal []done) (kept []done) {
	for _, d := range slices.Backward(journal) {
		if d.Addr == f.old && d.At.After(f.at.Add(-lag)) {
			maps.Copy(keys, d.before)
		} else {
			kept = append(kept, d)
		}
	}
	slices.Reverse(kept)
	return kept
}

// undone reports whether a failover lost what a server has run, or another server had taken its place.
func (r *run) undone(one resp.Run) (undone bool) {
	for _, f := range r.failovers {
		switch later := f.at.After(one.At); {
		case one.Addr == f.old && (!later || one.At.After(f.at.Add(-r.Lag))):
			undone = true
		case one.Addr == f.new && !later:
			undone = false
		}
	}
	return undone
}

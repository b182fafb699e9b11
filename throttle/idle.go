package throttle

import (
	"maps"
	"time"
)

// A shard is swept when its entries have doubled, and in its turn: the shards take turns, and each comes every 10 s while
// the client decides anything.
const (
	sweepStep  = 10 * time.Second / shardCount
	leastSweep = 64 // entries
)

// sweepInTurn sweeps the next shard if it is time. The shard s is locked.
func (c *Client) sweepInTurn(s *shard, now time.Duration) {
	due := c.sweepDue.Load()
	wait := time.Duration(due) - now // the clock may jump
	if wait > 0 && wait <= sweepStep || !c.sweepDue.CompareAndSwap(due, int64(now+sweepStep)) {
		return
	}
	next := &c.shards[c.sweeps.Add(1)%shardCount]
	if next == s {
		s.sweep(now, c.o.Budget.Hold)
	} else if next.mu.TryLock() { // its holder may try to lock s
		next.sweep(c.now(), c.o.Budget.Hold)
		next.mu.Unlock()
	}
}

// sweep drops the entries that hold nothing any more. Calls do not notice: such an entry is like a new one.
func (s *shard) sweep(now, hold time.Duration) {
	s.most = max(s.most, len(s.entries))
	for k, e := range s.entries {
		if !e.holds(now, hold) {
			delete(s.entries, k)
		}
	}
	if left := len(s.entries); left < s.most/2 {
		s.entries, s.most = maps.Collect(maps.All(s.entries)), left // a map keeps the room of what was deleted
	}
	s.sweepAt = 2 * len(s.entries)
}

// holds reports whether the entry holds anything.
func (e *entry) holds(now, hold time.Duration) bool {
	return e.busy || e.kept != nil && (e.denies(now) || e.budget.known(now, hold))
}

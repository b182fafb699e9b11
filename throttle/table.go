package throttle

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// table is what a limiter remembers of its keys, in parts that have a lock each.
type table[K comparable, V any] struct {
	seed   maphash.Seed
	idle   func(v *V, now time.Duration) bool // the value says no more than none would
	sweeps atomic.Uint64                      // how many parts were swept in their turn
	due    atomic.Int64                       // when the next one is
	parts  [tableParts]part[K, V]
}

type part[K comparable, V any] struct {
	mu      sync.Mutex
	values  map[K]*V
	sweepAt int // sweep when there are this many values
	most    int // values, since the map was made
}

// A part is swept when its values have doubled, and in its turn: the parts take turns, and each comes every 10 s while the
// limiter is used.
const (
	tableParts = 16
	sweepStep  = 10 * time.Second / tableParts
	leastSweep = 64 // values
)

func newTable[K comparable, V any](idle func(v *V, now time.Duration) bool) *table[K, V] {
	return &table[K, V]{seed: maphash.MakeSeed(), idle: idle}
}

// lock returns the locked part of a key.
func (t *table[K, V]) lock(key string) *part[K, V] {
	p := &t.parts[maphash.String(t.seed, key)%tableParts]
	p.mu.Lock()
	return p
}

// add adds the zero value. The part p is locked.
func (t *table[K, V]) add(p *part[K, V], k K, now time.Duration) *V {
	if p.values == nil {
		p.values = map[K]*V{}
	}
	if len(p.values) >= max(p.sweepAt, leastSweep) {
		p.sweep(t.idle, now)
	}
	v := new(V)
	p.values[k] = v
	return v
}

// sweepInTurn sweeps the next part if it is time. No part is locked.
func (t *table[K, V]) sweepInTurn(now time.Duration) {
	due := t.due.Load()
	wait := time.Duration(due) - now // the clock may jump
	if wait > 0 && wait <= sweepStep || !t.due.CompareAndSwap(due, int64(now+sweepStep)) {
		return
	}
	p := &t.parts[t.sweeps.Add(1)%tableParts]
	p.mu.Lock()
	p.sweep(t.idle, now)
	p.mu.Unlock()
}

// sweep drops the values that are idle. Calls do not notice.
func (p *part[K, V]) sweep(idle func(v *V, now time.Duration) bool, now time.Duration) {
	p.most = max(p.most, len(p.values))
	for k, v := range p.values {
		if idle(v, now) {
			delete(p.values, k)
		}
	}
	if n := len(p.values); n < p.most/2 {
		p.values, p.most = maps.Collect(maps.All(p.values)), n // a map keeps the room of what was deleted
	}
	p.sweepAt = 2 * len(p.values)
}

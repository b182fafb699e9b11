package memory

import (
	"container/list"
	"sync"
	"sync/atomic"

	"gothrottle/funnel"
)

// Table is a Server with a bounded number of keys, in which a process counts while its own server is unavailable: clients choose
// the names. If there are too many, the key that was used least recently begins again.
type Table struct {
	*Server
	most    int
	dropped atomic.Uint64

	mu     sync.Mutex
	order  list.List // names, the one used last at the front
	places map[string]*list.Element
}

// NewTable returns a Table without keys.
func NewTable(most int) *Table {
	return &Table{Server: NewServer(), most: most, places: map[string]*list.Element{}}
}

// Dropped is how many keys have begun again.
func (t *Table) Dropped() uint64 { return t.dropped.Load() }

// Process is that of Server.
func (t *Table) Process(now funnel.Micros, cmd interface{ Args() []any }) error {
	for _, key := range t.KeysOf(Words(cmd)) {
		t.use(key)
	}
	return t.Server.Process(now, cmd)
}

// use moves a key to the front, and drops the last one if there are too many.
func (t *Table) use(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.places[key]; at != nil {
		t.order.MoveToFront(at)
		return
	}
	t.places[key] = t.order.PushFront(key)
	if t.order.Len() > t.most {
		last := t.order.Remove(t.order.Back()).(string)
		delete(t.places, last)
		t.Delete(last)
		t.dropped.Add(1)
	}
}

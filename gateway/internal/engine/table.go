package engine

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// table is a server in this process, in which on_failure: local counts. It has a bounded number of keys: clients choose their
// names.
type table struct {
	*memory.Server
	most    int
	dropped atomic.Uint64 // keys that others have displaced, and that begin again

	mu     sync.Mutex
	order  list.List // names, the one used last at the front
	places map[string]*list.Element
}

func newTable(most int) *table {
	return &table{Server: memory.NewServer(), most: most, places: map[string]*list.Element{}}
}

// Process runs a command of package throttle.
func (t *table) Process(_ context.Context, cmd redis.Cmder) error {
	words := memory.Words(cmd)
	for _, key := range t.KeysOf(words) {
		t.use(key)
	}
	reply, err := t.Do(funnel.Micros(time.Now().UnixMicro()), words...)
	if err == nil {
		err = memory.SetReply(cmd, reply)
	}
	cmd.SetErr(err)
	return err
}

// use moves a key to the front, and drops the last one if there are too many.
func (t *table) use(key string) {
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

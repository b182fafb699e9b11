package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// linear is a master and its replica at work.
type linear struct {
	t      *testing.T
	clock  *servers.Clock
	began  time.Time
	now    funnel.Micros // when the round begins
	after  funnel.Micros // when it ends
	suffix string        // of the keys of the round
	tally  map[string]int

	fault  *linearFault
	made   atomic.Int64 // calls of the round
	breaks int64        // the fault happens after so many calls

	mu      sync.RWMutex // clients connect while it is read-locked, faults change what follows
	nodes   [2]*servers.Server
	master  int
	clients [linearClients]*redis.Client
}

// linearFault is something that happens in the midst of a round.
type linearFault struct {
	name   string
	weight int
	// waits: the reply to a call is known only if the replica has what was written before it. Then it survives the master.
	waits bool
	// hasty: two clients wait 5 ms for a reply.
	hasty bool
	run   func(*linear)
}

var linearFaults = []linearFault{
	{name: "none", weight: 160, run: func(*linear) {}},
	{name: "paused", weight: 20, hasty: true, run: (*linear).pause},
	{name: "killed", weight: 10, run: (*linear).kill},
	{name: "failover", weight: 5, run: (*linear).failover},
	{name: "master lost", weight: 5, waits: true, run: (*linear).lose},
}

func pickFault(r *rand.Rand) *linearFault {
	n := r.IntN(200)
	for i := range linearFaults {
		if n -= linearFaults[i].weight; n < 0 {
			return &linearFaults[i]
		}
	}
	panic("the weights")
}

// breakDown lets the fault happen when it is time, and then asks what is in use.
func (l *linear) breakDown() []porcupine.Operation {
	for l.made.Load() < l.breaks {
		time.Sleep(50 * time.Microsecond)
	}
	l.fault.run(l)
	return l.observe()
}

// refused is the reply to a call that was not made.
const refused = "refused"

// call makes a call and returns its reply, "" if it may have been made or not.
func (l *linear) call(id int, words []any) string {
	ctx := context.Background()
	p := l.connection(id).Pipeline()
	c := p.Do(ctx, words...)
	var wait *redis.Cmd
	if l.fault.waits {
		p.Incr(ctx, "written") // else WAIT says nothing about a call that writes nothing
		wait = p.Do(ctx, "WAIT", 1, 1000)
	}
	_, _ = p.Exec(ctx)
	l.made.Add(1)
	v, err := c.Result()
	var said redis.Error
	switch {
	case errors.As(err, &said) && !errors.Is(err, redis.Nil):
		if !strings.HasPrefix(err.Error(), "READONLY") {
			l.t.Errorf("%q: %v", words, err)
		}
		l.hangUp(id)
		return refused
	case err != nil, wait != nil && wait.Val() == int64(0), wait != nil && wait.Err() != nil:
		l.hangUp(id)
		return ""
	}
	return corpus.ReplyText(v)
}

// connection returns a client of the master, and makes one if need be.
func (l *linear) connection(id int) *redis.Client {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.clients[id] == nil {
		l.clients[id] = l.nodes[l.master].Client(func(o *redis.Options) {
			if o.PoolSize = 1; l.fault.hasty && id < 2 {
				o.ReadTimeout = 5 * time.Millisecond
			}
		})
	}
	return l.clients[id]
}

func (l *linear) hangUp(id int) {
	if l.clients[id] != nil {
		l.clients[id].Close()
	}
	l.clients[id] = nil
}

// check ends the test if a fault cannot be brought about.
func (l *linear) check(err error) {
	if err != nil {
		l.t.Error(err)
		panic(err)
	}
}

// await waits until what a node says of its replication has a text.
func (l *linear) await(node int, line string) {
	l.check(servers.Await(line, func() bool {
		v, err := l.nodes[node].Do("INFO", "replication")
		return err == nil && strings.Contains(v.(string), line)
	}))
}

// follow makes the other node a replica of the master.
func (l *linear) follow() {
	l.check(l.nodes[1-l.master].Follow(l.nodes[l.master]))
	l.await(l.master, "state=online")
}

// pause stops the master for longer than hasty clients wait: their calls are made later.
func (l *linear) pause() {
	l.check(l.nodes[l.master].Pause())
	time.Sleep(12 * time.Millisecond)
	l.check(l.nodes[l.master].Resume())
}

// kill ends the master and starts it again on its append-only file, which has all that it replied.
func (l *linear) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes[l.master].Kill()
	l.check(l.nodes[l.master].Restart())
	l.await(1-l.master, "master_link_status:up")
}

// failover lets the nodes change places in good order.
func (l *linear) failover() {
	_, err := l.nodes[l.master].Do("FAILOVER")
	l.check(err)
	l.await(l.master, "role:slave")
	l.await(1-l.master, "role:master")
	l.mu.Lock()
	l.master = 1 - l.master
	l.mu.Unlock()
	l.await(1-l.master, "master_link_status:up")
}

// lose ends the master for good: the replica takes its place.
func (l *linear) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.nodes[l.master]
	lost.Kill()
	l.master = 1 - l.master
	_, err := l.nodes[l.master].Do("REPLICAOF", "NO", "ONE")
	l.check(err)
	l.check(lost.Restart())
	l.follow()
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lane sends the calls of some keys. At most laneWidth commands and pipelines of a lane are under way at the same time. Calls
// that come meanwhile wait, and go together in the next pipeline. So load makes pipelines longer, and the number of
// connections does not grow. A call without company is sent at once in its caller's goroutine.
//
// Where a round trip takes most of the time limit, calls that waited for an earlier one would come too late. So none waits
// for longer than 1/hurryPart of its limit while fewer than widestLane are under way.
type lane struct {
	fails      atomic.Bool // the circuit is not the zero circuit
	mu         sync.Mutex
	circuit    circuit
	underWay   int
	queue      []*call
	hurry      *time.Timer   // when the queue is sent although laneWidth are under way
	loading    chan struct{} // closed when the EVAL under way has ended
	texts      atomic.Int64  // how many have ended
	connecting bool          // see Conn.connect
	connected  time.Time     // when it has succeeded
	rested     time.Time     // after it has failed: when the next try may begin
}

const (
	laneWidth   = 4
	widestLane  = 16
	hurryPart   = 8
	maxPipeline = 512 // commands
)

// Lanes are there so that a dead node of a cluster does not hold up the calls to others: each master, shard of a ring or single
// server has one. Types that embed a client of go-redis are like the client.
//
// Calls with other time limits have other lanes. A server that is too slow for one limit may be quick enough for another, and no call
// waits behind one that may take longer.
type lanes struct {
	first   lane     // of the only server, or of those that aren't known
	servers sync.Map // map[string]*lane: the masters of a cluster or the shards of a ring, by address
}

// lane returns the lane of a key for calls with a time limit.
func (c *Conn) lane(t *Timeout, key string) *lane {
	all := t.lanes.Load()
	if all == nil {
		shared, _ := c.byLimit.LoadOrStore(t.Limit, &lanes{})
		all = shared.(*lanes)
		t.lanes.Store(all)
	}
	var server *redis.Client
	switch rdb := c.rdb.(type) {
	case cluster:
		if c.found.Load() { // else the call would wait until go-redis has found the masters
			server, _ = rdb.MasterForKey(context.Background(), key)
		}
	case ring:
		server, _ = rdb.GetShardClientForKey(key)
	}
	if server == nil {
		return &all.first
	}
	addr := server.Options().Addr
	l, known := all.servers.Load(addr)
	if !known {
		l, _ = all.servers.LoadOrStore(addr, new(lane))
	}
	return l.(*lane)
}

// ring is a client that knows shards.
type ring interface {
	GetShardClientForKey(string) (*redis.Client, error)
}

// pipelines is a client that has them.
type pipelines interface{ Pipeline() redis.Pipeliner }

// cluster is a client that knows masters.
type cluster interface {
	MasterForKey(context.Context, string) (*redis.Client, error)
}

// send sends a command on the lane of its key, unless the lane's circuit is open. It also returns if the deadline of the
// caller's context passes before the time limit: the command then goes on.
func (c *Conn) send(cmd *call) error {
	w := &cmd.within
	if err := ended(w.caller); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	key := cmd.words[1].(string)
	l := c.lane(w.by, key)
	began := time.Duration(0) // before all failures that the circuit counts
	if l.fails.Load() {
		if began = c.Now(); !l.admits(began, w.by.Limit) {
			return fmt.Errorf("%w: %w", ErrUnavailable, errPaused)
		}
	}
	texts := l.texts.Load()
	err := l.send(c, cmd)
	if c.sha != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = l.sendText(c, cmd, texts)
	}
	if err = Classify(err); err == nil {
		l.works(c)
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ended(w) != nil {
		err = fmt.Errorf("%w: no reply within the Timeout of %s", err, w.by.Limit)
	}
	caller := ended(w.caller)
	switch {
	case errors.Is(err, ErrClosed) || caller != nil && errors.Is(err, caller):
		l.undecided(began) // the command's own limit was not over: that says nothing of the server
	case !errors.Is(err, ErrUnavailable) || !failsAll(err):
		l.works(c)
		c.complain(cmd, err)
	default:
		l.failed(c, began, w.by.Limit, err)
		c.connect(l, w, key, err)
	}
	if caller != nil && errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("throttle: %w", caller)
	}
	return err
}

// connectTimeout bounds how long go-redis may take to set up a connection. Close waits for a try to connect, which sets up
// one and then the others. A try that fails is followed by a rest of 1 to 3 times shortestRest: a busy server gets no work
// done if a hundred processes set up connections all the time.
const (
	connectTimeout = 500 * time.Millisecond
	shortestRest   = 2 * time.Second
)

// connect sets up the connections of a lane, after a call has failed at its time limit: within the limits of calls
// alone, a server whose round trips take a third of the limit would never be reached. It asks for the key in the
// background. If all connections get a reply, calls are sent again. A call that began before does not cause another
// try: the connections would be in use when the next call needs one.
func (c *Conn) connect(l *lane, w *within, key string, err error) {
	if !errors.Is(err, context.DeadlineExceeded) || !pooled(c.rdb) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if end, _ := w.Deadline(); l.connecting || time.Now().Before(l.rested) || end.Add(-w.by.Limit).Before(l.connected) {
		return
	}
	l.connecting = c.Start(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*connectTimeout)
		defer cancel()
		works := setUp(ctx, c.rdb, func(_ any, err error) error {
			if err != nil && failsAll(err) {
				return err
			}
			return nil
		}, "EXISTS", key) == nil
		if works {
			l.works(c)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.connecting = false; works {
			l.connected = time.Now()
		} else {
			l.rested = time.Now().Add(shortestRest + rand.N(2*shortestRest))
		}
	})
}

// pooled reports whether a client has connections that go-redis sets up within the time limit of a call.
func pooled(rdb Processor) bool {
	_, ok := rdb.(interface{ PoolStats() *redis.PoolStats })
	return ok
}

// setUp sends a command as often in parallel as a lane may, alone and in pipelines, so that later calls find connections:
// go-redis has a pool of its own for pipelines. If the first connection fails, it sets up no others. It returns the first
// error of read.
func setUp(ctx context.Context, rdb Processor, read func(reply any, err error) error, words ...any) error {
	ask := func(send func(*call) error) func() error {
		return func() error {
			cmd := newCall(within{Context: ctx, caller: ctx}, words)
			err := Classify(send(cmd))
			return read(cmd.Val(), err)
		}
	}
	alone := ask(func(cmd *call) error { return rdb.Process(ctx, cmd) })
	if err := alone(); err != nil || !pooled(rdb) {
		return err
	}
	all := slices.Repeat([]func() error{alone}, laneWidth)
	if p, ok := rdb.(pipelines); ok {
		all = slices.Concat(all, slices.Repeat([]func() error{ask(func(cmd *call) error {
			pipe := p.Pipeline()
			_ = pipe.Process(ctx, cmd)
			_, err := pipe.Exec(ctx)
			return err
		})}, warmPipelines))
	}
	return AtOnce(all)
}

// warmPipelines is how many connections for pipelines are set up: go-redis has 10 of them unless its options say otherwise.
const warmPipelines = 8

// send sends a command and waits for its reply, or until its turn comes too late for the time limit or for the caller. A client
// without pipelines has no queue.
func (l *lane) send(c *Conn, cmd *call) error {
	w := &cmd.within
	l.mu.Lock()
	turn := l.underWay < laneWidth || c.pipelines == nil
	if turn {
		l.underWay++
	}
	if turn && !w.hasty() && !c.ignores {
		l.mu.Unlock()
		defer l.next(c)
		return c.rdb.Process(w, cmd)
	}
	cmd.done, cmd.gone = make(chan struct{}), false
	if !turn {
		if len(l.queue) == 0 {
			l.hurryUp(c, w.by.Limit/hurryPart)
		}
		l.queue = append(l.queue, cmd)
	}
	l.mu.Unlock()
	if turn { // a goroutine of its own: the caller may go before the reply comes
		l.flush(c, []*call{cmd})
	}
	err := w.await(cmd.done)
	if err == nil {
		return cmd.err
	}
	l.mu.Lock()
	cmd.gone = true
	l.mu.Unlock()
	return err
}

// next sends the commands that wait, after a command or a pipeline has ended. If none waits, one less is under way.
func (l *lane) next(c *Conn) {
	l.mu.Lock()
	batch := l.take()
	if len(batch) == 0 {
		l.underWay--
	}
	l.mu.Unlock()
	if len(batch) > 0 {
		l.flush(c, batch)
	}
}

// hurryUp sends the queue after this time. l.mu is locked.
func (l *lane) hurryUp(c *Conn, after time.Duration) {
	if l.hurry != nil {
		l.hurry.Reset(after)
		return
	}
	l.hurry = time.AfterFunc(after, func() {
		l.mu.Lock()
		more := l.underWay < widestLane
		if more {
			l.underWay++
		}
		l.mu.Unlock()
		if more {
			l.next(c)
		}
	})
}

// take removes the oldest commands from the queue, and returns those whose callers still wait.
func (l *lane) take() (batch []*call) {
	for len(batch) == 0 && len(l.queue) > 0 { // what it looks at does not grow with the queue
		n := min(len(l.queue), maxPipeline)
		batch = slices.DeleteFunc(l.queue[:n:n], func(q *call) bool { return q.gone })
		l.queue = l.queue[n:]
	}
	if len(l.queue) == 0 { // so that nothing holds the commands
		if l.queue = nil; l.hurry != nil {
			l.hurry.Stop()
		}
	}
	return batch
}

// flush sends commands in one pipeline, in a goroutine of its own. Its context is the first caller's, with the latest of
// all time limits. Once the client is closed, the commands end unsent.
func (l *lane) flush(c *Conn, batch []*call) {
	w := batch[0].within
	end, _ := w.Deadline()
	for _, q := range batch {
		if later, _ := q.within.Deadline(); later.After(end) {
			w.Context, end = q.within.Context, later
		}
	}
	finish := func() {
		for _, q := range batch {
			close(q.done)
		}
		l.next(c)
	}
	if !c.Start(func() { c.sendAll(&w, batch); finish() }) {
		for _, q := range batch {
			q.err = ErrClosed
		}
		finish()
	}
}

// sendAll sends commands, several in one pipeline, and sets the error of each.
func (c *Conn) sendAll(ctx context.Context, batch []*call) {
	if len(batch) == 1 {
		batch[0].err = c.rdb.Process(ctx, batch[0])
		return
	}
	pipe := c.pipelines.Pipeline()
	for _, q := range batch {
		_ = pipe.Process(ctx, q)
	}
	_, failed := pipe.Exec(ctx)
	for _, q := range batch {
		if q.err = q.Err(); q.err == nil && q.Val() == nil {
			q.err = failed // of a hook that sent nothing
		}
	}
}

package throttle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lane sends the calls of some keys. At most laneWidth commands and pipelines of a lane are under way at once. Calls
// that come meanwhile wait, and go together in the next pipeline. So load makes pipelines longer, and the number of
// connections does not grow. A call without company is sent at once in its caller's goroutine.
type lane struct {
	mu         sync.Mutex
	circuit    circuit
	underWay   int
	queue      []*queued
	connecting bool      // see Client.connect
	connected  time.Time // when it has succeeded
}

// queued is a command that waits for its turn.
type queued struct {
	cmd  redis.Cmder
	w    *within
	done chan struct{} // closed when the reply is in cmd, or err is set
	err  error         // not in cmd, which go-redis may still use
	left bool          // the caller has gone: the command is not sent
}

const (
	laneWidth   = 4
	maxPipeline = 512 // commands
)

// Lanes are there so that a dead node of a cluster does not hold up the calls to others: a lane of a cluster has 64 slots
// in a row, which are mostly one node's. Where one server has all keys, one lane is best.
const clusterLanes = 256

func (c *Client) makeLanes() {
	n := clusterLanes
	seed := maphash.MakeSeed()
	switch c.rdb.(type) {
	case *redis.Client:
		n = 1
		c.laneOf = func(string) int { return 0 }
	case *redis.ClusterClient:
		c.laneOf = func(key string) int { return int(slot(key)) / (slots / clusterLanes) }
	default:
		c.laneOf = func(key string) int { return int(maphash.String(seed, hashTag(key)) % clusterLanes) }
	}
	c.lanes = make([]lane, n)
}

// do sends a command of a limiter on the lane of its key, unless the lane's circuit is open. It returns when the caller's
// context has a deadline that passes before the time limit, too: the command goes on then.
func (c *Client) do(ctx context.Context, of *limiter, w *within, key string, cmd redis.Cmder) error {
	if err := ended(ctx); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	l := &c.lanes[c.laneOf(key)]
	began := c.now()
	if !l.admits(began, of.timeout) {
		return fmt.Errorf("%w: its last calls failed, and it is asked again soon", ErrUnavailable)
	}
	err := classify(l.send(ctx, w, c, cmd))
	if err == nil {
		l.works(c)
		return nil
	}
	caller := ended(ctx)
	switch {
	case errors.Is(err, ErrClosed) || caller != nil && errors.Is(err, caller):
		l.undecided(began) // the command's own limit was not over: that says nothing of the server
	case !errors.Is(err, ErrUnavailable) || !failsAll(err):
		l.works(c)
	default:
		l.fails(c, began, err)
		end, _ := w.Deadline()
		c.connect(l, key, end.Add(-of.timeout), err)
	}
	if caller != nil && errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("throttle: %w", caller)
	}
	return err
}

// connectTimeout bounds how long go-redis may take to set up a connection. Close waits for it.
const connectTimeout = 500 * time.Millisecond

// pooled reports whether a client has connections that go-redis sets up within the time limit of a call.
func pooled(rdb Processor) bool {
	_, ok := rdb.(interface{ PoolStats() *redis.PoolStats })
	return ok
}

// connect makes go-redis set up as many connections as a lane uses, after a call has failed at its time limit: within the
// limits of calls alone, a server would never be reached whose round trips take a third of that. It asks for the key in the
// background, as often at once as a lane may. If all get a reply, calls are sent again. A call that began before is no
// reason to try once more: the connections would be in use when the next call needs one.
func (c *Client) connect(l *lane, key string, began time.Time, err error) {
	if !errors.Is(err, context.DeadlineExceeded) || !pooled(c.rdb) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connecting || began.Before(l.connected) {
		return
	}
	l.connecting = c.start(func() {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		failed := atOnce(slices.Repeat([]func() error{func() error {
			err := classify(c.rdb.Process(ctx, newGeneralCall(ctx, []any{"EXISTS", key})))
			if err != nil && failsAll(err) {
				return err
			}
			return nil
		}}, laneWidth))
		l.mu.Lock()
		l.connecting = false
		if failed == nil {
			l.connected = time.Now()
		}
		l.mu.Unlock()
		if failed == nil {
			l.works(c)
		}
	})
}

// send sends a command and waits for its reply, or until its turn comes too late for the time limit or for the caller.
func (l *lane) send(ctx context.Context, w *within, c *Client, cmd redis.Cmder) error {
	end, ends := ctx.Deadline()
	limit, _ := w.Deadline()
	hasty := ends && end.Before(limit)
	l.mu.Lock()
	turn := l.underWay < laneWidth
	if turn {
		l.underWay++
	}
	if turn && !hasty {
		l.mu.Unlock()
		defer l.next(c)
		return c.rdb.Process(w, cmd)
	}
	q := &queued{cmd: cmd, w: w, done: make(chan struct{})}
	if !turn {
		l.queue = append(l.queue, q)
	}
	l.mu.Unlock()
	if turn { // a goroutine of its own: the caller may go before the reply comes
		l.flush(c, []*queued{q})
	}
	select {
	case <-q.done:
		return q.err
	case <-w.Done():
	case <-ctx.Done():
	}
	l.mu.Lock()
	q.left = true
	l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.Err()
}

// next sends the commands that wait, after a command or a pipeline has ended. If none waits, one less is under way.
func (l *lane) next(c *Client) {
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

// take removes the oldest commands from the queue, without those whose callers have gone.
func (l *lane) take() (batch []*queued) {
	for len(l.queue) > 0 && len(batch) == 0 {
		n := min(len(l.queue), maxPipeline)
		for _, q := range l.queue[:n] {
			if !q.left {
				batch = append(batch, q)
			}
		}
		if n == len(l.queue) {
			l.queue = nil
		} else {
			l.queue = l.queue[n:]
		}
	}
	return batch
}

// flush sends commands in one pipeline, in a goroutine of its own. Its context is the first caller's, with the latest of
// all time limits. Once the client is closed, the commands end unsent.
func (l *lane) flush(c *Client, batch []*queued) {
	cmds := make([]redis.Cmder, len(batch))
	w := *batch[0].w
	end, _ := w.Deadline()
	for i, q := range batch {
		cmds[i] = q.cmd
		if later, _ := q.w.Deadline(); later.After(end) {
			w.Context, end = q.w.Context, later
		}
	}
	finish := func(errs func(i int) error) {
		for i, q := range batch {
			q.err = errs(i)
			close(q.done)
		}
	}
	if !c.start(func() {
		defer l.next(c)
		errs := c.sendAll(&w, cmds)
		finish(func(i int) error { return errs[i] })
	}) {
		finish(func(int) error { return ErrClosed })
		l.next(c)
	}
}

// sendAll sends commands in one pipeline, if the client of go-redis has pipelines, and returns the error of each.
func (c *Client) sendAll(ctx context.Context, cmds []redis.Cmder) []error {
	errs := make([]error, 0, len(cmds))
	p, ok := c.rdb.(interface{ Pipeline() redis.Pipeliner })
	if !ok || len(cmds) == 1 {
		for _, cmd := range cmds {
			errs = append(errs, c.rdb.Process(ctx, cmd))
		}
		return errs
	}
	pipe := p.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, failed := pipe.Exec(ctx)
	for _, cmd := range cmds {
		err := cmd.Err()
		if err == nil && !answered(cmd) {
			err = failed // of a hook that sent nothing
		}
		errs = append(errs, err)
	}
	return errs
}

// slots is the number of hash slots of a cluster.
const slots = 16384

// slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, as the cluster specification says.
func slot(key string) uint16 {
	var crc uint16
	tag := hashTag(key)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slots
}

// hashTag returns the text between the first brace and the next closing one, or the key if that is nothing.
func hashTag(key string) string {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if to := strings.IndexByte(key[from+1:], '}'); to > 0 {
			return key[from+1 : from+1+to]
		}
	}
	return key
}

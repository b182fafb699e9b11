package throttle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lane sends the calls of some keys. At most laneWidth commands and pipelines of a lane are under way at once. Calls
// that come meanwhile wait, and go together in the next pipeline. So load makes pipelines longer, and the number of
// connections does not grow. A call without company is sent at once in its caller's goroutine.
type lane struct {
	circuit circuit

	mu       sync.Mutex
	underWay int
	queue    []*queued
	closed   bool
}

// queued is a command that waits for its turn.
type queued struct {
	cmd  redis.Cmder
	done chan struct{} // closed when the reply is in cmd, or err is set
	err  error         // not in cmd, which go-redis may still use
	left bool          // the caller has gone: the command is not sent
}

const (
	laneWidth   = 4
	maxPipeline = 512 // commands
)

// Lanes are there so that a dead node of a cluster does not hold up the calls to others: a lane of a cluster has 64 slots
// in a row, which are mostly one node's. Each shard of a ring has a lane. Where one server has all keys, one lane is best.
const clusterLanes = 256

func (c *Client) makeLanes() {
	n := clusterLanes
	switch rdb := c.rdb.(type) {
	case *redis.Client:
		n = 1
		c.laneOf = func(string) int { return 0 }
	case *redis.ClusterClient:
		c.laneOf = func(key string) int { return int(slot(key)) / (slots / clusterLanes) }
	case *redis.Ring:
		c.laneOf = ringLane(rdb)
	default:
		c.laneOf = func(key string) int { return int(maphash.String(c.seed, hashTag(key)) % clusterLanes) }
	}
	c.lanes = make([]*lane, n)
	for i := range c.lanes {
		c.lanes[i] = new(lane)
	}
}

// ringLane returns the lane of a key: each shard has its own, up to the number of lanes.
func ringLane(ring *redis.Ring) func(key string) int {
	var lanes sync.Map // from an address to a lane
	var used atomic.Int64
	return func(key string) int {
		shard, err := ring.GetShardClientForKey(key)
		if err != nil {
			return 0 // no shard is there: the call fails anyway
		}
		addr := shard.Options().Addr
		n, ok := lanes.Load(addr)
		if !ok {
			n, _ = lanes.LoadOrStore(addr, int(used.Add(1)%clusterLanes))
		}
		return n.(int)
	}
}

// do sends a command on the lane of its key, unless the lane's circuit is open.
func (c *Client) do(ctx *within, key string, cmd redis.Cmder) error {
	if err := ctx.caller.Err(); err != nil {
		return classify(ctx.caller, err)
	}
	l := c.lanes[c.laneOf(key)]
	ok, trial := l.circuit.admits(c.base, c.o.Timeout)
	if !ok {
		return fmt.Errorf("%w: its last calls failed, and it is asked again soon", ErrUnavailable)
	}
	var began time.Time
	if ctx.caller.Done() != nil {
		began = time.Now()
	}
	err := classify(ctx.caller, l.send(ctx, c, cmd))
	switch {
	case errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) && !errors.Is(err, ErrUnavailable):
		l.circuit.undecided(time.Since(c.base), trial)
	case !errors.Is(err, ErrUnavailable):
		l.circuit.close()
		if c.away.Load() && !c.anyFails() && c.away.Swap(false) {
			c.o.Logger.Info("throttle: the server decides again")
		}
	case ctx.caller.Err() != nil && time.Since(began) < c.o.Timeout/2:
		// The caller's context ended early. That says nothing of the server.
		l.circuit.undecided(time.Since(c.base), trial)
	default:
		if l.circuit.fail(time.Since(c.base), trial) && !c.away.Swap(true) {
			c.o.Logger.Warn("throttle: the server is unavailable", "error", err)
		}
		c.lookForMasters()
	}
	return err
}

// anyFails reports whether a circuit is open. One that was not tried of late does not count: perhaps nobody uses its keys
// any more, and it stays open.
func (c *Client) anyFails() bool {
	now := time.Since(c.base)
	for _, l := range c.lanes {
		if until := l.circuit.until.Load(); until != 0 && now < time.Duration(until)+untried {
			return true
		}
	}
	return false
}

// lookForMasters makes a cluster client ask for the masters again. By itself it does so when it tries a call on another
// node, but calls of this package are sent once. It asks in the background, once at a time.
func (c *Client) lookForMasters() {
	if rdb, ok := c.rdb.(interface{ ReloadState(context.Context) }); ok {
		rdb.ReloadState(context.Background())
	}
}

// send sends a command and waits for its reply, or until its turn comes too late for the time limit or for the caller.
func (l *lane) send(ctx *within, c *Client, cmd redis.Cmder) error {
	l.mu.Lock()
	if l.underWay < laneWidth {
		l.underWay++
		l.mu.Unlock()
		defer l.next(c)
		return c.process(ctx, cmd)
	}
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	q := &queued{cmd: cmd, done: make(chan struct{})}
	l.queue = append(l.queue, q)
	l.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
	case <-ctx.caller.Done():
	}
	l.mu.Lock()
	q.left = true
	l.mu.Unlock()
	if err := ctx.caller.Err(); err != nil {
		return err
	}
	return ctx.Err()
}

// next sends the commands that wait, after a command or a pipeline has ended. If none waits, one less is under way.
func (l *lane) next(c *Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.take()
	if len(batch) == 0 {
		l.underWay--
		return
	}
	if l.closed {
		l.underWay--
		for ; len(batch) > 0; batch = l.take() {
			for _, q := range batch {
				q.err = ErrClosed
				close(q.done)
			}
		}
		return
	}
	c.running.Add(1)
	go l.flush(c, batch)
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

// flush sends commands in one pipeline, with a time limit of its own.
func (l *lane) flush(c *Client, batch []*queued) {
	defer c.running.Done()
	defer l.next(c)
	cmds := make([]redis.Cmder, len(batch))
	for i, q := range batch {
		cmds[i] = q.cmd
	}
	errs := c.sendAll(c.deadline(), cmds)
	for i, q := range batch {
		q.err = errs[i]
		close(q.done)
	}
}

// sendAll sends commands in one pipeline, if the client of go-redis has pipelines, and returns the error of each. While the
// client is cold they are sent one by one, because its pipelines look at no context.
func (c *Client) sendAll(ctx context.Context, cmds []redis.Cmder) []error {
	errs := make([]error, 0, len(cmds))
	p, ok := c.rdb.(interface{ Pipeline() redis.Pipeliner })
	for len(errs) < len(cmds) && (!ok || len(cmds)-len(errs) == 1 || c.cold.is()) {
		errs = append(errs, c.process(ctx, cmds[len(errs)]))
	}
	rest := cmds[len(errs):]
	if len(rest) == 0 {
		return errs
	}
	pipe := p.Pipeline()
	for _, cmd := range rest {
		_ = pipe.Process(ctx, cmd)
	}
	_, failed := pipe.Exec(ctx)
	for _, cmd := range rest {
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

// hashTag returns what stands between the first brace and the next closing one, or the key if that is nothing.
func hashTag(key string) string {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if to := strings.IndexByte(key[from+1:], '}'); to > 0 {
			return key[from+1 : from+1+to]
		}
	}
	return key
}

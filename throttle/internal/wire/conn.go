// Package wire sends one typed call once, within a time limit, over a client of go-redis. It knows lanes, pipelines,
// connections, the circuit and replies, but no limiter and no name.
package wire

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/script"
)

// Processor sends one command.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Conn sends calls. Its methods may be called concurrently.
type Conn struct {
	rdb       Processor
	clock     func() time.Time
	logger    *slog.Logger
	byLimit   sync.Map       // map[time.Duration]*lanes
	found     atomic.Bool    // go-redis has found the masters of a cluster
	sha       any            // of the script, nil if the module decides
	base      time.Time      // the times of circuits count from here
	away      atomic.Bool    // the log has said that the server is unavailable
	open      atomic.Int64   // how many circuits are
	failed    atomic.Int64   // when one of them opened or its pause got longer, by Now
	running   sync.WaitGroup // goroutines that Stop waits for
	pipelines                // nil: rdb has none
	ignores   bool           // rdb ignores contexts, so no caller waits for it in its own goroutine

	mu      sync.Mutex
	stopped bool                     // no goroutine starts any more
	records map[logged]time.Duration // when the log last had them, by Now
}

// New returns a Conn that does not connect. It calls the module, or the script.
func New(rdb Processor, clock func() time.Time, logger *slog.Logger, byScript bool) *Conn {
	c := &Conn{rdb: rdb, clock: clock, logger: logger, base: clock(), ignores: ignoresContexts(rdb), records: map[logged]time.Duration{}}
	c.pipelines, _ = rdb.(pipelines)
	if byScript {
		c.sha = fmt.Sprintf("%x", sha1.Sum([]byte(script.Text)))
	}
	return c
}

// Now returns the time since New, by the clock.
func (c *Conn) Now() time.Duration { return c.clock().Sub(c.base) }

// Sharded reports whether each call goes to the shard of its first key, and no server would notice that others are elsewhere.
func (c *Conn) Sharded() bool {
	_, shards := c.rdb.(ring)
	return shards
}

// HashTag returns the text between the first brace and the next closing one, or the key if that is nothing.
func HashTag(key string) string {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if to := strings.IndexByte(key[from+1:], '}'); to > 0 {
			return key[from+1 : from+1+to]
		}
	}
	return key
}

// Start starts a goroutine that Stop waits for, and reports whether it did: after Stop it does not.
func (c *Conn) Start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.running.Go(f)
	}
	return !c.stopped
}

// Stop lets no goroutine start any more, and waits for those that run.
func (c *Conn) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.running.Wait()
}

// ignoresContexts reports whether a client of go-redis does not end a call when its context ends. A timeout of -2 means that
// go-redis never sets a deadline. -1 means that there is no timeout but the context's. The options of a Ring hold these
// numbers as they were set. In the options of the other clients -1 has become 0, and -2 is still negative. Other types must
// end calls by themselves.
func ignoresContexts(rdb Processor) bool {
	switch rdb := rdb.(type) {
	case interface{ Options() *redis.Options }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < 0
	case interface{ Options() *redis.ClusterOptions }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < 0
	case interface{ Options() *redis.RingOptions }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < -1
	}
	return false
}

// checkTimeout bounds Check if its context has no deadline. It leaves room to set connections up over a slow network.
const checkTimeout = 5 * time.Second

// Check asks every server whether it has the module, or runs the script for this key, with the context's deadline or 5 s, and
// sets connections up. In a cluster a number follows the key, so that every master has one.
func (c *Conn) Check(ctx context.Context, key string) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
	}
	if err := c.checkOne(ctx, c.rdb, key); err != nil { // ForEachShard skips shards that are down
		return aboutTLS(c.rdb, err)
	}
	type onEach = func(context.Context, *redis.Client) error
	one := func(ctx context.Context, node *redis.Client) error {
		return c.checkOne(ctx, node, c.keyAt(ctx, node, key))
	}
	switch rdb := c.rdb.(type) {
	case interface {
		ForEachMaster(context.Context, onEach) error
	}:
		return Classify(rdb.ForEachMaster(ctx, one))
	case interface {
		ForEachShard(context.Context, onEach) error
	}:
		return Classify(rdb.ForEachShard(ctx, one))
	}
	return nil
}

// aboutTLS adds what may be wrong if only one side speaks TLS: a port without it doesn't reply to a greeting, and one with it
// closes the connection.
func aboutTLS(rdb Processor, err error) error {
	one, known := rdb.(interface{ Options() *redis.Options })
	switch {
	case !known:
	case errors.Is(err, context.DeadlineExceeded) && one.Options().TLSConfig != nil:
		return fmt.Errorf("%w: perhaps the port has no TLS", err)
	case errors.Is(err, io.EOF) && one.Options().TLSConfig == nil:
		return fmt.Errorf("%w: perhaps the port wants TLS", err)
	}
	return err
}

// checkOne asks one server.
func (c *Conn) checkOne(ctx context.Context, rdb Processor, key string) error {
	if c.sha != nil {
		return c.checkScript(ctx, rdb, key)
	}
	return setUp(ctx, rdb, func(reply any, err error) error {
		if rows, _ := reply.([]any); err == nil && (len(rows) == 0 || rows[0] == nil) {
			return ErrNoModule
		}
		return err
	}, "COMMAND", "INFO", "GO.THROTTLE")
}

// AtOnce makes calls, at most maxPipeline together, and returns the error that comes first: later ones may follow from it.
func AtOnce(calls []func() error) (first error) {
	turns := make(chan struct{}, maxPipeline)
	var all sync.WaitGroup
	var once sync.Once
	for _, call := range calls {
		turns <- struct{}{}
		all.Go(func() {
			if err := call(); err != nil {
				once.Do(func() { first = err })
			}
			<-turns
		})
	}
	all.Wait()
	return first
}

package throttle

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// cold is a ReadOnly cluster client of go-redis that has not had a reply yet. Before its first command such a client asks
// for the list of commands, and takes up to 5 s for that, whatever the context says. So its first commands run in
// goroutines that may outlast the verbs.
type cold struct {
	turns  chan struct{} // has an element for each such command that runs; nil for clients that are never cold
	warm   atomic.Bool
	mu     sync.Mutex
	closed bool
}

func (c *cold) init(rdb Processor) {
	if cluster, ok := rdb.(*redis.ClusterClient); ok && cluster.Options().ReadOnly {
		c.turns = make(chan struct{}, clusterLanes*laneWidth) // so that the commands to a silent node hold up no others
	}
}

func (c *cold) is() bool { return c.turns != nil && !c.warm.Load() }

// begin counts a goroutine that Close waits for, unless the client is closed.
func (c *cold) begin(running *sync.WaitGroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	running.Add(1)
	return nil
}

func (c *cold) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// process sends a command and returns when its context ends, even if go-redis does not. After an error go-redis may still
// use the command.
func (c *Client) process(ctx context.Context, cmd redis.Cmder) error {
	if !c.cold.is() {
		return c.rdb.Process(ctx, cmd)
	}
	select {
	case c.cold.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	replied := make(chan error, 1)
	if err := c.cold.begin(&c.running); err != nil {
		<-c.cold.turns
		return err
	}
	go func() {
		defer c.running.Done()
		defer func() { <-c.cold.turns }()
		err := c.rdb.Process(ctx, cmd)
		if err == nil {
			c.cold.warm.Store(true)
		}
		replied <- err
	}()
	select {
	case err := <-replied:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

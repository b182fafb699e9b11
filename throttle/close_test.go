package throttle

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

type wrongType struct{}

func (wrongType) Error() string { return "WRONGTYPE" }
func (wrongType) RedisError()   {}

// Units that one key refuses do not keep the units of others from going back. A server that does not answer does.
func TestGiveBack_errors(t *testing.T) {
	const keys = 5000
	for fails, want := range map[error]int64{wrongType{}: keys, io.EOF: clusterLanes * (circuitFailures + laneWidth)} {
		var sent atomic.Int64
		c, err := New(process(func(context.Context, redis.Cmder) error { sent.Add(1); return fails }), Options{}, Budget(5, time.Second))
		require.NoError(t, err)
		l := c.Rate("t", PerHour(10)).l
		for i := range keys {
			s := l.lock(fmt.Sprint(i), nil)
			s.mu.Unlock()
			l.keep(s, c.now(), 1, &Result{})
		}
		require.ErrorIs(t, c.Close(), fails)
		require.LessOrEqual(t, sent.Load(), want)
		require.GreaterOrEqual(t, sent.Load(), min(want, clusterLanes*circuitFailures/2))
	}
}

// Units that got old by a clock of the caller's stay taken: others may have been admitted in their place.
func TestGiveBack_old(t *testing.T) {
	for ahead, want := range map[time.Duration]int64{0: 1, time.Minute: 0} {
		var sent atomic.Int64
		started := time.Now()
		now := func() time.Time { return started }
		c, err := New(process(func(context.Context, redis.Cmder) error { sent.Add(1); return nil }), Options{Now: func() time.Time { return now() }}, Budget(5, time.Second))
		require.NoError(t, err)
		l := c.Rate("t", PerHour(10)).l
		s := l.lock("bob", nil)
		s.mu.Unlock()
		l.keep(s, c.now(), 1, &Result{})
		now = func() time.Time { return started.Add(ahead) }
		_ = c.Close() // the reply is empty
		require.Equal(t, want, sent.Load(), ahead)
	}
}

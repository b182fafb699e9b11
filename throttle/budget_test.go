package throttle

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle/internal/local"
)

type wrongType struct{}

func (wrongType) Error() string { return "WRONGTYPE" }
func (wrongType) RedisError()   {}

// Units that one key refuses do not keep the units of others from going back. A server that does not answer does.
func TestGiveBack_errors(t *testing.T) {
	const keys = 5000
	for fails, want := range map[error]int64{wrongType{}: keys, io.EOF: 256 * (5 + 4)} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			c := open(t, process(func(context.Context, redis.Cmder) error { sent.Add(1); return fails }), Budget(5, time.Hour))
			l := c.Rate("t", PerHour(10)).l
			for i := range keys {
				l.keys.Keep(fmt.Sprint(i), &l.bounds, 0, c.conn.Now(), 1, &local.Reply{})
			}
			require.ErrorIs(t, c.Close(), fails)
			require.LessOrEqual(t, sent.Load(), want)
			require.GreaterOrEqual(t, sent.Load(), min(want, 256*5/2))
		})
	}
}

// clocked is a server with a clock of the test's.
type clocked struct {
	process
	now time.Time
}

func (c *clocked) Now() time.Time { return c.now }

// Units that got old by a clock of the caller's stay taken: others may have been admitted in their place.
func TestGiveBack_old(t *testing.T) {
	for ahead, want := range map[time.Duration]int64{0: 1, time.Minute: 0} {
		var sent atomic.Int64
		started := time.Now()
		server := &clocked{process(func(context.Context, redis.Cmder) error { sent.Add(1); return nil }), started}
		c := open(t, server, Budget(5, time.Second))
		l := c.Rate("t", PerHour(10)).l
		l.keys.Keep("bob", &l.bounds, 0, c.conn.Now(), 1, &local.Reply{})
		l.sweep()
		server.now = started.Add(ahead)
		_ = c.Close() // the reply is empty
		require.Equal(t, want, sent.Load(), ahead)
	}
}

// Nothing holds a grant that has ended, or a client that was closed: no timer waits any more. The heap of the
// runtime holds up to a quarter of stopped timers.
func TestClose_leavesNothing(t *testing.T) {
	const clients, times = 40, 40
	var closed []weak.Pointer[Client]
	for range clients {
		c, err := New(ints{0, 10, 0, 1, 1000, 1}, Budget(5, time.Hour), DenyCache(true))
		require.NoError(t, err)
		var grants []weak.Pointer[local.Grant[bounds]]
		l := c.Rate("t", PerHour(10)).l
		for range times {
			l.keys.Forget("bob")
			l.keys.Keep("bob", &l.bounds, c.conn.Now(), c.conn.Now(), 1, &local.Reply{})
			u, _ := l.keys.Spend("bob", &l.bounds, 0)
			grants = append(grants, weak.Make(u.Low))
		}
		require.Less(t, held(grants), times/2)
		require.NoError(t, c.Close())
		closed = append(closed, weak.Make(c))
	}
	require.Less(t, held(closed), clients/2)
}

// held returns how many of these are held by something.
func held[T any](all []weak.Pointer[T]) (n int) {
	runtime.GC()
	for _, p := range all {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

package throttle

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// open returns a client that is closed when the test ends.
func open(t testing.TB, rdb Processor, options ...Option) *Client {
	t.Helper()
	c, err := New(rdb, options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// process is a Processor that is one function.
type process func(ctx context.Context, cmd redis.Cmder) error

func (p process) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }

// The context of a call has the caller's values. It ends at the time limit, at most a sixteenth of the limit earlier, or
// at an earlier deadline of the caller.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		var value atomic.Value
		hang := process(func(ctx context.Context, cmd redis.Cmder) error {
			value.Store(ctx.Value(name{}))
			if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
				t.Error("the context has no deadline, or has ended")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		c := open(t, hang, Timeout(160*time.Millisecond), Coalesce(false))
		ask := func(ctx context.Context) time.Duration {
			began := time.Now()
			_, err := c.Rate("k", PerSecond(10)).Allow(context.WithValue(ctx, name{}, "span"), "")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, "span", value.Load())
			return time.Since(began)
		}
		require.Equal(t, 160*time.Millisecond, ask(context.Background()))
		early, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		defer cancel()
		require.Equal(t, 3*time.Millisecond, ask(early))
		time.Sleep(6 * time.Millisecond)
		require.Equal(t, 151*time.Millisecond, ask(context.Background())) // begun 9 ms after the deadline was made
		early, cancel = context.WithTimeout(context.Background(), 11*time.Millisecond)
		defer cancel()
		require.Equal(t, 11*time.Millisecond, ask(early))
		require.Equal(t, 160*time.Millisecond, ask(context.Background()))
	})
}

// Callers that come back at once share the next command with all others, not with the first few.
func TestCoalescing_callersRegroup(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var commands atomic.Int64
	client := open(t, process(func(ctx context.Context, cmd redis.Cmder) error {
		commands.Add(1)
		runtime.Gosched() // others go on meanwhile
		return ints{0, 1 << 20, 1 << 19, -1, 1000, 1 << 19}.Process(ctx, cmd)
	}), Timeout(time.Minute)) // on a busy machine too
	const goroutines, calls = 64, 200
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range calls {
				if r, err := client.Rate("k", PerSecond(1<<20)).Allow(context.Background(), ""); err != nil || !r.Allowed {
					t.Error(r, err)
				}
			}
		})
	}
	all.Wait()
	require.Less(t, commands.Load(), int64(goroutines*calls/48))
}

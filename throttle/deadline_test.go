package throttle

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

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
		c, err := New(hang, Options{}, Timeout(160*time.Millisecond), Coalesce(false))
		require.NoError(t, err)
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
		require.Equal(t, 160*time.Millisecond, ask(context.Background()))
	})
}

// A call whose context has ended is not sent.
func TestDeadline_endedBefore(t *testing.T) {
	sent := process(func(context.Context, redis.Cmder) error { t.Error("sent"); return nil })
	c, err := New(sent, Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Rate("k", PerSecond(10)).Allow(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = c.Rate("k", PerSecond(10)).Allow(past, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrUnavailable)
}

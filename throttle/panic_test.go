package throttle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// panicking is a server whose client panics in a hook, as long as a test says so, after one round trip.
type panicking struct {
	*throttletest.Server
	panics atomic.Bool
}

func (s *panicking) Process(ctx context.Context, cmd redis.Cmder) error {
	panics := s.panics.Load()
	time.Sleep(time.Millisecond)
	if panics {
		panic("hook")
	}
	return s.Server.Process(ctx, cmd)
}

// A panic of a hook in a caller's goroutine is the caller's. Those who wait for its command are served, and nothing that
// the command held stays taken.
func TestPanic_inTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &panicking{Server: throttletest.NewServer()}
		c := must(throttle.New(s, throttle.Options{}))
		for range 10 { // more often than a lane has turns
			synctest.Wait() // nothing is under way
			s.panics.Store(true)
			go func() {
				defer func() { require.Equal(t, "hook", recover()) }()
				_, _ = c.Rate("hot", throttle.PerHour(100)).Allow(background, "")
			}()
			synctest.Wait()
			s.panics.Store(false)
			r := must(c.Rate("hot", throttle.PerHour(100)).Allow(background, ""))
			require.True(t, r.Allowed)
		}
		r := must(c.Rate("hot", throttle.PerHour(100)).Allow(background, ""))
		require.EqualValues(t, 89, r.Remaining)
		require.NoError(t, c.Close())
	})
}

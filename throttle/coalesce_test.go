package throttle_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// slow delays every command of a server by one round trip.
func slow(s throttle.Processor, trip time.Duration) processor {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-time.After(trip):
			return s.Process(ctx, cmd)
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
}

// newSlow returns a client whose server is one round trip away.
func newSlow(t *testing.T, trip time.Duration, options ...throttle.Option) (*throttle.Client, *throttletest.Server) {
	t.Helper()
	s := throttletest.NewServer()
	c := must(throttle.New(slow(s, trip), options...))
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, s
}

// manyAtOnce calls f from n goroutines, one after another within a microsecond, and waits for all.
func manyAtOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i))
			f(i)
		})
	}
	wg.Wait()
}

// Concurrent callers of a key share commands, which have the values of their first callers. They are granted first come first
// served, and no more than the limit is admitted.
func TestCoalescing_grantsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seen := throttletest.NewServer(), []any{}
		var mu sync.Mutex
		c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
			mu.Lock()
			seen = append(seen, ctx.Value(key{}))
			mu.Unlock()
			return slow(s, 10*time.Millisecond).Process(ctx, cmd)
		}))
		limiter := c.Rate("hot", throttle.PerHour(30))
		manyAtOnce(200, func(caller int) {
			i := caller / 2
			time.Sleep(time.Duration(caller) * 40 * time.Microsecond) // in groups with time limits of their own
			r := must(limiter.Allow(context.WithValue(background, key{}, caller), fmt.Sprint(caller%2)))
			require.Equal(t, i < 30, r.Allowed, "caller %d", caller)
			require.InDelta(t, map[bool]time.Duration{false: 2 * time.Minute}[r.Allowed], r.RetryAfter, float64(time.Second))
			if i > 0 {
				require.Equal(t, throttle.Result{Allowed: i < 30, Limit: 30, Granted: min(1, max(30-int64(i), 0)), RetryAfter: r.RetryAfter,
					ResetAfter: r.ResetAfter, Source: "server"}, r)
			}
		})
		require.ElementsMatch(t, []any{0, 1, 2, 3}, seen)
	})
}

// Callers that leave before their command is sent take nothing.
func TestCoalescing_callersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, 10*time.Millisecond)
		limiter := c.Rate("hot", throttle.PerHour(9))
		manyAtOnce(6, func(i int) {
			leaves := i > 0 && i%2 == 0
			ctx, cancel := context.WithTimeout(background, map[bool]time.Duration{true: 5 * time.Millisecond, false: time.Hour}[leaves])
			defer cancel()
			require.Equal(t, leaves, only(limiter.Allow(ctx, "")) != nil, i)
		})
		require.EqualValues(t, 5, must(limiter.Peek(background, "")).Remaining)
	})
}

// Each caller pays for a call of its own if it asks for several units, if a denial may begin a lockout, and of a Policy.
func TestCoalescing_never(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond)
		hot, login, none := c.Rate("hot", throttle.PerHour(3)), c.Rate("login", throttle.PerHour(3).Lockout(time.Hour)), c.Policy("none")
		manyAtOnce(7, func(int) { _, _ = hot.AllowN(background, "", 2) })
		manyAtOnce(7, func(int) { _, _ = login.Allow(background, "") })
		manyAtOnce(7, func(int) { _, _ = none.Allow(background, "") })
		require.EqualValues(t, 21, s.Calls())
	})
}

// A denial is repeated until the server would admit, also after a slow reply, and not after the clock was set back. Its times
// count down. The limit of a policy may be raised at any time, so a denial of it is remembered for a second.
func TestDenyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := newReal(t, slowReply(s), throttle.DenyCache(true))
		limiter, began := c.Rate("a", throttle.PerMinute(1)), s.Now()
		must(limiter.Allow(background, ""))
		denied := must(limiter.Allow(background, ""))
		s.Advance(40 * time.Second)
		left := began.Add(20*time.Millisecond + denied.RetryAfter).Sub(s.Now()) // it was sent after 20 ms
		require.Equal(t, throttle.Result{Limit: 1, RetryAfter: left, ResetAfter: left, Source: "denials"}, must(limiter.Allow(background, "")))
		s.Advance(left)
		require.True(t, must(limiter.Allow(background, "")).Allowed)
		must(limiter.AllowAtMost(background, "", 2)) // one unit is denied
		require.Equal(t, "denials", must(limiter.Allow(background, "")).Source)
		must(c.SettleAll(background, limiter.Part("", -1)))
		require.True(t, must(limiter.Allow(background, "")).Allowed)
		require.False(t, must(limiter.Allow(background, "")).Allowed)
		s.Advance(-time.Hour)
		require.Equal(t, "server", must(limiter.Allow(background, "")).Source)

		policy := c.Policy("p")
		for limit, sources := range [][]string{{"server", "server", "denials"}, {"server"}} {
			require.NoError(t, s.SetPolicies(fmt.Sprintf("p QUOTA %d 1h", 1+limit)))
			for _, source := range sources {
				require.Equal(t, source, must(policy.Allow(background, "")).Source)
			}
			s.Advance(time.Second)
		}
		require.NoError(t, s.SetPolicies("p QUOTA 1 300ms"))
		for range 2 {
			require.True(t, must(policy.Allow(background, "b")).Allowed)
			require.False(t, must(policy.Allow(background, "b")).Allowed)
			s.Advance(300 * time.Millisecond)
		}
	})
}

// slowReply delays every reply of a server.
func slowReply(s *throttletest.Server) clocked {
	return clocked{func(ctx context.Context, cmd redis.Cmder) error {
		defer time.Sleep(20 * time.Millisecond)
		return s.Process(ctx, cmd)
	}, s}
}

// clocked has the clock of a server.
type clocked struct {
	processor
	clock *throttletest.Server
}

func (c clocked) Now() time.Time { return c.clock.Now() }

// A panic of a hook in a caller's goroutine is the caller's. Those who wait for its command are served, and nothing that
// the command held stays taken.
func TestPanic_inTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, panics := throttletest.NewServer(), false
		c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
			failing := panics
			if time.Sleep(time.Millisecond); failing {
				panic("hook")
			}
			return s.Process(ctx, cmd)
		}))
		hot := c.Rate("hot", throttle.PerHour(100))
		for range 10 { // more often than a lane has turns
			synctest.Wait() // nothing is under way
			panics = true
			go func() {
				defer func() { require.Equal(t, "hook", recover()) }()
				_, _ = hot.Allow(background, "")
			}()
			synctest.Wait()
			panics = false
			require.True(t, must(hot.Allow(background, "")).Allowed) // waits for the first one's command
		}
		require.EqualValues(t, 90, must(hot.Peek(background, "")).Remaining)
	})
}

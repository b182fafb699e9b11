package throttle_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
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
			return slow(s, time.Millisecond).Process(ctx, cmd)
		}))
		limiter := c.Rate("hot", throttle.PerHour(30))
		manyAtOnce(200, func(caller int) {
			i := caller / 2
			r := must(limiter.Allow(context.WithValue(background, key{}, caller), fmt.Sprint(caller%2)))
			require.Equal(t, i < 30, r.Allowed, "caller %d", caller)
			require.InDelta(t, map[bool]time.Duration{false: 2 * time.Minute}[r.Allowed], r.RetryAfter, float64(time.Second))
			if i > 0 {
				require.Equal(t, throttle.Result{Allowed: i < 30, Limit: 30, Granted: min(1, max(30-int64(i), 0)), RetryAfter: r.RetryAfter,
					ResetAfter: r.ResetAfter, Source: throttle.FromServer}, r)
			}
		})
		require.ElementsMatch(t, []any{0, 1, 2, 3}, seen)
	})
}

// Callers of one key with different limits share no command: each is decided by its own limit.
func TestCoalescing_otherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond)
		plans := c.Rate("plans", throttle.PerHour(3))
		manyAtOnce(40, func(i int) {
			limit := 3 + int64(i%2)*50
			require.Equal(t, limit, must(plans.With(throttle.PerHour(limit)).Allow(background, "")).Limit)
		})
		require.EqualValues(t, 4, s.Calls())
	})
}

// Each caller pays for a call of its own if coalescing is off, if a denial may begin a lockout, and of a Policy.
func TestCoalescing_off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond)
		limiters := []throttle.Allower{c.Rate("hot", throttle.PerHour(3), throttle.Coalesce(false)), c.Rate("login", throttle.PerHour(3).Lockout(time.Hour)), c.Policy("none")}
		manyAtOnce(21, func(i int) { _, _ = limiters[i%3].Allow(background, "") })
		require.EqualValues(t, 21, s.Calls())
	})
}

// Nobody waits longer than the time limit, whatever the server does: callers of one key, and of many keys that wait for
// their turn in pipelines.
func TestTimeout_holdsForAll(t *testing.T) {
	for name, row := range map[string]struct {
		trip  time.Duration
		fails error
		keys  int
	}{
		"no reply": {time.Hour, nil, 1}, "a failure": {10 * time.Millisecond, serverError("LOADING"), 1}, "many keys": {12 * time.Millisecond, nil, 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newSlow(t, row.trip)
			s.Fail(row.fails)
			limiter := c.Rate("t", throttle.PerHour(3))
			var admitted atomic.Int64
			manyAtOnce(1000, func(i int) {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond / time.Duration(row.keys))
				began := time.Now()
				r, err := limiter.Allow(background, fmt.Sprint(i%row.keys))
				require.LessOrEqual(t, time.Since(began), 50*time.Millisecond, name)
				if row.keys == 1 {
					require.ErrorIs(t, err, throttle.ErrUnavailable, name)
				}
				admitted.Add(r.Granted)
			})
			require.Equal(t, row.keys > 1, admitted.Load() > 0, name)
			require.GreaterOrEqual(t, int64(s.Keys()), admitted.Load()) // who gave up may have been charged
		})
	}
}

// A denial is remembered for its RetryAfter, for its own quantity, until this process gives units back, and no longer.
func TestDenyCache(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		limiter := c.Rate("a", throttle.PerMinute(1))
		for range 2 {
			must(limiter.Allow(background, ""))
		}
		s.Advance(20 * time.Second)
		r := must(limiter.Allow(background, ""))
		require.InDelta(t, 40*time.Second, r.RetryAfter, float64(100*time.Millisecond))
		require.Equal(t, throttle.Result{Limit: 1, RetryAfter: r.RetryAfter, ResetAfter: r.RetryAfter, Source: throttle.FromDenials}, r)
		require.EqualValues(t, 2, s.Calls())
		require.Equal(t, throttle.FromServer, must(limiter.AllowN(background, "", 2)).Source)
		s.Advance(40 * time.Second)
		require.Equal(t, throttle.FromServer, must(limiter.Allow(background, "")).Source)
		for _, refund := range []func() error{
			func() error { return only(limiter.Refund(background, "", 1)) },
			func() error { return only(c.SettleAll(background, limiter.Part("", -1))) },
		} {
			must(limiter.AllowAtMost(background, "", 2)) // one unit is denied
			require.Equal(t, throttle.FromDenials, must(limiter.Allow(background, "")).Source)
			require.NoError(t, refund())
			require.True(t, must(limiter.Allow(background, "")).Allowed)
		}
	}, throttle.DenyCache(true))
}

// The limit of a policy may be raised at any time, so a denial of it is remembered for a second.
func TestDenyCache_policy(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		require.NoError(t, s.SetPolicies("a QUOTA 1 1h"))
		a := c.Policy("a")
		for range 2 {
			must(a.Allow(background, ""))
		}
		require.Equal(t, throttle.FromDenials, must(a.Allow(background, "")).Source)
		require.NoError(t, s.SetPolicies("a QUOTA 9 1h"))
		s.Advance(time.Second)
		require.True(t, must(a.Allow(background, "")).Allowed)
	}, throttle.DenyCache(true))
}

// slowReply delays every reply.
func slowReply(s *throttletest.Server) processor {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer time.Sleep(20 * time.Millisecond)
		return s.Process(ctx, cmd)
	}
}

// A denial is not remembered longer than the server denies: a slow reply, and a clock that is set back.
func TestDenyCache_notLongerThanTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := must(throttle.New(slowReply(s), throttle.Clock(s.Now), throttle.DenyCache(true)))
		limiter := c.Rate("a", throttle.PerSecond(2))
		began := time.Now()
		for range 2 {
			must(limiter.AllowN(background, "", 2))
		}
		time.Sleep(time.Until(began.Add(time.Second)))
		require.True(t, must(limiter.AllowN(background, "", 2)).Allowed)
		require.False(t, must(limiter.AllowN(background, "", 2)).Allowed)
		s.Advance(-time.Hour)
		require.Equal(t, throttle.FromServer, must(limiter.AllowN(background, "", 2)).Source)
	})
}

// Callers that wait together and get units of the budget learn that. If it has a part of the units, the batch asks for the
// rest, and all are granted. If that call fails, the first callers have their units.
func TestBudget_ofABatch(t *testing.T) {
	for _, row := range []struct{ left, callers, fromBudget, calls, failed int }{{1e5, 3, 2, 1, 0}, {12, 12, 5, 2, 0}, {12, 12, 5, 2, 6}} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newSlow(t, time.Millisecond, throttle.Logger(quiet), throttle.Budget(20, time.Second))
			quota := c.Quota("a", 1e6, time.Hour)
			for range 20 { // so that the client knows that the limiter is busy
				time.Sleep(50 * time.Millisecond)
				must(quota.Allow(background, ""))
			}
			time.Sleep(2 * time.Second) // nothing is held any more
			must(quota.AllowN(background, "", must(quota.Peek(background, "")).Remaining-int64(row.left)))
			calls := s.Calls()
			if row.failed > 0 {
				time.AfterFunc(1500*time.Microsecond, func() { s.Fail(io.EOF) }) // between two replies
				defer s.Fail(nil)
			}
			var fromBudget atomic.Int64
			manyAtOnce(row.callers, func(i int) {
				r, err := quota.Allow(background, "")
				if i >= row.callers-row.failed {
					require.ErrorIs(t, err, io.EOF)
					return
				}
				require.NoError(t, err)
				require.True(t, r.Allowed)
				require.EqualValues(t, 1, r.Granted)
				if r.Source == "budget" {
					fromBudget.Add(1)
				}
			})
			require.EqualValues(t, row.fromBudget, fromBudget.Load())
			require.EqualValues(t, row.calls, s.Calls()-calls)
		})
	}
}

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

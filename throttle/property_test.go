package throttle_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// A client that closes gives back exactly what it did not spend, also of what it took ahead.
func TestBudget_close(t *testing.T) {
	for n := range int64(150) {
		bubble(t, func(t *testing.T, looks *throttle.Client, s *throttletest.Server) {
			c := newReal(t, slow(s, 10*time.Millisecond), throttle.Budget(5, 10*time.Second))
			for range n {
				require.True(t, must(c.Quota("a", 1e6, time.Hour).Allow(background, "")).Allowed)
			}
			time.Sleep(time.Duration(n%20) * time.Millisecond) // more was asked for, or is
			require.NoError(t, c.Close())
			require.Equal(t, 1e6-n, must(looks.Quota("a", 1e6, time.Hour).Peek(background, "")).Remaining, n)
		})
	}
}

// Two limits of one name hold units of one key in turn, and some replies come late. No call waits for units to be given back.
func TestBudget_twoLimits(t *testing.T) {
	const limit = 30 * time.Millisecond
	for seed := range uint64(60) {
		bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
			r := rand.New(rand.NewPCG(seed, 1))
			var trips atomic.Uint64
			c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
				trip := time.Millisecond
				if (trips.Add(1)+seed)%20 == 0 {
					trip = 25 * time.Millisecond
				}
				return slow(s, trip)(ctx, cmd)
			}), throttle.Budget(100, 12*time.Millisecond), throttle.Timeout(limit))
			var all sync.WaitGroup
			for range 1000 {
				after, plan := time.Duration(r.IntN(300_000))*time.Microsecond, c.Quota("a", 1e6, time.Second).With(throttle.Units(1e6-r.Int64N(10)/9))
				all.Go(func() {
					time.Sleep(after)
					began := time.Now()
					_, _ = plan.Allow(background, "") // some wait for a late reply to others
					assert.LessOrEqual(t, time.Since(began), limit, "seed %d", seed)
				})
			}
			all.Wait()
		})
	}
}

// load is calls of one limit in bursts at random times, each of which asks one of some clients.
type load struct {
	limit     func(*throttle.Client, throttle.Option) allower
	perSecond float64
	burst     int
}

// ofRate returns the limiters of a rate.
func ofRate(count int64, period time.Duration) func(*throttle.Client, throttle.Option) allower {
	return func(c *throttle.Client, o throttle.Option) allower {
		return c.Rate("l", throttle.Per(count, period), o)
	}
}

// countAdmitted makes the calls, and returns how many were admitted.
func (l load) countAdmitted(t *testing.T, clients int, budget throttle.Option) (good float64) {
	t.Helper()
	s, random := throttletest.NewServer(), rand.New(rand.NewPCG(1, 0))
	var limiters []allower
	for range clients {
		limiters = append(limiters, l.limit(newReal(t, s, throttle.Timeout(time.Second)), budget))
	}
	for asked := 0; asked < loadCalls; asked += l.burst {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(l.burst) / l.perSecond * float64(time.Second)))
		limiter := limiters[random.IntN(clients)]
		for range l.burst {
			time.Sleep(time.Millisecond)
			if must(limiter.Allow(background, "a")).Allowed {
				good++
			}
		}
	}
	return good
}

const loadCalls = 3000

// A budget costs no admissions: at loads below the limit the share that is admitted is within 1 % of that without one. With
// -short a seventh of the loads is tried.
func TestBudget_costsNoAdmissions(t *testing.T) {
	tries := 0
	quota := func(c *throttle.Client, o throttle.Option) allower { return c.Quota("l", 20, 24*time.Hour, o) }
	window := func(c *throttle.Client, o throttle.Option) allower {
		return c.Window("l", 1000, 10*time.Second, o)
	}
	for _, l := range []load{
		{ofRate(30, time.Minute), 0.5, 5}, {ofRate(5, time.Hour), 5. / 3600, 2}, {ofRate(100, time.Second), 100, 5},
		{ofRate(100, time.Second), 100, 40}, {ofRate(500, time.Second), 500, 1}, {quota, 20. / 86400, 2}, {window, 100, 10},
	} {
		for _, share := range []float64{0.3, 0.6, 0.8, 0.95} {
			for _, clients := range []int{1, 3} {
				if tries++; testing.Short() && tries%7 != 0 {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					l := l
					l.perSecond *= share
					without := l.countAdmitted(t, clients, throttle.DenyCache(false))
					require.GreaterOrEqual(t, l.countAdmitted(t, clients, throttle.Budget(100, time.Second)), without-0.01*loadCalls, "%+v", l)
				})
			}
		}
	}
}

// Far from the server, a steady load within the budget waits for no round trip once its rate is known: more units come before
// the last are spent.
func TestBudget_refillsAhead(t *testing.T) {
	for _, gap := range []time.Duration{20 * time.Millisecond, time.Millisecond, 100 * time.Microsecond} {
		if testing.Short() && gap < time.Millisecond {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c, s := newSlow(t, 80*time.Millisecond, throttle.Budget(100_000, time.Second), throttle.Timeout(time.Second))
			limiter := c.Rate("l", throttle.PerSecond(100_000))
			for began := time.Now(); time.Since(began) < 20*time.Second; {
				called := time.Now()
				r := must(limiter.Allow(background, "a"))
				if known := time.Since(began) > 3*time.Second; known {
					require.Equal(t, "budget", r.Source, "after %s", time.Since(began))
					require.Zero(t, time.Since(called), "after %s", time.Since(began))
				}
				time.Sleep(gap)
			}
			require.Less(t, s.Calls(), int64(90)) // a command takes what is spent in half a second
		})
	}
}

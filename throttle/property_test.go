package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// A client that closes gives back exactly what it did not spend, also of what it took ahead.
func TestBudget_close(t *testing.T) {
	for n := range int64(60) {
		bubble(t, func(t *testing.T, looks *throttle.Client, s *throttletest.Server) {
			c := newReal(t, slow(s, time.Millisecond), throttle.Budget(5, 10*time.Second))
			for range n {
				require.True(t, must(c.Quota("a", 1e6, time.Hour).Allow(background, "")).Allowed)
			}
			time.Sleep(time.Second) // until more was asked for
			require.NoError(t, c.Close())
			require.Equal(t, 1e6-n, must(looks.Quota("a", 1e6, time.Hour).Peek(background, "")).Remaining, n)
		})
	}
}

// load is calls of one limit by some callers, each in bursts at random times. One asks all clients, several ask
// one each.
type load struct {
	limit          func(*throttle.Client, throttle.Option) allower
	perSecond      float64
	callers, burst int
	calls          int64
	trips          []time.Duration // of each client
}

// ofRate returns the limiters of a rate.
func ofRate(count int64, period time.Duration) func(*throttle.Client, throttle.Option) allower {
	return func(c *throttle.Client, o throttle.Option) allower {
		return c.Rate("l", throttle.Per(count, period), o)
	}
}

// shares makes the calls. It returns which share is admitted, which waits for a reply, and how many commands a call costs.
func (l load) shares(t *testing.T, budget throttle.Option) (admitted, waited, commands float64) {
	t.Helper()
	s := throttletest.NewServer()
	var limiters []allower
	for _, trip := range l.trips {
		limiters = append(limiters, l.limit(newReal(t, slow(s, trip), throttle.Timeout(time.Second)), budget))
	}
	var asked, good, late atomic.Int64
	manyAtOnce(l.callers, func(i int) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for asked.Add(int64(l.burst)) <= l.calls {
			time.Sleep(time.Duration(random.ExpFloat64() * float64(l.callers*l.burst) / l.perSecond * float64(time.Second)))
			limiter := limiters[(i+random.IntN(len(limiters)/l.callers+1))%len(limiters)]
			for range l.burst {
				time.Sleep(time.Millisecond)
				called := time.Now()
				if r := must(limiter.Allow(background, "a")); r.Allowed {
					good.Add(1)
				}
				if called != time.Now() {
					late.Add(1)
				}
			}
		}
	})
	n := float64(l.calls)
	return float64(good.Load()) / n, float64(late.Load()) / n, float64(s.Calls()) / n
}

// A budget costs no admissions: at loads below the limit the share that is admitted is within 1 % of that without one. With
// -short a seventh of the loads is tried.
func TestBudget_costsNoAdmissions(t *testing.T) {
	tries := 0
	quota := func(c *throttle.Client, o throttle.Option) allower { return c.Quota("l", 20, 24*time.Hour, o) }
	window := func(c *throttle.Client, o throttle.Option) allower {
		return c.Window("l", 1000, 10*time.Second, o)
	}
	for _, l := range []load{
		{ofRate(30, time.Minute), 0.5, 1, 5, 3000, nil}, {ofRate(5, time.Hour), 5. / 3600, 1, 2, 3000, nil}, {ofRate(100, time.Second), 100, 1, 5, 3000, nil},
		{ofRate(100, time.Second), 100, 1, 40, 3000, nil}, {ofRate(500, time.Second), 500, 1, 1, 3000, nil}, {quota, 20. / 86400, 1, 2, 3000, nil},
		{window, 100, 1, 10, 3000, nil},
	} {
		for _, share := range []float64{0.3, 0.6, 0.8, 0.95} {
			for _, l.trips = range [][]time.Duration{{0}, {0, 0, 0}} {
				if tries++; testing.Short() && tries%7 != 0 {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					l := l
					l.perSecond *= share
					without, _, _ := l.shares(t, throttle.DenyCache(false))
					with, _, _ := l.shares(t, throttle.Budget(100, time.Second))
					require.GreaterOrEqual(t, with, without-0.01, "%+v", l)
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

// The table in docs/scaling.md of three regions, 2, 40 and 80 ms from the server, which share 1,000 calls per second, is what a
// simulation of 20 s finds, to 3 % of all calls. With -short only the lower load is tried.
func TestBudget_regions(t *testing.T) {
	page := string(must(os.ReadFile("../docs/scaling.md")))
	for name, budget := range map[string]throttle.Option{"no budget": throttle.Budget(0, 0), "a budget of 100": throttle.Budget(100, time.Second)} {
		for _, rate := range []float64{500, 2000} {
			if testing.Short() && rate > 1000 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				const ms = time.Millisecond
				admitted, waited, commands := load{ofRate(1000, time.Second), rate, 270, 1, int64(20 * rate), []time.Duration{2 * ms, 40 * ms, 80 * ms}}.shares(t, budget)
				found := regexp.MustCompile(fmt.Sprintf(`\n\| %s \| %v \| (\d+) %% \| (\d+) %% \| (\d+) \|`, name, rate)).FindStringSubmatch(page)
				require.Len(t, found, 4, "no row for %s, %v calls per second: %v, %v, %v", name, rate, admitted, waited, commands)
				for i, share := range []float64{admitted, waited, commands} {
					want := float64(must(strconv.Atoi(found[i+1]))) / []float64{100, 100, 1000}[i]
					require.InDelta(t, want, share, 0.03, "%s, %v calls per second: %v", name, rate, found[i+1])
				}
			})
		}
	}
}

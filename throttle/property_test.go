package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// Every unit that is admitted was charged before, and a client that closes gives back only what it did not spend. Several
// limits of one key hold no more units than one.
func TestProperty_chargedBeforeAdmitted(t *testing.T) {
	for limits := range int64(4) {
		chargedBeforeAdmitted(t, limits+1)
	}
}

func chargedBeforeAdmitted(t *testing.T, limits int64) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		looks := must(throttle.New(s))
		const all = 1_000_000
		charged := func() int64 {
			r := must(looks.Quota("a", all, 24*time.Hour).Peek(background, ""))
			return all - r.Remaining
		}
		admitted, sent := int64(0), int64(0)
		for admitted < 300 || charged() < admitted+4 { // in the end units are held
			admitted++
			s.Advance(time.Millisecond)
			if r := must(c.Quota("a", all, 24*time.Hour).With(throttle.Units(all+admitted%limits)).Allow(background, "")); r.Source == throttle.FromServer {
				sent++
			}
			synctest.Wait() // until more was asked for
			require.GreaterOrEqual(t, charged(), admitted)
			require.LessOrEqual(t, charged(), admitted+5)
		}
		require.Less(t, sent, admitted-admitted/limits/2) // the others were units of the budget
		require.Equal(t, throttle.FromServer, must(c.Quota("a", all, 24*time.Hour).AllowN(background, "", 2)).Source)
		admitted += 2
		require.NoError(t, c.Close())
		require.Equal(t, admitted, charged())
		_, err := c.Quota("a", all, 24*time.Hour).Allow(background, "")
		require.ErrorIs(t, err, throttle.ErrClosed)
	}, throttle.Budget(5, 10*time.Second))
}

// A pattern is a load in bursts, as a share of a limit.
type pattern struct {
	limit func(c *throttle.Client, o throttle.Option) throttle.Allower
	rate  float64 // units per second that the limit drains
	burst int     // calls that come together
}

// ofRate returns a pattern of a rate.
func ofRate(count int64, period time.Duration, burst int) pattern {
	return pattern{func(c *throttle.Client, o throttle.Option) throttle.Allower {
		return c.Rate("l", throttle.Per(count, period), o)
	}, float64(count) / period.Seconds(), burst}
}

// admittedShare returns the share that is admitted of a load, which some clients ask for by turns.
func admittedShare(t *testing.T, p pattern, load float64, clients int, o throttle.Option) float64 {
	t.Helper()
	var limiters []throttle.Allower
	s := throttletest.NewServer()
	for range clients {
		c := must(throttle.New(s, throttle.Clock(s.Now)))
		limiters = append(limiters, p.limit(c, o))
		defer c.Close()
	}
	random := rand.New(rand.NewPCG(1, 2))
	asked, admitted := 0, 0
	for asked < 3000 {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(p.burst) / (load * p.rate) * float64(time.Second)))
		l := limiters[random.IntN(clients)]
		for range p.burst {
			time.Sleep(time.Millisecond)
			r := must(l.Allow(background, "a"))
			if asked++; r.Allowed {
				admitted++
			}
		}
	}
	return float64(admitted) / float64(asked)
}

// A budget costs no admissions: at loads below the limit the share that is admitted is within 1 % of that without one. With
// -short a third of the patterns is tried.
func TestBudget_costsNoAdmissions(t *testing.T) {
	quota := func(c *throttle.Client, o throttle.Option) throttle.Allower { return c.Quota("l", 20, 24*time.Hour, o) }
	window := func(c *throttle.Client, o throttle.Option) throttle.Allower {
		return c.Window("l", 1000, 10*time.Second, o)
	}
	for i, p := range []pattern{
		ofRate(30, time.Minute, 5), ofRate(5, time.Hour, 2), ofRate(100, time.Second, 5), ofRate(100, time.Second, 40), ofRate(500, time.Second, 1),
		{quota, 20. / 86400, 2}, {window, 100, 10},
	} {
		for j, load := range []float64{0.3, 0.6, 0.8, 0.95} {
			for k, clients := range []int{1, 3} {
				if testing.Short() && (i+j+k)%3 != 0 {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					without := admittedShare(t, p, load, clients, throttle.DenyCache(false))
					with := admittedShare(t, p, load, clients, throttle.Budget(100, time.Second))
					require.GreaterOrEqual(t, with, without-0.01, "pattern %d, load %v, %d clients", i, load, clients)
				})
			}
		}
	}
}

// Far from the server, a steady load within the budget waits for no round trip once its rate is known: more units come before
// the last are spent.
func TestBudget_refillsAhead(t *testing.T) {
	for _, gap := range []time.Duration{20 * time.Millisecond, time.Millisecond, 100 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newSlow(t, 80*time.Millisecond, throttle.Budget(100_000, time.Second), throttle.Timeout(time.Second))
			limiter := c.Rate("l", throttle.PerSecond(100_000))
			for began := time.Now(); time.Since(began) < 20*time.Second; {
				called := time.Now()
				r := must(limiter.Allow(background, "a"))
				if known := time.Since(began) > 3*time.Second; known {
					require.Equal(t, throttle.FromBudget, r.Source, "after %s", time.Since(began))
					require.Zero(t, time.Since(called), "after %s", time.Since(began))
				}
				time.Sleep(gap)
			}
			require.Less(t, s.Calls(), int64(90)) // a command takes what is spent in half a second
		})
	}
}

// regions lets three regions, 2, 40 and 80 ms from the server, ask by turns for a load in calls per second of a limit of 1,000
// per second. It returns the share that is admitted, the share that waits for a reply, and commands per 1,000 calls.
func regions(t *testing.T, load float64, budget throttle.Option) (admitted, waited, commands float64) {
	t.Helper()
	s, all, good, late := throttletest.NewServer(), 0, 0, 0
	var limiters []throttle.Rate
	for _, ms := range []time.Duration{2, 40, 80} {
		c := newReal(t, slow(s, ms*time.Millisecond), throttle.Timeout(time.Second))
		limiters = append(limiters, c.Rate("l", throttle.PerSecond(1000), budget))
	}
	var mu sync.Mutex
	manyAtOnce(3*90, func(i int) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			time.Sleep(time.Duration(random.ExpFloat64() * 270 / load * float64(time.Second)))
			called := time.Now()
			r := must(limiters[i%3].Allow(background, "a"))
			mu.Lock()
			if all++; r.Allowed {
				good++
			}
			if called != time.Now() {
				late++
			}
			mu.Unlock()
		}
	})
	n := float64(all)
	return float64(good) / n, float64(late) / n, float64(s.Calls()) * 1000 / n
}

// The table of regions in docs/scaling.md is what a simulation of them finds, to 3 % of all calls.
func TestBudget_regions(t *testing.T) {
	page := string(must(os.ReadFile("../docs/scaling.md")))
	for name, budget := range map[string]throttle.Option{"no budget": throttle.Budget(0, 0), "a budget of 100": throttle.Budget(100, time.Second)} {
		for _, load := range []float64{500, 2000} {
			synctest.Test(t, func(t *testing.T) {
				admitted, waited, commands := regions(t, load, budget)
				found := regexp.MustCompile(fmt.Sprintf(`\n\| %s \| %v \| (\d+) %% \| (\d+) %% \| (\d+) \|`, name, load)).FindStringSubmatch(page)
				require.Len(t, found, 4, "no row for %s, %v calls per second: %v, %v, %v", name, load, admitted, waited, commands)
				for i, share := range []float64{admitted, waited, commands / 1000} {
					want := float64(must(strconv.Atoi(found[i+1]))) / []float64{100, 100, 1000}[i]
					require.InDelta(t, want, share, 0.03, "%s, %v calls per second: %v", name, load, found[i+1])
				}
			})
		}
	}
}

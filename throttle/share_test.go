package throttle_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// A pattern is a load in bursts, as a share of a limit.
type pattern struct {
	name  string
	limit func(c *throttle.Client, o throttle.Option) throttle.Allower
	rate  float64 // units per second that the limit drains
	burst int     // calls that come together
}

// admittedShare returns the share that is admitted of a load, which some clients ask for by turns.
func admittedShare(t *testing.T, p pattern, load float64, clients int, o throttle.Option) float64 {
	t.Helper()
	var limiters []throttle.Allower
	s := throttletest.NewServer()
	for range clients {
		c := must(throttle.New(s, throttle.Options{Now: s.Now}))
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

// A budget costs no admissions: at loads below the limit the share that is admitted is within 1 % of that without one.
func TestBudget_costsNoAdmissions(t *testing.T) {
	for _, p := range []pattern{
		{"30 a minute", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Rate("l", throttle.PerMinute(30), o)
		}, 0.5, 5},
		{"5 an hour", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Rate("l", throttle.PerHour(5), o)
		}, 5. / 3600, 2},
		{"20 a day", func(c *throttle.Client, o throttle.Option) throttle.Allower { return c.Quota("l", 20, 24*time.Hour, o) }, 20. / 86400, 2},
		{"100 a second", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Rate("l", throttle.PerSecond(100), o)
		}, 100, 5},
		{"100 a second, bursts", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Rate("l", throttle.PerSecond(100), o)
		}, 100, 40},
		{"1000 in 10 s", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Window("l", 1000, 10*time.Second, o)
		}, 100, 10},
		{"500 a second", func(c *throttle.Client, o throttle.Option) throttle.Allower {
			return c.Rate("l", throttle.PerSecond(500), o)
		}, 500, 1},
	} {
		for _, load := range []float64{0.3, 0.6, 0.8, 0.95} {
			for _, clients := range []int{1, 3} {
				synctest.Test(t, func(t *testing.T) {
					without := admittedShare(t, p, load, clients, throttle.DenyCache(false))
					with := admittedShare(t, p, load, clients, throttle.Budget(100, time.Second))
					require.GreaterOrEqual(t, with, without-0.01, "%s, load %v, %d clients", p.name, load, clients)
				})
			}
		}
	}
}

package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// unreliable is a server whose round trips take some time and whose replies are lost now and then.
type unreliable struct {
	*throttletest.Server
	mu     sync.Mutex
	random *rand.Rand
}

func (s *unreliable) Process(ctx context.Context, cmd redis.Cmder) error {
	s.mu.Lock()
	trip, lost := time.Duration(s.random.IntN(2_000_000)), s.random.IntN(40) == 0
	s.mu.Unlock()
	time.Sleep(trip)
	err := s.Server.Process(ctx, cmd)
	if lost && err == nil {
		err = errors.New("the reply is lost")
		cmd.SetErr(err)
	}
	return err
}

// meter measures how much was admitted: a bucket that drains at the rate. Its highest level is the most that was admitted
// in any length of time t, less rate x t.
type meter struct {
	mu            sync.Mutex
	last          time.Time
	level, most   float64
	perNanosecond float64
}

func (m *meter) admit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.level = max(m.level-float64(now.Sub(m.last))*m.perNanosecond, 0) + 1
	m.last, m.most = now, max(m.most, m.level)
}

// useClient calls Allow from some goroutines at random times for some seconds. Then the client closes, if it is to.
func useClient(t *testing.T, c *throttle.Client, seed uint64, limit throttle.Limit, m *meter, closes bool) {
	var wg sync.WaitGroup
	for g := range uint64(6) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, g))
			for range 60 {
				time.Sleep(time.Duration(random.IntN(40)) * time.Duration(random.IntN(3_000_000)))
				for range random.IntN(12) {
					ctx, cancel := context.WithCancel(background)
					if random.IntN(10) == 0 {
						time.AfterFunc(time.Millisecond, cancel)
					}
					if r, err := c.Rate("hot", limit).Allow(ctx, ""); err == nil && r.Allowed {
						m.admit()
					}
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if closes {
		_ = c.Close()
	}
}

// Clients that merge calls and keep budgets never admit more than the documentation states: random schedules with lost
// replies, cancelled callers and clients that close and give back.
func TestProperty_neverAboveTheBound(t *testing.T) {
	const burst, units, clients = 40, 5, 3
	limit := throttle.PerSecond(100).Burst(burst)
	for name, world := range map[string]struct {
		o      []throttle.Option
		excess float64
	}{
		"merged":  {nil, 0},
		"denials": {[]throttle.Option{throttle.DenyCache(true)}, 0},
		"budget":  {[]throttle.Option{throttle.Budget(units, 100*time.Millisecond)}, clients * units},
		"both":    {[]throttle.Option{throttle.Budget(units, 100*time.Millisecond), throttle.DenyCache(true)}, clients * units},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &unreliable{Server: throttletest.NewServer(), random: rand.New(rand.NewPCG(seed, 99))}
					m := &meter{perNanosecond: 100e-9}
					var wg sync.WaitGroup
					for i := range uint64(clients) {
						c := must(throttle.New(s, throttle.Options{Logger: quiet}, world.o...))
						wg.Go(func() { useClient(t, c, seed*clients+i, limit, m, i > 0) })
						defer c.Close()
					}
					wg.Wait()
					require.LessOrEqual(t, m.most, burst+world.excess+1e-6)
					require.Greater(t, m.most, burst*0.5) // else the load was too low
				})
			})
		}
	}
}

// Every unit that is admitted was charged before, and a client that closes gives back only what it did not spend.
func TestProperty_chargedBeforeAdmitted(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{}, throttle.Budget(5, 10*time.Second))
	looks := must(throttle.New(s, throttle.Options{}))
	const all = 1_000_000
	charged := func() int64 {
		r := must(looks.Quota("a", all, 24*time.Hour).Peek(background, ""))
		return all - r.Remaining
	}
	admitted, sent := int64(0), int64(0)
	for admitted < 300 || charged() == admitted { // in the end units are held
		admitted++
		s.Advance(time.Millisecond)
		if r := must(c.Quota("a", all, 24*time.Hour).Allow(background, "")); r.Source == throttle.FromServer {
			sent++
		}
		require.GreaterOrEqual(t, charged(), admitted)
		require.LessOrEqual(t, charged(), admitted+5)
	}
	require.Less(t, sent, admitted/2) // the others were units of the budget
	require.NoError(t, c.Close())
	require.Equal(t, admitted, charged())
	_, err := c.Quota("a", all, 24*time.Hour).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrClosed)
}

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

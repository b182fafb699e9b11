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
	admitted := int64(0)
	for admitted < 300 || charged() == admitted { // in the end units are held
		admitted++
		s.Advance(time.Millisecond)
		must(c.Quota("a", all, 24*time.Hour).Allow(background, ""))
		require.GreaterOrEqual(t, charged(), admitted)
		require.LessOrEqual(t, charged(), admitted+5)
	}
	require.NoError(t, c.Close())
	require.Equal(t, admitted, charged())
	_, err := c.Quota("a", all, 24*time.Hour).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrClosed)
}

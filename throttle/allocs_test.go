package throttle

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// admitting answers every command at once: one unit of ten was taken.
type admitting struct{ reply []int64 }

func (a admitting) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal([]int64) }).SetVal(a.reply)
	return nil
}

// An Allow allocates its command, its key, and little else: with merging the key's state.
func TestAllow_allocations(t *testing.T) {
	for merges, most := range map[bool]float64{true: 6, false: 4} {
		client, err := New(admitting{[]int64{0, 10, 9, -1, 1000}}, Options{}, Coalesce(merges))
		require.NoError(t, err)
		ctx, rate := context.Background(), client.Rate("t", PerSecond(10))
		allocs := testing.AllocsPerRun(1000, func() {
			if r, err := rate.Allow(ctx, "k"); err != nil || !r.Allowed {
				t.Error(r, err)
			}
		})
		require.LessOrEqual(t, allocs, most)
		require.NoError(t, client.Close())
	}
}

// A unit of a budget costs no allocation.
func TestBudget_allocations(t *testing.T) {
	client, err := New(admitting{}, Options{}, Budget(1e6, time.Hour))
	require.NoError(t, err)
	ctx, rate := context.Background(), client.Rate("t", PerSecond(10))
	s := rate.l.lock("k", nil)
	s.mu.Unlock()
	rate.l.keep(s, client.now(), 1e6, &Result{})
	key := rate.Key("k")
	for _, ask := range []func() (Result, error){func() (Result, error) { return rate.Allow(ctx, "k") }, func() (Result, error) { return key.Allow(ctx) }} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if r, err := ask(); err != nil || r.Source != FromBudget {
				t.Error(r, err)
			}
		}))
	}
}

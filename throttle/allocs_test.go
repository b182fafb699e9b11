package throttle

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// admitting answers every command at once: one unit of ten was taken.
type admitting struct{ reply []int64 }

func (a admitting) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal([]int64) }).SetVal(a.reply)
	return nil
}

// An Allow allocates its command, its key, and little else. The bound is the same with and without merging.
func TestAllow_allocations(t *testing.T) {
	for _, merges := range []bool{true, false} {
		client, err := New(admitting{[]int64{0, 10, 9, -1, 1000}}, Options{}, Coalesce(merges))
		require.NoError(t, err)
		ctx, rate := context.Background(), client.Rate("t", PerSecond(10))
		allocs := testing.AllocsPerRun(1000, func() {
			if r, err := rate.Allow(ctx, "k"); err != nil || !r.Allowed {
				t.Error(r, err)
			}
		})
		require.LessOrEqual(t, allocs, 4.0)
		require.NoError(t, client.Close())
	}
}

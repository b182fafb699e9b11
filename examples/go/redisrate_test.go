package examples

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	old "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	redis_rate "gothrottle/throttle/redisrate"
)

// small has no more methods than redis_rate needs.
type small struct {
	redis.Scripter
	deletes
}

type deletes interface {
	Del(ctx context.Context, keys ...string) *redis.IntCmd
}

// Random calls have the same results by redis_rate and by throttle/redisrate, on one server: each has keys of its own. An
// event takes 1000 s to drain, and times may differ by 100 s: so a slow machine changes nothing.
func TestRedisRate_sameResults(t *testing.T) {
	servers.Needed(t, "test-examples")
	rdb := servers.New(t, servers.Options{}).Client()
	t.Cleanup(func() { _ = rdb.Close() })
	for name, after := range map[string]*redis_rate.Limiter{
		"client": redis_rate.NewLimiter(rdb), "small": redis_rate.NewLimiter(small{rdb, rdb}), "small, script": redis_rate.NewScriptLimiter(small{rdb, rdb}),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			sameResults(t, old.NewLimiter(rdb), after)
		})
	}
}

func sameResults(t *testing.T, before *old.Limiter, after *redis_rate.Limiter) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 400 {
		limit := old.Limit{Rate: 36, Burst: []int{0, 1, 4, 10, 10, 10}[random.IntN(6)], Period: 10 * time.Hour}
		key := fmt.Sprint("user:", random.IntN(8), limit.Burst > 0) // without a burst the server is not asked
		n := random.IntN(6)
		if random.IntN(20) == 0 {
			require.NoError(t, before.Reset(t.Context(), key))
			require.NoError(t, after.Reset(t.Context(), key))
		}
		name, ask, askToo := "AllowN", before.AllowN, after.AllowN
		if random.IntN(2) == 0 {
			name, ask, askToo = "AllowAtMost", before.AllowAtMost, after.AllowAtMost
		}
		name = fmt.Sprintf("%s(%s, %d)", name, limit, n)
		want, err := ask(t.Context(), key, limit, n)
		require.NoError(t, err, name)
		got, err := askToo(t.Context(), key, redis_rate.Limit(limit), n)
		require.NoError(t, err, name)
		require.Equal(t, []int{want.Allowed, want.Remaining}, []int{got.Allowed, got.Remaining}, name)
		require.Equal(t, want.RetryAfter < 0, got.RetryAfter < 0, name)
		require.InDelta(t, want.RetryAfter.Seconds(), got.RetryAfter.Seconds(), 100, name)
		require.InDelta(t, want.ResetAfter.Seconds(), got.ResetAfter.Seconds(), 100, name)
		require.Equal(t, want.Limit.String(), got.Limit.String())
		seen[fmt.Sprint(want.Allowed, want.RetryAfter < 0)] = true
	}
	require.Greater(t, len(seen), 6) // else the calls were too much alike
}

package examples

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	old "github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"

	redis_rate "gothrottle/throttle/redisrate"
)

// Random calls have the same results by redis_rate and by throttle/redisrate, on one server: each has keys of its own. An
// event takes 1000 s to drain, and times may differ by 100 s: so a slow machine changes nothing.
func TestRedisRate_sameResults(t *testing.T) {
	_, rdb := startServer(t)
	before, after := old.NewLimiter(rdb), redis_rate.NewLimiter(rdb)
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 400 {
		limit := old.Limit{Rate: 36, Burst: []int{0, 1, 4, 10, 10, 10}[random.IntN(6)], Period: 10 * time.Hour}
		key := fmt.Sprint("user:", random.IntN(8), limit.Burst > 0) // without a burst the server is not asked
		n := random.IntN(6)
		name := fmt.Sprintf("AllowN(%s, %d)", limit, n)
		var want *old.Result
		var got *redis_rate.Result
		var wantErr, gotErr error
		switch random.IntN(20) {
		case 0:
			name = "Reset"
			wantErr, gotErr = before.Reset(t.Context(), key), after.Reset(t.Context(), key)
			want, got = new(old.Result), new(redis_rate.Result)
		case 1, 2, 3, 4, 5, 6, 7, 8, 9:
			name = fmt.Sprintf("AllowAtMost(%s, %d)", limit, n)
			want, wantErr = before.AllowAtMost(t.Context(), key, limit, n)
			got, gotErr = after.AllowAtMost(t.Context(), key, redis_rate.Limit(limit), n)
		default:
			want, wantErr = before.AllowN(t.Context(), key, limit, n)
			got, gotErr = after.AllowN(t.Context(), key, redis_rate.Limit(limit), n)
		}
		require.NoError(t, wantErr, name)
		require.NoError(t, gotErr, name)
		require.Equal(t, []int{want.Allowed, want.Remaining}, []int{got.Allowed, got.Remaining}, name)
		require.Equal(t, want.RetryAfter < 0, got.RetryAfter < 0, name)
		require.InDelta(t, want.RetryAfter.Seconds(), got.RetryAfter.Seconds(), 100, name)
		require.InDelta(t, want.ResetAfter.Seconds(), got.ResetAfter.Seconds(), 100, name)
		require.Equal(t, want.Limit.String(), got.Limit.String())
		seen[fmt.Sprint(want.Allowed, want.RetryAfter < 0)] = true
	}
	require.Greater(t, len(seen), 6) // else the calls were too much alike
}

package examples

import (
	"testing"

	old "github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"

	redis_rate "gothrottle/throttle/redisrate"
)

// During a deploy the old version of a program uses redis_rate, the new one throttle/redisrate, both on one server: each
// limits by keys of its own.
func TestSideBySide_oldAndNewVersionDuringADeploy(t *testing.T) {
	_, rdb := startServer(t)
	before, after := old.NewLimiter(rdb), redis_rate.NewLimiter(rdb)
	for _, user := range []string{"user:1", "user:2"} {
		for i := range 5 {
			want := 0
			if i < 3 {
				want = 1
			}
			a, err := before.Allow(t.Context(), user, old.PerHour(3))
			require.NoError(t, err)
			b, err := after.Allow(t.Context(), user, redis_rate.PerHour(3))
			require.NoError(t, err)
			require.Equal(t, []int{want, want}, []int{a.Allowed, b.Allowed}, "%s, call %d", user, i)
		}
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	types := map[string]string{}
	for _, key := range keys {
		types[key] = rdb.Type(t.Context(), key).Val()
	}
	require.Equal(t, map[string]string{
		"rate:user:1": "string", "rate:user:2": "string", "redisrate:user:1": "hash", "redisrate:user:2": "hash",
	}, types)

	// A reset by one version leaves the other's limiter alone.
	require.NoError(t, after.Reset(t.Context(), "user:1"))
	b, err := after.Allow(t.Context(), "user:1", redis_rate.PerHour(3))
	require.NoError(t, err)
	require.Equal(t, 1, b.Allowed)
	a, err := before.Allow(t.Context(), "user:1", old.PerHour(3))
	require.NoError(t, err)
	require.Zero(t, a.Allowed)
}

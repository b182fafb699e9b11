package examples

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
)

// miniredis runs the script, so a unit test needs no server. It sets the clock.
func TestMiniredis(t *testing.T) {
	s, now := miniredis.RunT(t), time.Now().Truncate(time.Second)
	s.SetTime(now)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := throttle.New(rdb, throttle.Script(), throttle.Timeout(patient), throttle.Logger(quiet))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Check(t.Context()))
	rate, window, quota := client.Rate("rate", throttle.PerHour(2)), client.Window("window", 2, time.Hour), client.Quota("quota", 2, time.Hour)
	for _, limiter := range []throttle.Allower{rate, window, quota} {
		for i, allowed := range []bool{true, true, false} {
			r, err := limiter.Allow(t.Context(), "bob")
			require.NoError(t, err)
			require.Equal(t, allowed, r.Allowed, "%T %d", limiter, i)
		}
		s.SetTime(now.Add(time.Hour + time.Second))
		r, err := limiter.Allow(t.Context(), "bob")
		require.NoError(t, err)
		require.True(t, r.Allowed, "%T", limiter)
		s.SetTime(now)
	}
	all, err := client.All(t.Context(), rate.Part("ann", 1), quota.Part("ann", 3))
	require.NoError(t, err)
	require.False(t, all.Allowed)
	lease, err := client.Slots("jobs", 1, time.Minute).Lease(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, lease.Close())
}

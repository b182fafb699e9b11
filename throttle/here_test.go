package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// While the server is unavailable, a process decides exactly, by its share: of units, or of a longer period. Each kind and verb
// does, and two names and keys don't meet.
func TestFailLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last throttle.Event
		c, s := throttletest.New(t, throttle.FailLocal(0.25), throttle.Observe(func(e throttle.Event) { last = e }))
		rate, slow := c.Rate("r", throttle.PerMinute(8)), c.Rate("s", throttle.PerMinute(1))
		s.Fail(serverError("LOADING"))
		admits := func(key string, limiter throttle.Allower) (n int) {
			for range 20 {
				r := must(limiter.Allow(background, key))
				require.Equal(t, throttle.FailedLocal, r.Source)
				require.ErrorIs(t, r.Cause, throttle.ErrUnavailable)
				if r.Allowed {
					n++
				}
			}
			return n
		}
		require.Equal(t, 2, admits("a", rate))
		require.Equal(t, 2, admits("b", rate))
		require.Equal(t, 1, admits("a", slow))
		require.Equal(t, 3, admits("a", c.Window("w", 12, time.Minute)))
		require.Equal(t, 1, admits("a", c.Quota("q", 3, time.Minute)))
		require.Equal(t, 1, admits("a", c.Quota("month", 3, throttle.Month)))
		s.Advance(time.Minute)
		require.Equal(t, []int{2, 0, 3, 0}, []int{admits("a", rate), admits("a", slow), admits("a", c.Window("w", 12, time.Minute)), admits("a", c.Quota("q", 3, time.Minute))})
		s.Advance(3 * time.Minute)
		require.Equal(t, 1, admits("a", slow))
		s.Advance(32 * 24 * time.Hour)
		require.Zero(t, admits("a", c.Quota("month", 3, throttle.Month)))
		s.Advance(10 * 24 * time.Hour)
		require.Equal(t, 1, admits("a", c.Quota("month", 3, throttle.Month)))

		all := must(c.All(background, rate.Part("c", 2), c.Window("w", 12, time.Minute).Part("c", 4)))
		require.False(t, all.Allowed)
		require.Equal(t, throttle.FailedLocal, all.Each[1].Source)
		require.Equal(t, 2, admits("c", rate), "nothing was taken")
		res := must(rate.Reserve(background, "d", 2, time.Hour))
		require.Zero(t, res.Wait)
		require.Equal(t, res.Result, last.Result)
		require.Equal(t, "Reserve", last.Verb)
		require.Equal(t, 30*time.Second, must(rate.Reserve(background, "d", 1, time.Hour)).Wait)
		require.NoError(t, res.Cancel(background))
		slots := c.Slots("slots", 4, time.Minute)
		lease := must(slots.Lease(background, "a"))
		require.Equal(t, throttle.FailedLocal, lease.Result.Source)
		_, err := slots.Lease(background, "a")
		require.ErrorContains(t, err, "denied")
		require.NoError(t, lease.Close())
		require.True(t, must(slots.Hold(background, "a", "me")).Allowed)

		require.ErrorIs(t, only(c.Policy("p").Allow(background, "a")), throttle.ErrUnavailable)
		require.ErrorIs(t, only(rate.Peek(background, "a")), throttle.ErrUnavailable)
		for _, share := range []float64{0, -1, 1.1} {
			require.ErrorIs(t, c.Rate("x", throttle.PerMinute(1), throttle.FailLocal(share)).Info().Err, throttle.ErrParams)
		}
		s.Fail(nil)
		s.Advance(time.Minute)
		require.Equal(t, throttle.FromServer, must(rate.Allow(background, "a")).Source)
	})
}

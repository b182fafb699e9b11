package throttle_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
		c, s := throttletest.New(t, throttle.FailLocal(0.25))
		rate, slow := c.Rate("r", throttle.PerMinute(8)), c.Rate("s", throttle.PerMinute(1))
		s.Fail(serverError("LOADING"))
		admits := func(key string, limiter allower) (n int) {
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
		require.Equal(t, 30*time.Second, must(rate.Reserve(background, "d", 1, time.Hour)).Wait)
		require.NoError(t, res.Cancel(background))
		slots := c.Slots("slots", 4, time.Minute)
		lease := must(slots.Lease(background, "a"))
		require.Equal(t, throttle.FailedLocal, lease.Result.Source)
		_, err := slots.Lease(background, "a")
		require.ErrorContains(t, err, "denied")
		require.NoError(t, lease.Close())
		require.True(t, must(slots.Take(background, "a", "me")).Allowed)

		require.ErrorIs(t, only(c.Policy("p").Allow(background, "a")), throttle.ErrUnavailable)
		require.ErrorIs(t, only(rate.Peek(background, "a")), throttle.ErrUnavailable)
		for _, share := range []float64{0, -1, 1.1} {
			require.ErrorIs(t, only(c.Rate("x", throttle.PerMinute(1), throttle.FailLocal(share)).Info()), throttle.ErrParams)
		}
		s.Fail(nil)
		s.Advance(time.Minute)
		require.Equal(t, throttle.FromServer, must(rate.Allow(background, "a")).Source)
	})
}

// Whatever the verb, the fallback and the state of the server, Observe sees once what the caller gets, with the limiter's name
// and the key as the caller gave it.
func TestObserve(t *testing.T) {
	for i, fallback := range []throttle.Option{throttle.Timeout(time.Second), throttle.FailOpen(), throttle.FailClosed(), throttle.FailLocal(0.5)} {
		synctest.Test(t, func(t *testing.T) {
			var seen []throttle.Event
			c, s := throttletest.New(t, fallback, throttle.Logger(quiet), throttle.KeyPrefix("p:"),
				throttle.Observe(func(e throttle.Event) { seen = append(seen, e) }))
			rate, quota, slots := c.Rate("r", throttle.PerMinute(6)), c.Quota("q", 5, time.Minute), c.Slots("s", 2, time.Minute)
			random := rand.New(rand.NewPCG(1, uint64(i)))
			n := int64(0)
			done := func(err error) (throttle.Result, error) {
				if err != nil {
					return throttle.Result{}, err
				}
				return throttle.Result{Allowed: true, Source: throttle.FromServer}, nil
			}
			verbs := map[string]func() (throttle.Result, error){
				"Allow r a":       func() (throttle.Result, error) { return rate.AllowN(background, "a", n) },
				"AllowAtMost q a": func() (throttle.Result, error) { return quota.AllowAtMost(background, "a", n) },
				"Peek q a":        func() (throttle.Result, error) { return quota.Peek(background, "a") },
				"Refund q a":      func() (throttle.Result, error) { return quota.Refund(background, "a", n) },
				"Settle q a":      func() (throttle.Result, error) { return quota.Settle(background, "a", n) },
				"Raise q a":       func() (throttle.Result, error) { return quota.Raise(background, "a", n) },
				"Reset q a":       func() (throttle.Result, error) { return done(quota.Reset(background, "a")) },
				"Release s a":     func() (throttle.Result, error) { return done(only(slots.Release(background, "a", fmt.Sprint(n)))) },
				"Reserve r a": func() (throttle.Result, error) {
					res, err := rate.Reserve(background, "a", n, time.Minute)
					return res.Result, err
				},
				"Take s a": func() (throttle.Result, error) { return slots.Take(background, "a", fmt.Sprint(n)) },
				"Lease s a": func() (throttle.Result, error) {
					lease, err := slots.Lease(background, "a")
					if denied := (*throttle.DeniedError)(nil); errors.As(err, &denied) {
						return denied.Result, nil // Observe gets it as a decision
					}
					if lease == nil {
						return seen[0].Result, err // the caller gets none
					}
					return lease.Result, err
				},
				"All  ": func() (throttle.Result, error) {
					all, err := c.All(background, rate.Part("a", n), quota.Part("b", 1))
					return all.Result, err
				},
				"SettleAll  ": func() (throttle.Result, error) {
					all, err := c.SettleAll(background, quota.Part("a", n), rate.Part("b", 1))
					return all.Result, err
				},
			}
			names := slices.Sorted(maps.Keys(verbs))
			for range 2000 {
				s.Fail([]error{nil, nil, serverError("LOADING"), serverError("WRONGTYPE")}[random.IntN(4)])
				name := names[random.IntN(len(names))]
				n, seen = random.Int64N(9)-1, nil
				r, err := verbs[name]()
				require.Len(t, seen, 1, name)
				e := seen[0]
				require.Equal(t, []any{name, r, err}, []any{fmt.Sprint(e.Verb, " ", e.Name, " ", e.Key), e.Result, e.Err}, "fallback %d, %d units", i, n)
				s.Advance(time.Duration(random.IntN(20)) * time.Second)
			}
		})
	}
}

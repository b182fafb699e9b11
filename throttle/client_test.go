package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

var background = context.Background()

// A denial is no error, the zero Result denies, and Never is told of what no wait would admit.
func TestAllow_denial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		require.False(t, throttle.Result{}.Allowed)
		limit := throttle.PerMinute(30).Burst(2)
		r, err := c.Allow(background, "a", limit)
		require.NoError(t, err)
		require.Equal(t, throttle.Result{Allowed: true, Limit: 2, Remaining: 1, Granted: 1, ResetAfter: 2 * time.Second}, r)
		r, err = c.AllowN(background, "a", limit, 2)
		require.NoError(t, err)
		require.Equal(t, throttle.Result{Limit: 2, Remaining: 1, RetryAfter: 2 * time.Second, ResetAfter: 2 * time.Second}, r)
		r, err = c.AllowN(background, "a", limit, 3)
		require.NoError(t, err)
		require.Equal(t, throttle.Never, r.RetryAfter)
	})
}

// Each limit decides by its own command.
func TestAllow_everyLimit(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{})
	require.NoError(t, s.SetPolicies("api THROTTLE 1 1 60s"))
	for name, limit := range map[string]throttle.Limit{
		"rate": throttle.PerHour(2), "lockout": throttle.PerHour(2).Lockout(time.Hour), "window": throttle.Window(2, time.Hour),
		"exact": throttle.Window(2, time.Hour).Exact(), "quota": throttle.Quota(2, time.Hour),
		"aligned": throttle.Quota(2, time.Hour).Align(-time.Minute), "api": throttle.Policy(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range []bool{true, true, false} {
				r, err := c.Allow(background, name+":bob", limit)
				require.NoError(t, err)
				require.Equal(t, want, r.Allowed)
				require.EqualValues(t, 2, r.Limit)
			}
		})
	}
}

// A lockout denies also what the rate would admit.
func TestAllow_lockout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		limit := throttle.PerSecond(1).Lockout(time.Minute)
		for range 2 {
			_, err := c.Allow(background, "a", limit)
			require.NoError(t, err)
		}
		s.Advance(30 * time.Second)
		r, err := c.Allow(background, "a", limit)
		require.NoError(t, err)
		require.False(t, r.Allowed)
		require.InDelta(t, 30*time.Second, r.RetryAfter, float64(time.Second))
	})
}

func TestAllowAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.Window(5, time.Hour)
		r, err := c.AllowAtMost(background, "a", limit, 7)
		require.NoError(t, err)
		require.True(t, r.Allowed)
		require.EqualValues(t, 5, r.Granted)
		require.Positive(t, r.RetryAfter)
		r, err = c.AllowAtMost(background, "a", limit, 1)
		require.NoError(t, err)
		require.False(t, r.Allowed)
		require.Zero(t, r.Granted)
	})
}

// A refund tells what was given back, and Settle corrects in both directions.
func TestRefund_andSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.PerHour(5)
		_, err := c.AllowN(background, "a", limit, 2)
		require.NoError(t, err)
		r, err := c.Refund(background, "a", limit, 3)
		require.NoError(t, err)
		require.EqualValues(t, -2, r.Granted)
		r, err = c.Settle(background, "a", limit, 9)
		require.NoError(t, err)
		require.True(t, r.Allowed)
		require.Zero(t, r.Remaining)
		r, err = c.Peek(background, "a", limit)
		require.NoError(t, err)
		require.False(t, r.Allowed)
		r, err = c.Settle(background, "a", limit, -5)
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Remaining)
	})
}

// A peek changes nothing.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		r, err := c.Peek(background, "a", throttle.PerHour(5))
		require.NoError(t, err)
		require.True(t, r.Allowed)
		require.EqualValues(t, 5, r.Remaining)
		require.Zero(t, s.Keys())
	})
}

// All takes all parts or none. Parts of one key need not stand together.
func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{KeyPrefix: "p:"})
		parts := []throttle.Take{
			{Key: "rate", Limit: throttle.PerSecond(10), N: 1},
			{Key: "day", Limit: throttle.Quota(3, 24*time.Hour).Align(0), N: 2},
			{Key: "rate", Limit: throttle.PerHour(100), N: 1},
			{Key: "jobs", Limit: throttle.Slots(2, time.Minute), Holder: "me"},
		}
		r, err := c.All(background, parts...)
		require.NoError(t, err)
		require.True(t, r.Allowed)
		require.Equal(t, 1, r.Decider)
		require.EqualValues(t, 1, r.Remaining)
		require.Equal(t, []int64{9, 1, 99, 1}, []int64{r.Each[0].Remaining, r.Each[1].Remaining, r.Each[2].Remaining, r.Each[3].Remaining})
		require.Equal(t, []int64{1, 2, 1, 1}, []int64{r.Each[0].Granted, r.Each[1].Granted, r.Each[2].Granted, r.Each[3].Granted})
		r, err = c.All(background, parts...)
		require.NoError(t, err)
		require.False(t, r.Allowed)
		require.Equal(t, 1, r.Decider)
		require.EqualValues(t, 99, r.Each[2].Remaining)
		r, err = c.SettleAll(background, throttle.Take{Key: "day", Limit: parts[1].Limit, N: -1}, throttle.Take{Key: "rate", Limit: parts[0].Limit, N: 20})
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Each[0].Remaining)
		require.EqualValues(t, 0, r.Each[1].Remaining)
	})
}

// What makes no sense is an ErrParams, and is not sent.
func TestErrParams(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{})
	rate, window, policy := throttle.PerSecond(1), throttle.Window(1, time.Second), throttle.Policy()
	verbs := map[string]func() error{
		"zero limit":           func() error { _, err := c.Allow(background, "a", throttle.Limit{}); return err },
		"rate 0":               func() error { _, err := c.Allow(background, "a", throttle.PerSecond(0)); return err },
		"half a millisecond":   func() error { _, err := c.Allow(background, "a", throttle.Per(1, 500*time.Microsecond)); return err },
		"burst of a window":    func() error { _, err := c.Allow(background, "a", window.Burst(2)); return err },
		"exact rate":           func() error { _, err := c.Allow(background, "a", rate.Exact()); return err },
		"aligned window":       func() error { _, err := c.Allow(background, "a", window.Align(0)); return err },
		"lockout 0":            func() error { _, err := c.Allow(background, "a", rate.Lockout(0)); return err },
		"burst 0":              func() error { _, err := c.Allow(background, "a", rate.Burst(0)); return err },
		"0 units":              func() error { _, err := c.AllowN(background, "a", rate, 0); return err },
		"at most 0":            func() error { _, err := c.AllowAtMost(background, "a", rate, 0); return err },
		"refund 0":             func() error { _, err := c.Refund(background, "a", rate, 0); return err },
		"refund to a policy":   func() error { _, err := c.Refund(background, "a", policy, 1); return err },
		"settle a policy":      func() error { _, err := c.Settle(background, "a", policy, 1); return err },
		"at most of a lockout": func() error { _, err := c.AllowAtMost(background, "a", rate.Lockout(time.Second), 1); return err },
		"reserve a window":     func() error { _, err := c.Reserve(background, "a", window, 1, time.Second); return err },
		"lease of a rate":      func() error { _, _, err := c.Lease(background, "a", rate); return err },
		"allow of slots":       func() error { _, err := c.Allow(background, "a", throttle.Slots(1, time.Second)); return err },
		"all of nothing":       func() error { _, err := c.All(background); return err },
		"all of a policy":      func() error { _, err := c.All(background, throttle.Take{Key: "a", Limit: policy}); return err },
		"slot without a holder": func() error {
			_, err := c.All(background, throttle.Take{Key: "a", Limit: throttle.Slots(1, time.Second)})
			return err
		},
		"units of a slot": func() error {
			_, err := c.All(background, throttle.Take{Key: "a", Limit: throttle.Slots(1, time.Second), Holder: "me", N: 1})
			return err
		},
	}
	for name, verb := range verbs {
		require.ErrorIs(t, verb(), throttle.ErrParams, name)
	}
	require.Zero(t, s.Calls())
}

// The server's error replies are told apart.
func TestErrors_ofTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		_, err := c.Allow(background, "a", throttle.Window(1, time.Second))
		require.NoError(t, err)
		_, err = c.Allow(background, "a", throttle.PerSecond(1))
		require.ErrorIs(t, err, throttle.ErrWrongKey)
		_, err = c.Allow(background, "a", throttle.Policy())
		require.ErrorIs(t, err, throttle.ErrParams)
		for text, want := range map[string]error{
			"ERR unknown command 'GO.THROTTLE'": throttle.ErrNoModule, "LOADING Redis is loading": throttle.ErrUnavailable,
			"OOM command not allowed": throttle.ErrUnavailable, "READONLY You can't write": throttle.ErrUnavailable,
			"CROSSSLOT Keys in request": throttle.ErrParams,
		} {
			c, s := throttletest.New(t, throttle.Options{})
			for _, reply := range []error{serverError(text), fmt.Errorf("from a hook: %w", serverError(text))} {
				s.Fail(reply)
				_, err := c.Allow(background, "b", throttle.PerSecond(1))
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, text)
			}
		}
		s.Fail(serverError("NOPERM no"))
		_, err = c.Allow(background, "b", throttle.PerSecond(1))
		require.ErrorContains(t, err, "NOPERM")
		for _, kind := range []error{throttle.ErrNoModule, throttle.ErrUnavailable, throttle.ErrParams, throttle.ErrWrongKey} {
			require.NotErrorIs(t, err, kind)
		}
	})
}

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// What the caller chose is returned when the server is away, and says so.
func TestOnUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, away := throttle.PerHour(10), errors.New("no route to host")
		ask := func(o throttle.Options) (throttle.Result, error) {
			c, s := throttletest.New(t, o)
			s.Fail(away)
			return c.Allow(background, "a", limit)
		}
		r, err := ask(throttle.Options{})
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		require.ErrorIs(t, err, away)
		require.False(t, r.Allowed)
		r, err = ask(throttle.Options{OnUnavailable: throttle.FailOpen})
		require.NoError(t, err)
		require.True(t, r.Allowed)
		require.Equal(t, throttle.FailedOpen, r.Source)
		require.ErrorIs(t, r.Cause, away)
		r, err = ask(throttle.Options{OnUnavailable: throttle.FailClosed})
		require.NoError(t, err)
		require.False(t, r.Allowed)
		require.Equal(t, throttle.FailedClosed, r.Source)
		require.Equal(t, time.Second, r.RetryAfter)

		c, s := throttletest.New(t, throttle.Options{OnUnavailable: throttle.LimitLocally, LocalShare: 0.25})
		s.Fail(away)
		for _, want := range []bool{true, true, false} {
			r, err = c.Allow(background, "a", limit)
			require.NoError(t, err)
			require.Equal(t, want, r.Allowed)
			require.Equal(t, throttle.FromLocal, r.Source)
			require.ErrorIs(t, r.Cause, away)
		}
		require.InDelta(t, 24*time.Minute, r.RetryAfter, float64(time.Second)) // 10 per hour, a quarter of it: one in 24 minutes
		r, err = c.AllowN(background, "a", limit, 10)                          // more than the share, but not more than the limit
		require.NoError(t, err)
		require.Equal(t, time.Second, r.RetryAfter)
		r, err = c.AllowN(background, "a", limit, 11)
		require.NoError(t, err)
		require.Equal(t, throttle.Never, r.RetryAfter)
		s.Fail(serverError("ERR unknown command"))
		_, err = ask(throttle.Options{OnUnavailable: throttle.FailOpen})
		require.NoError(t, err)
	})
}

// Lease and All tell the same as other verbs when the server is away: the cause, what was granted, the limit.
func TestOnUnavailable_leaseAndAll(t *testing.T) {
	slots, away := throttle.Slots(3, time.Minute), errors.New("no route to host")
	parts := []throttle.Take{{Key: "a", Limit: throttle.PerHour(10), N: 2}, {Key: "b", Limit: slots, Holder: "me"}}
	for _, o := range []throttle.Options{{}, {OnUnavailable: throttle.LimitLocally, LocalShare: 0.5}} {
		c, s := throttletest.New(t, o)
		s.Fail(away)
		lease, r, err := c.Lease(background, "b", slots)
		require.Nil(t, lease)
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		require.ErrorIs(t, r.Cause, away)
		all, err := c.All(background, parts...)
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		require.ErrorIs(t, all.Cause, away)
	}
	c, s := throttletest.New(t, throttle.Options{OnUnavailable: throttle.FailOpen})
	s.Fail(away)
	lease, r, err := c.Lease(background, "b", slots)
	require.NoError(t, err)
	require.Equal(t, throttle.FailedOpen, r.Source)
	require.ErrorIs(t, lease.Close(), away) // the slot may have been taken
	all, err := c.All(background, parts...)
	require.NoError(t, err)
	require.Equal(t, all.Each[0], all.Result)
	require.EqualValues(t, 2, all.Granted)
	require.EqualValues(t, 10, all.Limit)
	require.EqualValues(t, 1, all.Each[1].Granted)
}

// Only an unavailable server calls for the fallback.
func TestOnUnavailable_otherErrorsAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{OnUnavailable: throttle.FailOpen})
		s.Fail(serverError("ERR unknown command 'GO.THROTTLE'"))
		r, err := c.Allow(background, "a", throttle.PerSecond(1))
		require.ErrorIs(t, err, throttle.ErrNoModule)
		require.False(t, r.Allowed)
	})
}

// A cancelled caller gets its own error, and no fallback.
func TestCancelled(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Options{OnUnavailable: throttle.FailOpen})
	ctx, cancel := context.WithCancel(background)
	cancel()
	r, err := c.Allow(ctx, "a", throttle.PerSecond(1))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, throttle.ErrUnavailable)
	require.False(t, r.Allowed)
}

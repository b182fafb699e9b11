package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

var background = context.Background()

// must returns what a call returned, which has to have no error.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// only returns the error of a call.
func only[T any](_ T, err error) error { return err }

// A denial isn't an error, the zero Result denies, and Never is reported if no wait helps.
func TestAllow_denial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		require.False(t, throttle.Result{}.Allowed)
		limit := throttle.PerMinute(30).Burst(2)
		r := must(c.Rate("a", limit).Allow(background, ""))
		require.Equal(t, throttle.Result{Allowed: true, Limit: 2, Remaining: 1, Granted: 1, ResetAfter: 2 * time.Second, Source: throttle.FromServer}, r)
		r = must(c.Rate("a", limit).AllowN(background, "", 2))
		require.Equal(t, throttle.Result{Limit: 2, Remaining: 1, RetryAfter: 2 * time.Second, ResetAfter: 2 * time.Second, Source: throttle.FromServer}, r)
		r = must(c.Rate("a", limit).AllowN(background, "", 3))
		require.Equal(t, throttle.Never, r.RetryAfter)
	})
}

// Each kind decides by its own command, with its name before the key.
func TestAllow_everyKind(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{KeyPrefix: "p-"})
	require.NoError(t, s.SetPolicies("p-api THROTTLE 1 1 60s"))
	for _, limiter := range []interface {
		throttle.Allower
		Info() throttle.Info
	}{
		c.Rate("rate", throttle.PerHour(2)), c.Rate("lockout", throttle.PerHour(2).Lockout(time.Hour)), c.Window("window", 2, time.Hour),
		c.ExactWindow("exact", 2, time.Hour), c.Quota("quota", 2, time.Hour), c.AlignedQuota("aligned", 2, time.Hour, nil), c.Policy("api"),
		c.AlignedQuota("day", 2, 24*time.Hour, time.Local), c.MonthlyQuota("month", 2, nil),
	} {
		for _, want := range []bool{true, true, false} {
			r := must(limiter.Allow(background, "bob"))
			require.Equal(t, want, r.Allowed, limiter.Info().Name)
			require.EqualValues(t, 2, r.Limit, limiter.Info().Name)
		}
		require.True(t, s.Delete("p-"+limiter.Info().Name+":bob"))
	}
}

// Two limiters of one name are refused if they differ, at once: by the log, by Check, and by every verb.
func TestLimiters_ofOneName(t *testing.T) {
	var log strings.Builder
	c, s := throttletest.New(t, throttle.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	first := c.Rate("a", throttle.PerHour(1))
	require.NoError(t, c.Check(background))
	calls := s.Calls()
	must(first.Allow(background, "x"))
	r := must(c.Rate("a", throttle.PerHour(1)).Allow(background, "x")) // the same
	require.False(t, r.Allowed)
	require.Empty(t, log.String())
	calls += 2
	for name, other := range map[string]throttle.Allower{
		"limit": c.Rate("a", throttle.PerHour(2)), "kind": c.Window("a", 1, time.Hour), "options": c.Rate("a", throttle.PerHour(1), throttle.DenyCache(true)),
		"a colon": c.Policy("a:b"), "no name": c.Policy(""), "a long name": c.Policy(strings.Repeat("a", 65)), "braces": c.Policy("{a}"),
		"a bad option": c.Rate("b", throttle.PerHour(1), throttle.Timeout(0)),
	} {
		_, err := other.Allow(background, "x")
		require.ErrorIs(t, err, throttle.ErrParams, name)
	}
	require.Equal(t, calls, s.Calls())
	require.ErrorIs(t, c.Check(background), throttle.ErrParams)
	require.Equal(t, 8, strings.Count(log.String(), "ERROR"))
	colon, _ := throttletest.New(t, throttle.Options{KeyPrefix: "p:", Logger: quiet})
	require.ErrorIs(t, colon.Policy("api").Info().Err, throttle.ErrParams)
}

// Bounds are rounded up, and end at the longest time.
func TestBounds(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Options{})
	for limit, want := range map[throttle.Limit][2]time.Duration{
		throttle.PerSecond(3): {time.Second, 333_333_334}, throttle.PerMinute(30).Burst(15): {30 * time.Second, 2 * time.Second},
		throttle.Per(1, time.Hour).Burst(1e12): {1<<63 - 1, time.Hour},
	} {
		info := c.Rate("a", throttle.PerSecond(1)).With(limit).Info()
		require.Positive(t, info.Units)
		require.Equal(t, want, [2]time.Duration{info.Span, info.Next})
	}
}

// With makes limits that meet at the same keys.
func TestRate_with(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		free := c.Rate("api", throttle.PerHour(2))
		paid := free.With(throttle.PerHour(4))
		for _, limiter := range []*throttle.Rate{free, free, paid, free.With(throttle.PerHour(4))} {
			r := must(limiter.Allow(background, "bob"))
			require.True(t, r.Allowed)
		}
		r := must(paid.Allow(background, "bob"))
		require.False(t, r.Allowed)
		require.ErrorIs(t, free.With(throttle.PerHour(0)).Info().Err, throttle.ErrParams)

		must(c.Window("window", 2, time.Hour).AllowN(background, "bob", 2))
		r = must(c.Window("window", 2, time.Hour).With(5).Allow(background, "bob"))
		require.EqualValues(t, 2, r.Remaining)
		must(c.Quota("quota", 2, time.Hour).AllowN(background, "bob", 2))
		r = must(c.Quota("quota", 2, time.Hour).With(5).Allow(background, "bob"))
		require.EqualValues(t, 2, r.Remaining)
	})
}

// Reset lifts a lockout, and this process forgets its denials and its budget.
func TestReset(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{}, throttle.DenyCache(true), throttle.Budget(10, time.Second))
	for _, limiter := range []interface {
		throttle.Allower
		Reset(context.Context, string) error
	}{c.Rate("a", throttle.PerHour(1).Lockout(time.Hour)), c.Quota("b", 1, time.Hour), c.Rate("c", throttle.PerHour(1))} {
		for range 3 {
			for i, want := range []bool{true, false, false} {
				r := must(limiter.Allow(background, "bob"))
				require.Equal(t, want, r.Allowed, i)
			}
			require.NoError(t, limiter.Reset(background, "bob"))
		}
	}
	require.Zero(t, s.Keys())
}

// What is left is taken, and a peek changes nothing.
func TestAllowAtMost(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{})
	window := c.Window("a", 5, time.Hour)
	r := must(window.Peek(background, ""))
	require.True(t, r.Allowed)
	require.EqualValues(t, 5, r.Remaining)
	require.Zero(t, s.Keys())
	r = must(window.AllowAtMost(background, "", 7))
	require.True(t, r.Allowed)
	require.EqualValues(t, 5, r.Granted)
	require.Positive(t, r.RetryAfter)
	r = must(window.AllowAtMost(background, "", 1))
	require.False(t, r.Allowed)
	require.Zero(t, r.Granted)
	require.False(t, must(window.Peek(background, "")).Allowed) // nothing remains
}

// A refund returns how much was given back, and Settle corrects in both directions.
func TestRefund_andSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.PerHour(5)
		must(c.Rate("a", limit).AllowN(background, "", 2))
		r := must(c.Rate("a", limit).Refund(background, "", 3))
		require.EqualValues(t, -2, r.Granted)
		r = must(c.Rate("a", limit).Settle(background, "", 9))
		require.True(t, r.Allowed)
		require.Zero(t, r.Remaining)
		r = must(c.Rate("a", limit).Peek(background, ""))
		require.False(t, r.Allowed)
		r = must(c.Rate("a", limit).Settle(background, "", -5))
		require.EqualValues(t, 1, r.Remaining)
	})
}

// All takes all parts or none.
func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{KeyPrefix: "p:"})
		rate, day, jobs := c.Rate("rate", throttle.PerSecond(10)), c.AlignedQuota("day", 3, 24*time.Hour, nil), c.Slots("jobs", 2, time.Minute)
		parts := []throttle.Part{rate.Part("a", 1), day.Part("a", 2), c.Rate("hour", throttle.PerHour(100)).Part("a", 1), jobs.Part("a", "me")}
		r := must(c.All(background, parts...))
		require.True(t, r.Allowed)
		require.Equal(t, 1, r.Decider)
		require.EqualValues(t, 1, r.Remaining)
		require.Equal(t, []int64{9, 1, 99, 1}, []int64{r.Each[0].Remaining, r.Each[1].Remaining, r.Each[2].Remaining, r.Each[3].Remaining})
		require.Equal(t, []int64{1, 2, 1, 1}, []int64{r.Each[0].Granted, r.Each[1].Granted, r.Each[2].Granted, r.Each[3].Granted})
		r = must(c.All(background, parts...))
		require.False(t, r.Allowed)
		require.Equal(t, 1, r.Decider)
		require.EqualValues(t, 99, r.Each[2].Remaining)
		require.Zero(t, r.Each[2].Granted)
		r = must(c.SettleAll(background, day.Part("a", -1), rate.Part("a", 20)))
		require.EqualValues(t, 2, r.Each[0].Remaining)
		require.EqualValues(t, 0, r.Each[1].Remaining)
		many := make([]throttle.Part, 33)
		for i := range many {
			many[i] = rate.Part(string(rune('A'+i)), 1)
		}
		must(c.All(background, many[1:]...))
		_, err := c.All(background, many...)
		require.ErrorIs(t, err, throttle.ErrParams)
	})
}

// All over a ring refuses keys of several hash tags: the shards of the later keys would not be asked.
func TestAll_ringNeedsOneHashTag(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour})
	t.Cleanup(func() { _ = ring.Close() })
	c := newReal(t, ring, throttle.Options{Logger: quiet})
	a, b := c.Rate("a", throttle.PerSecond(9)), c.Rate("b", throttle.PerSecond(9))
	for second, want := range map[string]error{"1": throttle.ErrParams, "{2}": throttle.ErrParams, "{1}x": throttle.ErrUnavailable} {
		_, err := c.All(background, a.Part("{1}", 1), b.Part(second, 1))
		require.ErrorIs(t, err, want, second)
	}
}

// A call that makes no sense is an ErrParams. Few are sent: the server refuses them.
func TestErrParams(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{Logger: quiet})
	other, _ := throttletest.New(t, throttle.Options{})
	rate, lockout := c.Rate("rate", throttle.PerSecond(1)), c.Rate("lockout", throttle.PerSecond(1).Lockout(time.Second))
	jobs := c.Slots("jobs", 1, time.Second)
	for name, err := range map[string]error{
		"zero limit":             c.Rate("a", throttle.Limit{}).Info().Err,
		"rate 0":                 c.Rate("a", throttle.PerSecond(0)).Info().Err,
		"half a millisecond":     c.Rate("a", throttle.Per(1, 500*time.Microsecond)).Info().Err,
		"part of a millisecond":  c.Window("a", 1, 1500*time.Microsecond).Info().Err,
		"lockout 0":              c.Rate("a", throttle.PerSecond(1).Lockout(0)).Info().Err,
		"burst 0":                c.Rate("a", throttle.PerSecond(1).Burst(0)).Info().Err,
		"slots":                  only(c.Slots("a", 0, time.Second).Lease(background, "x")),
		"0 units":                only(rate.AllowN(background, "a", 0)),
		"at most 0":              only(rate.AllowAtMost(background, "a", 0)),
		"too many":               only(rate.AllowN(background, "a", 1e12+2)),
		"refund 0":               only(rate.Refund(background, "a", 0)),
		"at most of a lockout":   only(lockout.AllowAtMost(background, "a", 1)),
		"at most 2 of a lockout": only(lockout.AllowAtMost(background, "a", 2)),
		"reserve of a lockout":   only(lockout.Reserve(background, "a", 1, time.Second)),
		"reserve of the past":    only(rate.Reserve(background, "a", 1, -time.Second)),
		"all of nothing":         only(c.All(background)),
		"all of a lockout":       only(c.All(background, lockout.Part("a", 1))),
		"all of no limiter":      only(c.All(background, throttle.Part{})),
		"all of another client":  only(c.All(background, other.Rate("a", throttle.PerSecond(1)).Part("a", 1))),
		"one key twice":          only(c.All(background, rate.Part("a", 1), rate.Part("a", 1))), // sent
		"slot without a holder":  only(c.All(background, jobs.Part("a", ""))),
		"settled slot":           only(c.SettleAll(background, jobs.Part("a", "me"))),
	} {
		require.ErrorIs(t, err, throttle.ErrParams, name)
	}
	require.EqualValues(t, 1, s.Calls())
}

// The server's error replies have a kind. Those that are not gothrottle's mean that nobody decided.
func TestErrors_ofTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		must(c.Rate("other", throttle.PerSecond(1)).Allow(background, "a"))
		require.NoError(t, s.Process(background, redis.NewCmd(background, "GO.WINDOW", "rate:a", 1, 1)))
		_, err := c.Rate("rate", throttle.PerSecond(1)).Allow(background, "a")
		require.ErrorIs(t, err, throttle.ErrParams)
		_, err = c.Policy("none").Allow(background, "a")
		require.ErrorIs(t, err, throttle.ErrParams)
		for text, want := range map[string]error{
			"ERR unknown command 'GO.THROTTLE'": throttle.ErrNoModule, "LOADING Redis is loading": throttle.ErrUnavailable,
			"OOM command not allowed": throttle.ErrUnavailable, "READONLY You can't write": throttle.ErrUnavailable,
			"CROSSSLOT Keys in request": throttle.ErrParams, "NOAUTH Authentication required.": throttle.ErrUnavailable,
			"WRONGPASS invalid": throttle.ErrUnavailable, "NOPERM no": throttle.ErrUnavailable, "ERR upstream failure": throttle.ErrUnavailable,
			"ERR clause 3: count is not an integer": throttle.ErrParams,
		} {
			c, s := throttletest.New(t, throttle.Options{})
			for _, reply := range []error{serverError(text), fmt.Errorf("from a hook: %w", serverError(text))} {
				s.Fail(reply)
				_, err := c.Rate("b", throttle.PerSecond(1)).Allow(background, "")
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, text)
			}
		}
	})
}

// A reply about one key, such as NOPERM, stops no calls for other keys.
func TestErrors_ofOneKey(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{})
	s.Fail(serverError("NOPERM no"))
	for range 100 {
		_, err := c.Rate("b", throttle.PerSecond(1)).Allow(background, "")
		require.ErrorIs(t, err, throttle.ErrUnavailable)
	}
	require.EqualValues(t, 100, s.Calls())
}

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// The caller's choice is returned when the server is unavailable, and says so. A reply that isn't a decision is an error.
func TestFallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("no route to host")
		c, s := throttletest.New(t, throttle.Options{Logger: quiet}, throttle.FailOpen())
		open := c.Rate("open", throttle.PerHour(10))
		s.Fail(serverError("ERR unknown command 'GO.THROTTLE'"))
		r, err := open.Allow(background, "a")
		require.ErrorIs(t, err, throttle.ErrNoModule) // no outage
		require.False(t, r.Allowed)
		s.Fail(away)
		failing, of := throttletest.New(t, throttle.Options{Logger: quiet})
		of.Fail(away)
		r, err = failing.Rate("error", throttle.PerHour(10)).Allow(background, "a")
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		require.ErrorIs(t, err, away)
		require.False(t, r.Allowed)
		r = must(open.AllowN(background, "a", 3))
		require.ErrorIs(t, r.Cause, away)
		r.Cause = nil
		require.Equal(t, throttle.Result{Allowed: true, Limit: 10, Granted: 3, Source: throttle.FailedOpen}, r)
		closed := c.Rate("closed", throttle.PerHour(10), throttle.FailClosed())
		r = must(closed.Allow(background, "a"))
		require.False(t, r.Allowed)
		require.Equal(t, throttle.FailedClosed, r.Source)
		require.Equal(t, time.Second, r.RetryAfter)
		for _, err := range []error{only(open.Refund(background, "a", 1)), only(open.Settle(background, "a", 500)), only(open.Settle(background, "a", -1)),
			only(open.Peek(background, "a")), open.Reset(background, "a"), only(c.SettleAll(background, open.Part("a", 1)))} {
			require.ErrorIs(t, err, throttle.ErrUnavailable)
		}
	})
}

// Lease and All say the same as other verbs when the server is unavailable: the cause, what was granted, the limit.
func TestFallbacks_leaseAndAll(t *testing.T) {
	away := errors.New("no route to host")
	for name, fallback := range map[string]throttle.Option{"error": nil, "closed": throttle.FailClosed(), "open": throttle.FailOpen()} {
		c, s := throttletest.New(t, throttle.Options{Logger: quiet}, fallback)
		jobs, rate := c.Slots("b", 3, time.Minute), c.Rate("a", throttle.PerHour(10))
		s.Fail(away)
		lease, err := jobs.Lease(background, "x")
		all, allErr := c.All(background, rate.Part("x", 2), jobs.Part("x", "me"), rate.Part("y", -1))
		require.ErrorIs(t, all.Cause, away)
		if name == "open" {
			require.NoError(t, errors.Join(err, allErr))
			require.Equal(t, throttle.FailedOpen, lease.Result.Source)
			require.ErrorIs(t, lease.Close(), away) // the slot may have been taken
			require.Equal(t, all.Each[0], all.Result)
			require.Equal(t, []int64{2, 1, 0, 10}, []int64{all.Granted, all.Each[1].Granted, all.Each[2].Granted, all.Limit})
			continue
		}
		require.Nil(t, lease)
		require.NoError(t, lease.Close())
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		require.Equal(t, name == "closed", errors.As(err, new(*throttle.DeniedError)))
		require.Equal(t, name == "closed", allErr == nil)
		require.False(t, all.Allowed)
	}
}

package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// bubble runs a test with a client of a server in memory. Time passes only while all goroutines wait.
func bubble(t *testing.T, test func(*testing.T, *throttle.Client, *throttletest.Server), defaults ...throttle.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, append(defaults, throttle.Logger(quiet))...)
		test(t, c, s)
	})
}

// useVerbs calls the verbs of a rate.
func useVerbs(t *testing.T, c *throttle.Client) {
	t.Helper()
	rate := c.Rate("verbs", throttle.PerMinute(3).Burst(5))
	for i, step := range []struct {
		verb               func(context.Context, string, int64) (throttle.Result, error)
		n                  int64
		allowed            bool
		remaining, granted int64
	}{
		{rate.AllowN, 2, true, 3, 2}, {rate.AllowN, 4, false, 3, 0}, {rate.AllowAtMost, 9, true, 0, 3}, {rate.AllowAtMost, 1, false, 0, 0},
		{rate.Refund, 1, true, 1, -1}, {rate.Settle, 9, true, 0, 9}, {rate.Settle, -9, true, 1, -9}, {rate.Raise, 3, true, 1, 0},
		{rate.Refund, 9, true, 5, -4}, {rate.Raise, 7, true, 0, 7},
	} {
		r := must(step.verb(background, "", step.n))
		require.Equal(t, []any{"server", int64(5), step.allowed, step.remaining, step.granted}, []any{r.Source, r.Limit, r.Allowed, r.Remaining, r.Granted}, i)
	}
	require.Equal(t, throttle.Never, must(rate.AllowN(background, "", 6)).RetryAfter)
}

// Limiters of one name may have other limits and options, which count under the same keys. Those of another kind are refused, at
// once: by the log, by Check, and by every verb.
func TestLimiters_ofOneName(t *testing.T) {
	var log strings.Builder
	c, s := throttletest.New(t, throttle.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	first := c.Rate("a", throttle.PerHour(1))
	require.NoError(t, c.Check(background))
	calls := s.Calls()
	must(first.Allow(background, "x"))
	r := must(c.Rate("a", throttle.PerHour(1)).Allow(background, "x")) // the same
	require.False(t, r.Allowed)
	require.True(t, must(c.Rate("a", throttle.PerHour(2), throttle.DenyCache(true)).Allow(background, "x")).Allowed)
	require.False(t, must(first.Allow(background, "x")).Allowed)
	require.Empty(t, log.String())
	calls += 4
	for name, other := range map[string]allower{
		"kind": c.Window("a", 1, time.Hour), "a limit of another kind": c.Rate("d", throttle.Units(1)),
		"a colon": c.Policy("a:b"), "no name": c.Policy(""), "a long name": c.Policy(strings.Repeat("a", 65)), "braces": c.Policy("{a}"),
		"a bad option": c.Rate("b", throttle.PerHour(1), throttle.Timeout(0)),
	} {
		_, err := other.Allow(background, "x")
		require.ErrorIs(t, err, throttle.ErrParams, name)
	}
	require.Equal(t, calls, s.Calls())
	require.ErrorIs(t, c.Check(background), throttle.ErrParams)
	require.Equal(t, 7, strings.Count(log.String(), "ERROR"))
	again, _ := throttletest.New(t, throttle.Logger(quiet))
	again.Rate("a", throttle.PerHour(0))
	require.ErrorIs(t, again.Check(background), throttle.ErrParams)
	again.Rate("a", throttle.PerHour(1)) // as after a correction of the configuration
	require.NoError(t, again.Check(background))
	colon, _ := throttletest.New(t, throttle.KeyPrefix("p:"), throttle.Logger(quiet))
	require.ErrorIs(t, only(colon.Policy("api").Info()), throttle.ErrParams)
}

// The log has a record for each limiter and cause, at most once a minute, whether the server or the client refuses. A missing
// module is one cause for all.
func TestLog_refusals(t *testing.T) {
	var log strings.Builder
	c, s := throttletest.New(t, throttle.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	plans, names := c.Rate("plans", throttle.Unlimited()), []string{"a", "b"}
	step := func(reply error, want int) {
		t.Helper()
		log.Reset()
		s.Fail(reply)
		for i := range 20 {
			_, _ = c.Rate(names[i%2], throttle.PerHour(1)).Allow(background, "x")
			_, _ = plans.With(throttle.PerHour(int64(i%2))).Allow(background, "x")
		}
		require.Equal(t, want, strings.Count(log.String(), "ERROR"), log.String())
	}
	step(nil, 1) // PerHour(0)
	step(serverError("WRONGTYPE"), 3)
	step(serverError("CROSSSLOT"), 3)
	step(serverError("WRONGTYPE"), 0)
	step(serverError("ERR unknown command"), 1)
	s.Advance(time.Minute)
	step(serverError("WRONGTYPE"), 4)
	log.Reset()
	for i := range 1000 {
		c.Rate(fmt.Sprint("@", i%2), throttle.PerHour(1))
	}
	require.Equal(t, 2, strings.Count(log.String(), "ERROR"))
	for i := range 1000 {
		c.Rate(fmt.Sprint("@", i), throttle.PerHour(1))
	}
	require.Equal(t, 100, strings.Count(log.String(), "ERROR"))
	s.Fail(io.EOF)
	for range 2 {
		_, _ = c.Rate("a", throttle.PerHour(1)).Settle(background, "x", 1)
		_, _ = c.Rate("giving", throttle.PerHour(1)).Settle(background, "x", -1)
		_, _ = c.SettleAll(background, c.Rate("b", throttle.PerHour(1)).Part("x", 1))
	}
	require.Equal(t, 2, strings.Count(log.String(), "a settlement failed"))
}

// Bounds are rounded up, and end at the longest time.
func TestBounds(t *testing.T) {
	c, _ := throttletest.New(t)
	for limit, want := range map[throttle.Limit]time.Duration{
		throttle.PerSecond(3).Burst(1): 333_333_334, throttle.PerMinute(30).Burst(15): 30 * time.Second,
		throttle.Per(2, time.Hour).Burst(2 * 100 * 365 * 24): 100 * 365 * 24 * time.Hour,
	} {
		require.Equal(t, want, must(c.Rate("a", throttle.PerSecond(1)).With(limit).Info()).Span)
	}
	require.Equal(t, time.Hour, must(c.Window("b", 5, time.Hour).Info()).Span)
}

// Reset lifts a lockout, and this process forgets its denials and its budget.
func TestReset(t *testing.T) {
	c, s := throttletest.New(t, throttle.DenyCache(true), throttle.Budget(10, time.Second))
	for _, limiter := range []interface {
		allower
		Reset(context.Context, string) error
	}{c.Rate("a", throttle.PerHour(1).Lockout(time.Hour)), c.Quota("b", 1, time.Hour), c.Rate("c", throttle.PerHour(1))} {
		for range 3 {
			for i, want := range []bool{true, false, false} {
				r := must(limiter.Allow(background, "bob"))
				require.Equal(t, want, r.Allowed, i)
			}
			s.Fail(io.EOF)
			require.Error(t, limiter.Reset(background, "bob")) // which may have deleted the key
			s.Fail(nil)
			require.Equal(t, "server", must(limiter.Allow(background, "bob")).Source)
			require.NoError(t, limiter.Reset(background, "bob"))
		}
	}
	require.Zero(t, s.Keys())
}

// All takes at most 32 parts, and shares need a part before them that is limited. The part with the longest wait decides.
func TestAll(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		many := make([]throttle.Part, 33)
		for i := range many {
			many[i] = c.Rate("many", throttle.PerHour(1)).Part(fmt.Sprint(i), 1)
		}
		must(c.All(background, many[1:]...))
		require.ErrorIs(t, only(c.All(background, many...)), throttle.ErrParams)
		rate, window := c.Rate("rate", throttle.PerHour(50)), c.Window("tenant", 100, time.Hour)
		unlimited, suspended := rate.With(throttle.Unlimited()), rate.With(throttle.Suspended())
		for _, weight := range []int{-1, 0, 1001} {
			require.ErrorIs(t, only(c.All(background, rate.Part("b", 0), window.Part("b", 1).Share(weight))), throttle.ErrParams)
		}
		require.ErrorIs(t, only(c.All(background, window.Part("b", 1).Share(1))), throttle.ErrParams)
		denied := must(c.All(background, rate.Part("b", 1), window.Part("b", 51).Share(1)))
		require.False(t, denied.Allowed)
		require.Equal(t, 1, denied.Decider)
		require.Equal(t, denied.Each[1], denied.Result)
		require.Zero(t, denied.Each[0].Granted)
		require.True(t, must(c.All(background, unlimited.Part("b", 0), window.Part("b", 51).Share(1))).Allowed)
		require.True(t, must(c.All(background, rate.Part("c", 1), unlimited.Part("c", 0), window.Part("c", 51).Share(1))).Allowed)
		require.True(t, must(c.All(background, suspended.Part("b", 0), unlimited.Part("b", 1))).Allowed)
		login := c.Rate("login", throttle.PerHour(50).Lockout(time.Hour))
		settled := must(c.SettleAll(background, window.Part("b", -1), login.Part("b", 60)))
		require.Equal(t, []int64{-1, 60}, []int64{settled.Each[0].Granted, settled.Each[1].Granted})
	})
}

// All over a ring refuses keys of several hash tags: the shards of the later keys would not be asked.
func TestAll_ringNeedsOneHashTag(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour})
	t.Cleanup(func() { _ = ring.Close() })
	c := newReal(t, ring, throttle.Logger(quiet))
	a, b := c.Rate("a", throttle.PerSecond(9)), c.Rate("b", throttle.PerSecond(9))
	for second, want := range map[string]error{"1": throttle.ErrParams, "{2}": throttle.ErrParams, "{1}x": throttle.ErrUnavailable} {
		_, err := c.All(background, a.Part("{1}", 1), b.Part(second, 1))
		require.ErrorIs(t, err, want, second)
	}
}

// A call that makes no sense is an ErrParams. Few are sent: the server refuses them.
func TestErrParams(t *testing.T) {
	c, s := throttletest.New(t, throttle.Logger(quiet))
	other, _ := throttletest.New(t)
	rate, lockout := c.Rate("rate", throttle.PerSecond(1)), c.Rate("lockout", throttle.PerSecond(1).Lockout(time.Second))
	jobs := c.Slots("jobs", 1, time.Second)
	for name, err := range map[string]error{
		"zero limit":             only(c.Rate("a", throttle.Limit{}).Info()),
		"rate 0":                 only(c.Rate("b", throttle.PerSecond(0).Burst(1)).Info()),
		"half a millisecond":     only(c.Rate("c", throttle.Per(1, 500*time.Microsecond)).Info()),
		"part of a millisecond":  only(c.Window("d", 1, 1500*time.Microsecond).Info()),
		"lockout 0":              only(c.Rate("e", throttle.PerSecond(1).Lockout(0)).Info()),
		"part of a lockout":      only(c.Rate("f", throttle.PerSecond(1).Lockout(1500*time.Microsecond)).Info()),
		"a burst too long":       only(c.Rate("g", throttle.Per(2, time.Hour).Burst(2*100*365*24+1)).Info()),
		"burst 0":                only(c.Rate("h", throttle.PerSecond(1).Burst(0)).Info()),
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
		"all of no limiter":      only(c.All(background, throttle.Part{})),
		"all of another client":  only(c.All(background, other.Rate("a", throttle.PerSecond(1)).Part("a", 1))),
		"one key twice":          only(c.All(background, rate.Part("a", 1), rate.Part("a", 1))), // sent
		"slot without a holder":  only(c.All(background, jobs.Part("a", ""))),
		"settled slot":           only(c.SettleAll(background, jobs.Part("a", "me"))),
	} {
		require.ErrorIs(t, err, throttle.ErrParams, name)
	}
	require.ErrorContains(t, only(rate.Refund(background, "a", -2)), " -2 units")
	require.ErrorContains(t, only(lockout.AllowAtMost(background, "a", 1)), "GO.THROTTLE 0 1 1000 LOCKOUT 1000")
	require.EqualValues(t, 1, s.Calls())
}

// The server's error replies have a kind. Those that are not gothrottle's mean that nobody decided. A reply about one key,
// such as NOPERM, stops no calls for other keys. An error that only a change of the set-up can end is in the log once a minute.
func TestErrors_ofTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]error{
			"ERR unknown command 'GO.THROTTLE'": throttle.ErrNoModule, "LOADING Redis is loading": throttle.ErrUnavailable,
			"OOM command not allowed": throttle.ErrUnavailable, "READONLY You can't write": throttle.ErrUnavailable,
			"CROSSSLOT Keys in request": throttle.ErrParams, "NOAUTH Authentication required.": throttle.ErrUnavailable,
			"WRONGPASS invalid": throttle.ErrUnavailable, "ERR max number of clients reached": throttle.ErrUnavailable, "NOPERM no": throttle.ErrUnavailable, "upstream failure": throttle.ErrUnavailable,
			"ERR clause 3: count is not an integer": throttle.ErrParams, "WRONGTYPE Operation against": throttle.ErrParams,
			"ERR no policy for the key": throttle.ErrParams,
		} {
			var log strings.Builder
			c, s := throttletest.New(t, throttle.Logger(slog.New(slog.NewTextHandler(&log, nil))))
			for i := range 20 {
				reply := error(serverError(text))
				if i == 0 {
					reply = fmt.Errorf("from a hook: %w", reply)
				}
				s.Fail(reply)
				err := only(hourly(c).Allow(background, ""))
				require.ErrorIs(t, err, want)
				if i < 2 {
					require.ErrorContains(t, err, text)
				}
			}
			stops := want == throttle.ErrUnavailable && text != "NOPERM no" && text != "upstream failure"
			require.Equal(t, stops, s.Calls() < 20, text)
			s.Advance(time.Minute)
			require.ErrorIs(t, only(hourly(c).Allow(background, "")), want)
			records := map[bool]int{want != throttle.ErrUnavailable || text == "NOPERM no": 2}[true]
			require.Equal(t, records, strings.Count(log.String(), "ERROR"), log.String())
			require.Equal(t, records, strings.Count(log.String(), advice[text[:6]]), log.String())
			require.ErrorIs(t, c.Check(background), want)
		}
	})
}

// advice is a part of what the log says about errors that begin like this.
var advice = map[string]string{"ERR un": "load gothrottle", "CROSSS": "one hash tag", "ERR cl": "correct the limit", "WRONGT": "another KeyPrefix",
	"NOPERM": "permit the command", "LOADIN": "ERROR", "OOM co": "ERROR", "READON": "ERROR", "NOAUTH": "ERROR", "WRONGP": "ERROR", "ERR ma": "ERROR", "upstre": "ERROR",
	"ERR no": "add the policy"}

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// Without a server Lease and All say the same as other verbs: the cause, what was granted, the limit. Reset has no fallback. One
// name may have several.
func TestFallbacks(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		rate, jobs, closed := c.Rate("a", throttle.PerHour(10)), c.Slots("b", 3, time.Minute), c.Rate("a", throttle.PerHour(10), throttle.FailClosed())
		away := errors.New("no route to host")
		s.Fail(away)
		require.ErrorIs(t, must(rate.Allow(background, "a")).Cause, away)
		lease := must(jobs.Lease(background, "x"))
		require.Equal(t, throttle.Result{Allowed: true, Limit: 3, Granted: 1, Source: "failed-open", Cause: lease.Result.Cause}, lease.Result)
		require.ErrorIs(t, lease.Close(), away) // the slot may have been taken
		all := must(c.All(background, rate.Part("x", 2), jobs.Part("x", "me"), closed.Part("y", -1)))
		require.ErrorIs(t, all.Cause, away)
		require.Equal(t, all.Each[0], all.Result)
		require.Equal(t, []int64{2, 1, 0, 10}, []int64{all.Granted, all.Each[1].Granted, all.Each[2].Granted, all.Limit})
		for _, err := range []error{rate.Reset(background, "a"), only(c.SettleAll(background, rate.Part("a", 1)))} {
			require.ErrorIs(t, err, throttle.ErrUnavailable)
		}
		require.NoError(t, rate.Wait(background, "w"))
		require.ErrorIs(t, closed.Wait(background, "w"), throttle.ErrUnavailable)
	}, throttle.FailOpen())
}

// allower is what most programs need of a limiter.
type allower interface {
	Allow(ctx context.Context, key string) (throttle.Result, error)
}

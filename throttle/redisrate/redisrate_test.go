package redis_rate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	redis_rate "gothrottle/throttle/redisrate"
	"gothrottle/throttle/throttletest"
)

var ctx = context.Background()

// result is what a test looks at, times in ms; RetryAfter -1 stays -1.
type result struct {
	allowed, remaining int
	retry, reset       time.Duration
}

func wantResult(t *testing.T, want result) func(*redis_rate.Result, error) {
	return func(r *redis_rate.Result, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, result{r.Allowed, r.Remaining, r.RetryAfter, r.ResetAfter})
	}
}

const ms = time.Millisecond

// Results are those of redis_rate: times, what remains, and -1 for what was allowed.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		l := redis_rate.NewLimiter(&cmdable{s: s})
		limit := redis_rate.PerSecond(10)
		wantResult(t, result{0, 10, -1, 0})(l.AllowN(ctx, "a", limit, 0))
		wantResult(t, result{1, 9, -1, 100 * ms})(l.Allow(ctx, "a", limit))
		wantResult(t, result{2, 7, -1, 300 * ms})(l.AllowN(ctx, "a", limit, 2))
		wantResult(t, result{0, 0, 100 * ms, 300 * ms})(l.AllowN(ctx, "a", limit, 8))
		wantResult(t, result{0, 0, 99300 * ms, 300 * ms})(l.AllowN(ctx, "a", limit, 1000))
		wantResult(t, result{7, 0, -1, time.Second})(l.AllowAtMost(ctx, "a", limit, 9))
		wantResult(t, result{0, 0, 100 * ms, time.Second})(l.AllowAtMost(ctx, "a", limit, 9))
		wantResult(t, result{0, 0, 100 * ms, time.Second})(l.AllowAtMost(ctx, "a", limit, 0))
		wantResult(t, result{0, 0, -1, time.Second})(l.AllowN(ctx, "a", limit, 0))
		lower := redis_rate.Limit{Rate: 10, Burst: 4, Period: time.Second} // less than what is in use
		wantResult(t, result{0, 0, 600 * ms, time.Second})(l.AllowN(ctx, "a", lower, 0))
		wantResult(t, result{0, 0, 700 * ms, time.Second})(l.AllowAtMost(ctx, "a", lower, 0))
		wantResult(t, result{0, 0, 700 * ms, time.Second})(l.AllowAtMost(ctx, "a", lower, 2))
		wantResult(t, result{0, 0, 800 * ms, time.Second})(l.AllowN(ctx, "a", lower, 2))
		require.NoError(t, l.Reset(ctx, "a"))
		wantResult(t, result{1, 9, -1, 100 * ms})(l.Allow(ctx, "a", limit))
		require.True(t, s.Delete("redisrate:a"))
	})
}

// Limits may have any period, and a burst of 0 allows nothing.
func TestLimiter_oddLimits(t *testing.T) {
	l := redis_rate.NewLimiter(&cmdable{s: throttletest.NewServer()})
	odd := redis_rate.Limit{Rate: 3, Burst: 6, Period: 1500 * time.Microsecond}
	for range 6 {
		r, err := l.Allow(ctx, "odd", odd)
		require.NoError(t, err)
		require.Equal(t, 1, r.Allowed)
		require.LessOrEqual(t, r.ResetAfter, 3*ms)
	}
	none := redis_rate.Limit{Rate: 1, Period: time.Minute}
	wantResult(t, result{0, 0, time.Minute, 0})(l.Allow(ctx, "none", none))
	wantResult(t, result{0, 0, 3 * time.Minute, 0})(l.AllowN(ctx, "none", none, 3))
	wantResult(t, result{0, 0, time.Minute, 0})(l.AllowAtMost(ctx, "none", none, 3))
	wantResult(t, result{0, 0, -1, 0})(l.AllowN(ctx, "none", none, 0))
	for _, wrong := range []redis_rate.Limit{{}, {Rate: 1, Burst: 1}, {Rate: 1, Burst: 1, Period: -time.Second}, {Burst: 1, Period: time.Second},
		{Rate: 1, Burst: 1, Period: 24 * time.Hour / 7}} { // its multiple in whole milliseconds is too long
		_, err := l.Allow(ctx, "wrong", wrong)
		require.Error(t, err, wrong)
	}
	for _, limit := range []redis_rate.Limit{redis_rate.PerSecond(1), none} {
		_, err := l.AllowN(ctx, "a", limit, -1)
		require.Error(t, err)
	}
}

func TestLimit(t *testing.T) {
	require.Equal(t, "10 req/s (burst 10)", redis_rate.PerSecond(10).String())
	require.Equal(t, "10 req/m (burst 10)", redis_rate.PerMinute(10).String())
	require.Equal(t, "10 req/h (burst 10)", redis_rate.PerHour(10).String())
	require.Equal(t, "1 req/1.5s (burst 2)", redis_rate.Limit{Rate: 1, Burst: 2, Period: 1500 * time.Millisecond}.String())
	require.True(t, redis_rate.Limit{}.IsZero())
	require.False(t, redis_rate.PerHour(1).IsZero())
}

// cmdable is a server in memory as a client of go-redis.
type cmdable struct {
	redis.Cmdable
	s    *throttletest.Server
	last string // the name of the last command
}

func (c *cmdable) Process(ctx context.Context, cmd redis.Cmder) error {
	c.last = cmd.Name()
	return c.s.Process(ctx, cmd)
}

// Clients of go-redis with default options are taken, as redis_rate takes them. Errors are returned. The script is called if
// it is asked for.
func TestNewLimiter(t *testing.T) {
	single := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, MaxRetries: -1})
	for _, rdb := range []redis.Cmdable{single, ring, struct{ redis.Cmdable }{single}} {
		_, err := redis_rate.NewLimiter(rdb).Allow(ctx, "a", redis_rate.PerSecond(1))
		require.ErrorContains(t, err, "127.0.0.1:1")
	}
	require.NoError(t, errors.Join(single.Close(), ring.Close()))
	rdb := &cmdable{s: throttletest.NewServer()}
	wantResult(t, result{1, 0, -1, time.Second})(redis_rate.NewScriptLimiter(rdb).Allow(ctx, "a", redis_rate.PerSecond(1)))
	require.Equal(t, "evalsha", rdb.last)
	rdb.s.Fail(io.EOF)
	_, err := redis_rate.NewLimiter(rdb).Allow(ctx, "a", redis_rate.PerSecond(1))
	require.ErrorIs(t, err, io.EOF)
}

func ExampleNewLimiter() {
	var rdb redis.Cmdable = &cmdable{s: throttletest.NewServer()} // in a program: a client of go-redis
	limiter := redis_rate.NewLimiter(rdb)
	for range 2 {
		result, err := limiter.Allow(ctx, "project:123", redis_rate.PerSecond(1))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Allowed, result.Remaining)
	}
	// Output:
	// 1 0
	// 0 0
}

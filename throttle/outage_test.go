package throttle_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// goRedis returns a client that honours contexts.
func goRedis(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func hourly(c *throttle.Client) throttle.Rate { return c.Rate("a", throttle.PerHour(1)) }

// A command whose reply does not come is sent once, even if go-redis gives up before the time limit, when it would send other
// commands again. Otherwise the call ends at the time limit.
func TestOutage_repliesAreSwallowed(t *testing.T) {
	for _, verb := range []func(*throttle.Client) error{
		func(c *throttle.Client) error { return only(hourly(c).Allow(background, "")) },
		func(c *throttle.Client) error { return only(c.All(background, hourly(c).Part("", 1))) },
	} {
		for _, readTimeout := range []time.Duration{10 * time.Millisecond, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				s, got := far(time.Millisecond), 0
				rdb := clientOf(t, s, func(o *redis.Options) { o.ReadTimeout = readTimeout })
				require.NoError(t, rdb.Ping(background).Err())
				s.Change(func(f *resp.Faults) {
					f.Mute = true
					f.Reply = func([]string) (any, bool) { got++; return nil, true }
				})
				began := time.Now()
				err := verb(newReal(t, rdb))
				require.ErrorIs(t, err, throttle.ErrUnavailable)
				if readTimeout == time.Hour {
					require.ErrorContains(t, err, "the Timeout of 50ms")
					require.Equal(t, 50*time.Millisecond, time.Since(began))
				}
				require.Equal(t, 1, got)
			})
		}
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// Callers in a hurry do not make a server look dead, and get their context's error whatever the fallback.
func TestCircuit_callersInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, 10*time.Millisecond, throttle.Coalesce(false), throttle.FailOpen())
		for range 80 { // longer than the time limit of one
			ctx, cancel := context.WithTimeout(background, time.Millisecond)
			require.ErrorIs(t, only(hourly(c).Allow(ctx, "")), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, throttle.FromServer, must(hourly(c).Peek(background, "")).Source)
	})
}

// New refuses clients of go-redis that ignore contexts, and options that make no sense.
func TestNew_refuses(t *testing.T) {
	for row, want := range map[struct {
		enabled     bool
		read, write time.Duration
	}]error{
		{true, 0, 0}: nil, {true, -1, -1}: nil, {false, 0, 0}: throttle.ErrParams, {true, -2, 0}: throttle.ErrParams, {true, 0, -2}: throttle.ErrParams,
	} {
		o := redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}
		ring := &redis.RingOptions{Addrs: map[string]string{"a": o.Addrs[0]}, ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}
		for _, rdb := range []redis.UniversalClient{redis.NewClient(o.Simple()), redis.NewFailoverClient(o.Failover()), redis.NewClusterClient(o.Cluster()), redis.NewRing(ring)} {
			require.ErrorIs(t, only(throttle.New(rdb)), want, "%T %+v", rdb, row)
			require.NoError(t, only(throttle.New(rdb, throttle.LooseTimeout())))
			require.NoError(t, rdb.Close())
		}
	}
	for _, o := range []throttle.Option{throttle.Timeout(-1), throttle.Budget(-1, time.Second), throttle.Budget(0, 1), throttle.Budget(1, 0)} {
		require.ErrorIs(t, only(throttle.New(throttletest.NewServer(), o)), throttle.ErrParams)
	}
	require.ErrorIs(t, only(throttle.New(nil)), throttle.ErrParams)
}

// After the tests no goroutine of the package runs: what a client has started ends with it.
func TestMain(m *testing.M) {
	code := m.Run()
	left := goroutines()
	for tries := 0; left != "" && tries < 500; left = goroutines() {
		tries++
		time.Sleep(10 * time.Millisecond)
	}
	if code == 0 && left != "" {
		fmt.Println("a goroutine is left:\n" + left)
		code = 1
	}
	os.Exit(code)
}

// goroutines returns the stack of a goroutine that package throttle has started, or that waits in it.
func goroutines() string {
	text := make([]byte, 1<<22)
	for _, stack := range strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(stack, "/throttle.") || strings.Contains(stack, "/wire.") {
			return stack
		}
	}
	return ""
}

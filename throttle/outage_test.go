package throttle_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// verbsThatSend are calls that send one command each.
var verbsThatSend = map[string]func(*throttle.Client, context.Context) error{
	"Allow":  func(c *throttle.Client, ctx context.Context) error { return only(hourly(c).Allow(ctx, "")) },
	"AllowN": func(c *throttle.Client, ctx context.Context) error { return only(hourly(c).AllowN(ctx, "", 2)) },
	"Policy": func(c *throttle.Client, ctx context.Context) error { return only(c.Policy("p").Allow(ctx, "b")) },
	"Refund": func(c *throttle.Client, ctx context.Context) error { return only(hourly(c).Refund(ctx, "", 1)) },
	"Reserve": func(c *throttle.Client, ctx context.Context) error {
		return only(hourly(c).Reserve(ctx, "", 1, time.Second))
	},
	"All": func(c *throttle.Client, ctx context.Context) error { return only(c.All(ctx, hourly(c).Part("", 1))) },
	"Lease": func(c *throttle.Client, ctx context.Context) error {
		return only(c.Slots("s", 1, time.Second).Lease(ctx, ""))
	},
}

func hourly(c *throttle.Client) throttle.Rate { return c.Rate("a", throttle.PerHour(1)) }

// A command whose reply does not come is sent once, and the call ends at the time limit. It is sent once even if go-redis
// gives up before the time limit, when it would send other commands again.
func TestOutage_repliesAreSwallowed(t *testing.T) {
	for name, verb := range verbsThatSend {
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
				err := verb(newReal(t, rdb), background)
				require.ErrorIs(t, err, throttle.ErrUnavailable)
				if readTimeout == time.Hour {
					require.ErrorContains(t, err, "the Timeout of 50ms")
					require.Equal(t, 50*time.Millisecond, time.Since(began), name)
				}
				require.Equal(t, 1, got, name)
			})
		}
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// A call whose context has ended is not sent, and admits nobody, whatever the fallback.
func TestContext_endedBefore(t *testing.T) {
	c, s := throttletest.New(t, throttle.FailOpen())
	cancelled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithDeadline(background, time.Unix(1, 0))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, late} {
		require.ErrorIs(t, hourly(c).Wait(ctx, ""), ctx.Err())
		for name, verb := range verbsThatSend {
			err := verb(c, ctx)
			require.ErrorIs(t, err, ctx.Err(), name)
			require.NotErrorIs(t, err, throttle.ErrUnavailable, name)
		}
	}
	require.Zero(t, s.Calls())
}

// Callers in a hurry do not make a server look dead, get their context's error whatever the fallback, and cost no
// connection: their commands go on.
func TestCircuit_callersInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := []throttle.Option{throttle.Logger(quiet), throttle.Coalesce(false), throttle.FailOpen()}
		c, s := newSlow(t, 10*time.Millisecond, o...)
		for name, verb := range verbsThatSend {
			for range 10 {
				ctx, cancel := context.WithTimeout(background, time.Millisecond)
				require.ErrorIs(t, verb(c, ctx), context.DeadlineExceeded, name)
				cancel()
			}
		}
		r := must(hourly(c).Peek(background, ""))
		require.Equal(t, throttle.FromServer, r.Source)
		require.Less(t, s.Calls(), int64(40)) // callers that go before their turn are not sent
	})
}

// New refuses clients of go-redis that ignore contexts.
func TestNew_refusesClientsThatIgnoreContexts(t *testing.T) {
	addrs := []string{"127.0.0.1:1"}
	for _, row := range []struct {
		enabled     bool
		read, write time.Duration
		want        error
	}{
		{true, 0, 0, nil}, {true, -1, -1, nil}, {false, 0, 0, throttle.ErrParams}, {true, -2, 0, throttle.ErrParams}, {true, 0, -2, throttle.ErrParams},
	} {
		for _, rdb := range []redis.UniversalClient{
			redis.NewClient(&redis.Options{ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}),
			redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: addrs, ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}),
			redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addrs[0]}, ContextTimeoutEnabled: row.enabled, ReadTimeout: row.read, WriteTimeout: row.write}),
		} {
			_, err := throttle.New(rdb)
			require.ErrorIs(t, err, row.want, "%T %+v", rdb, row)
			require.NoError(t, only(throttle.New(rdb, throttle.LooseTimeout())))
			require.NoError(t, rdb.Close())
		}
	}
	for name, o := range map[string]throttle.Option{
		"negative": throttle.Timeout(-1), "budget": throttle.Budget(-1, time.Second), "hold without units": throttle.Budget(0, 1),
		"units without hold": throttle.Budget(1, 0),
	} {
		_, err := throttle.New(throttletest.NewServer(), o)
		require.ErrorIs(t, err, throttle.ErrParams, name)
	}
	_, err := throttle.New(nil)
	require.ErrorIs(t, err, throttle.ErrParams)
}

// Close ends calls that wait for their turn, or for the call before theirs, however many, with ErrClosed, and reports no
// outage.
func TestClose_callsInTheQueue(t *testing.T) {
	for underWay, coalesce := range map[int64]bool{4: false, 1: true} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			o := throttle.Logger(slog.New(slog.NewTextHandler(&log, nil)))
			c := must(throttle.New(slow(throttletest.NewServer(), 10*time.Millisecond), o, throttle.Coalesce(coalesce), throttle.FailOpen()))
			var closed atomic.Int64
			var wg sync.WaitGroup
			for range 4000 {
				wg.Go(func() {
					if _, err := c.Rate("a", throttle.PerHour(1)).Allow(background, ""); err != nil {
						require.ErrorIs(t, err, throttle.ErrClosed)
						require.NotErrorIs(t, err, throttle.ErrUnavailable)
						closed.Add(1)
					}
				})
			}
			synctest.Wait()
			began := time.Now()
			require.NoError(t, c.Close())
			wg.Wait()
			require.Equal(t, 10*time.Millisecond, time.Since(began))
			require.EqualValues(t, 4000-underWay, closed.Load())
			require.Empty(t, log.String())
		})
	}
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

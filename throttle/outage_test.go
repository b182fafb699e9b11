package throttle_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
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
		c, _ := newSlow(t, 10*time.Millisecond, throttle.FailOpen())
		for range 80 { // longer than the time limit of one
			ctx, cancel := context.WithTimeout(background, time.Millisecond)
			require.ErrorIs(t, only(hourly(c).AllowN(ctx, "", 2)), context.DeadlineExceeded) // nothing that others wait for
			cancel()
		}
		require.Equal(t, throttle.FromServer, must(hourly(c).Peek(background, "")).Source)
	})
}

// A client of go-redis that ignores contexts ends calls in time, too, alone and in a cluster, and Close waits for what it has left
// behind.
func TestNew_boundsCalls(t *testing.T) {
	for row := range 4 {
		synctest.Test(t, func(t *testing.T) {
			n := resp.NewNetwork(resp.Options{})
			o := redis.UniversalOptions{Addrs: []string{"10.0.0.1:6379"}, Dialer: n.Dial, ReadTimeout: []time.Duration{0, -2}[row/2],
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
			var server *resp.Server
			var rdb redis.UniversalClient
			if row%2 == 0 {
				server, rdb = n.Add(o.Addrs[0]), redis.NewClient(o.Simple())
			} else {
				server, rdb = n.NewCluster(o.Addrs[0]).Masters()[0], redis.NewClusterClient(o.Cluster())
			}
			c := must(throttle.New(rdb, throttle.Logger(quiet)))
			require.Equal(t, throttle.FromServer, must(hourly(c).Allow(background, "a")).Source)
			server.Change(func(f *resp.Faults) { f.Silent = true })
			for range 8 {
				began := time.Now()
				require.ErrorIs(t, only(hourly(c).Allow(background, "a")), throttle.ErrUnavailable)
				require.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
			}
			n.Close()
			_ = c.Close()
			require.NoError(t, rdb.Close())
			time.Sleep(10 * time.Second)
		})
	}
}

// Open takes the addresses of go-redis, and says nothing of a password if one is wrong.
func TestOpen(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	s, n := l.Addr().String(), resp.NewNetwork(resp.Options{})
	defer n.Close()
	server := n.Add(s)
	go func() { _ = server.Serve(l) }()
	for _, address := range []string{"redis://:secret@127.0.0.1:1/x", "http://secret", "redis://h?addr=h2&nonsense=secret", "redis://h?master_name=a&nonsense=secret", ":secret%"} {
		_, err := throttle.Open(address)
		require.ErrorIs(t, err, throttle.ErrParams, address)
		require.NotContains(t, err.Error(), "secret")
	}
	require.ErrorIs(t, only(throttle.Open("redis://"+s, throttle.Timeout(-1))), throttle.ErrParams)
	c := must(throttle.Open("redis://" + s))
	require.True(t, must(hourly(c).Allow(background, "a")).Allowed)
	require.NoError(t, c.Close())
	for _, address := range []string{"rediss://h:1", "redis://h:1?addr=h:2", "redis://h:1?master_name=m&addr=h:2", "unix:///run/x.sock"} {
		require.NoError(t, must(throttle.Open(address)).Close(), address)
	}
	for _, address := range []string{"redis://127.0.0.1:1", "redis://127.0.0.1:1?addr=127.0.0.1:2", "redis://127.0.0.1:1?master_name=m&addr=127.0.0.1:2"} {
		c := must(throttle.Open(address, throttle.Logger(quiet), throttle.Timeout(patient)))
		require.ErrorContains(t, only(hourly(c).Allow(background, "a")), "refused", address)
		require.NoError(t, c.Close())
	}
}

// Check says what to look for if only one side speaks TLS: a port with it closes the connection, and one without it is silent.
func TestCheck_tls(t *testing.T) {
	closes, silent := must(net.Listen("tcp", "127.0.0.1:0")), must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	defer closes.Close()
	go func() {
		for conn, err := closes.Accept(); err == nil; conn, err = closes.Accept() {
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		}
	}()
	for _, row := range []struct {
		address, want string
		within        time.Duration
	}{{"redis://" + closes.Addr().String(), "wants TLS", patient}, {"rediss://" + silent.Addr().String(), "has no TLS", 50 * time.Millisecond}} {
		c := must(throttle.Open(row.address, throttle.Logger(quiet)))
		ctx, cancel := context.WithTimeout(background, row.within)
		require.ErrorContains(t, c.Check(ctx), row.want)
		cancel()
		require.NoError(t, c.Close())
	}
}

// New refuses options that make no sense.
func TestNew_refuses(t *testing.T) {
	for _, o := range []throttle.Option{throttle.Timeout(-1), throttle.Budget(-1, time.Second), throttle.Budget(0, 1), throttle.Budget(1, 0)} {
		require.ErrorIs(t, only(throttle.New(throttletest.NewServer(), o)), throttle.ErrParams)
	}
	require.ErrorIs(t, only(throttle.New(nil)), throttle.ErrParams)
	require.ErrorIs(t, only(throttle.New((*redis.Client)(nil))), throttle.ErrParams)
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

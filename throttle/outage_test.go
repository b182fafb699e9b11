package throttle_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
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
		require.Equal(t, "server", must(hourly(c).Peek(background, "")).Source)
	})
}

// A client of go-redis that ignores contexts, or sets no deadlines, ends calls in time, too, alone, in a cluster and of a Ring, and
// Close waits for what it has left behind.
func TestNew_boundsCalls(t *testing.T) {
	for row := range 6 {
		synctest.Test(t, func(t *testing.T) {
			n := resp.NewNetwork(resp.Options{})
			o := redis.UniversalOptions{Addrs: []string{"10.0.0.1:6379"}, Dialer: n.Dial, ReadTimeout: []time.Duration{0, -2}[row/3],
				ContextTimeoutEnabled: row >= 3, MaintNotificationsConfig: noMaintenance}
			var server *resp.Server
			var rdb redis.UniversalClient
			switch row % 3 {
			case 0:
				server, rdb = n.Add(o.Addrs[0]), redis.NewClient(o.Simple())
			case 1:
				server, rdb = n.NewCluster(o.Addrs[0]).Masters()[0], redis.NewClusterClient(o.Cluster())
			default:
				server, rdb = n.Add(o.Addrs[0]), redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": o.Addrs[0]}, Dialer: o.Dialer,
					ReadTimeout: o.ReadTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled})
			}
			c := must(throttle.New(rdb, throttle.Logger(quiet)))
			require.Equal(t, "server", must(hourly(c).Allow(background, "a")).Source)
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
	c := must(throttle.Open("redis://"+s, throttle.Timeout(patient)))
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
	var accepted atomic.Int64
	closes := must(net.Listen("tcp", "127.0.0.1:0"))
	defer closes.Close()
	go func() {
		for conn, err := closes.Accept(); err == nil; conn, err = closes.Accept() {
			accepted.Add(1)
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		}
	}()
	c := must(throttle.Open("redis://"+closes.Addr().String(), throttle.Logger(quiet)))
	ctx, cancel := context.WithTimeout(background, patient)
	defer cancel()
	require.ErrorContains(t, c.Check(ctx), "wants TLS")
	require.NoError(t, c.Close())
	accepted.Store(0)
	c = must(throttle.Open("redis://"+closes.Addr().String()+"?master_name=m", throttle.Logger(quiet), throttle.Timeout(patient)))
	require.ErrorContains(t, only(hourly(c).Allow(background, "a")), "sentinels")
	require.EqualValues(t, 1, accepted.Load(), "a Sentinel is asked once")
	require.NoError(t, c.Close())

	synctest.Test(t, func(t *testing.T) {
		silent := far(0)
		silent.Change(func(f *resp.Faults) { f.Silent = true })
		c, began := newReal(t, clientOf(t, silent, func(o *redis.Options) { o.TLSConfig = &tls.Config{} })), time.Now() // its Dialer does not use it
		require.ErrorContains(t, c.Check(background), "has no TLS")
		require.LessOrEqual(t, time.Since(began), 5*time.Second)
	})
}

// New refuses options that make no sense.
func TestNew_refuses(t *testing.T) {
	for _, o := range []throttle.Option{throttle.Timeout(-1), throttle.Budget(-1, time.Second), throttle.Budget(0, 1), throttle.Budget(1, 0)} {
		require.ErrorIs(t, only(throttle.New(throttletest.NewServer(), o)), throttle.ErrParams)
	}
	require.ErrorIs(t, only(throttle.New(nil)), throttle.ErrParams)
	require.ErrorIs(t, only(throttle.New((*redis.Client)(nil))), throttle.ErrParams)
}

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
				require.Equal(t, "failed-local", r.Source)
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
		require.Equal(t, "failed-local", all.Each[1].Source)
		require.False(t, must(c.All(background, c.Rate("own", throttle.PerMinute(8), throttle.FailLocal(1)).Part("c", 3))).Allowed, "the client's share")
		require.Equal(t, 2, admits("c", rate), "nothing was taken")
		res := must(rate.Reserve(background, "d", 2, time.Hour))
		require.Zero(t, res.Wait)
		require.Equal(t, 30*time.Second, must(rate.Reserve(background, "d", 1, time.Hour)).Wait)
		require.NoError(t, res.Cancel(background))
		slots := c.Slots("slots", 4, time.Minute)
		lease := must(slots.Lease(background, "a"))
		require.Equal(t, "failed-local", lease.Result.Source)
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
		require.Equal(t, "server", must(rate.Allow(background, "a")).Source)
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
				return throttle.Result{Allowed: true, Source: "server"}, nil
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

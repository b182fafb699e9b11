package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// farClient returns a client of go-redis without connections, whose server is one round trip away. It works in a bubble.
func farClient(t *testing.T, trip time.Duration, reply func(words []string) string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case <-time.After(trip):
			ours, its := net.Pipe()
			go answer(its, trip, reply)
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// admits is a server that admits every call.
func admits(words []string) string {
	switch words[0] {
	case "EXISTS":
		return ":0\r\n"
	case "COMMAND":
		return "*1\r\n*0\r\n"
	}
	return "*6\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1\r\n:9\r\n"
}

// 64 goroutines ask for 64 keys from afar. After Check every call finds a connection, and none waits so long for a turn that
// its reply comes too late. Without Check the client sets connections up, although that takes longer than the time limit.
func TestNetwork_far(t *testing.T) {
	for _, ms := range []int{1, 5, 10, 20, 30, 40} {
		for _, cluster := range []bool{false, true} {
			for _, check := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					rdb := farClient(t, time.Duration(ms)*time.Millisecond, admits)
					var p throttle.Processor = rdb
					if cluster {
						p = clusterOf(t, func() []string { return []string{rdb.Options().Addr} }, rdb.Options().Dialer)
					}
					c := newReal(t, p)
					if check {
						require.NoError(t, c.Check(background))
					}
					limiter, last := c.Rate("t", throttle.PerHour(1e6)), int64(64)
					for round := 0; round < 5 || !check && round < 30 && last > 0; round++ {
						var failed atomic.Int64
						manyAtOnce(64, func(i int) {
							if _, err := limiter.Allow(background, fmt.Sprint(i)); err != nil {
								failed.Add(1)
							}
						})
						last = failed.Load()
						require.False(t, check && last > 0, "%d ms, cluster %t: %d of 64 calls failed", ms, cluster, last)
						time.Sleep(time.Second) // a circuit may be open, and go-redis look for masters
					}
					require.Zero(t, last, "%d ms, cluster %t, Check %t", ms, cluster, check)
				})
			}
		}
	}
}

// A caller that leaves before the reply does not read what go-redis may still write: the race detector would see it.
func TestNetwork_callersLeaveTheirCommands(t *testing.T) {
	c := newReal(t, farClient(t, 20*time.Millisecond, admits), throttle.Timeout(patient))
	require.NoError(t, c.Check(background))
	left := 0
	for i := range 40 { // on a busy machine some get their replies
		ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
		if verbsThatSend[[]string{"All", "Policy"}[i%2]](c, ctx) != nil {
			left++
		}
		cancel()
	}
	require.Positive(t, left)
}

// Nobody fails before 90 % of its own time limit because an earlier caller's limit is over. Callers that are left get the
// units of those whose limit ended while the command was under way.
func TestBatch_everyCallerHasItsOwnLimit(t *testing.T) {
	for _, keys := range []int{1, 600} {
		synctest.Test(t, func(t *testing.T) {
			s, until := throttletest.NewServer(), time.Now().Add(60*time.Millisecond) // it does not answer before
			c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
				return slow(s, max(time.Until(until), 0)+time.Millisecond).Process(ctx, cmd)
			}))
			limiter := c.Rate("hot", throttle.PerHour(300))
			var failed, admitted atomic.Int64
			manyAtOnce(600, func(i int) {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				began := time.Now()
				r, err := limiter.Allow(background, fmt.Sprint("{x}", i%keys))
				admitted.Add(r.Granted)
				took := time.Since(began)
				require.LessOrEqual(t, took, 50*time.Millisecond)
				if err != nil {
					failed.Add(1)
				}
				if errors.Is(err, context.DeadlineExceeded) { // not if a circuit is open
					require.GreaterOrEqual(t, took, 45*time.Millisecond)
				}
			})
			require.Positive(t, failed.Load())
			if keys == 1 {
				require.Less(t, failed.Load(), int64(150))
				require.EqualValues(t, 300, admitted.Load())
			}
		})
	}
}

// Callers that leave before the command is sent take nothing: whoever is left gets what was granted. The first caller, whose
// command is under way, gets its reply even if its context ends.
func TestBatch_callersThatLeave(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {0}, {1}, {2, 0}, {3, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := newSlow(t, 10*time.Millisecond)
			limiter := c.Rate("hot", throttle.PerHour(3))
			var cancels [4]context.CancelFunc
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for i := range cancels {
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				cancels[i] = cancel
				wg.Go(func() {
					r, err := limiter.Allow(ctx, "")
					require.True(t, i > 0 || err == nil)
					admitted.Add(r.Granted)
				})
				synctest.Wait()
			}
			for _, i := range order {
				cancels[i]()
				synctest.Wait()
			}
			wg.Wait()
			require.EqualValues(t, min(3, 5-len(order)), admitted.Load(), order)
			require.EqualValues(t, 3-admitted.Load(), must(limiter.Peek(background, "")).Remaining, order)
		})
	}
}

// Hooks see the words of a command, and the values of the caller's context. Each kind has its own command, with its name
// before the key.
func TestCommand_whatHooksSee(t *testing.T) {
	s := throttletest.NewServer()
	require.NoError(t, s.SetPolicies("p-api THROTTLE 1 1 60s"))
	seen := ""
	c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
		seen = fmt.Sprintln(cmd.Args(), cmd.Name(), ctx.Value(key{}))
		return s.Process(ctx, cmd)
	}), throttle.KeyPrefix("p-"))
	login, quota := c.Rate("login", throttle.PerMinute(5).Lockout(time.Second)), c.Quota("quota", 2, time.Hour)
	for want, limiter := range map[string]throttle.Allower{
		"[GO.THROTTLE p-rate:bob 1 2 3600000 MS] go.throttle 7\n":             c.Rate("rate", throttle.PerHour(2)),
		"[GO.THROTTLE p-login:bob 4 5 60000 LOCKOUT 1000 MS] go.throttle 7\n": login,
		"[GO.WINDOW p-window:bob 2 3600000 MS] go.window 7\n":                 c.Window("window", 2, time.Hour),
		"[GO.WINDOW p-exact:bob 2 3600000 EXACT MS] go.window 7\n":            c.ExactWindow("exact", 2, time.Hour),
		"[GO.QUOTA p-quota:bob 2 3600000 MS] go.quota 7\n":                    quota,
		"[GO.QUOTA p-aligned:bob 2 3600000 ALIGN 0 MS] go.quota 7\n":          c.AlignedQuota("aligned", 2, time.Hour, nil),
		"[GO.QUOTA p-month:bob 2 1mo ALIGN -01:30 MS] go.quota 7\n":           c.MonthlyQuota("month", 2, time.FixedZone("", -5400)),
		"[GO.QUOTA p-utc:bob 2 1mo ALIGN 0 MS] go.quota 7\n":                  c.MonthlyQuota("utc", 2, nil),
		"[GO.POLICY p-api:bob 1 MS] go.policy 7\n":                            c.Policy("api"),
	} {
		require.True(t, must(limiter.Allow(context.WithValue(background, key{}, 7), "bob")).Allowed)
		require.Equal(t, want, seen)
	}
	must(login.AllowN(background, "bob", 3))
	require.Equal(t, "[GO.THROTTLE p-login:bob 4 5 60000 3 LOCKOUT 1000 MS] go.throttle <nil>\n", seen)
	must(quota.Refund(background, "bob", 3))
	require.Equal(t, "[GO.QUOTA p-quota:bob 2 3600000 -3 UPTO MS] go.quota <nil>\n", seen)
	must(quota.Peek(background, "bob"))
	require.Equal(t, "[GO.QUOTA_RO p-quota:bob 2 3600000 0 MS] go.quota_ro <nil>\n", seen)
	must(c.All(background, c.Slots("slots", 2, time.Hour).Part("a", "me"), c.AlignedQuota("aligned", 2, time.Hour, nil).Part("b", 0)))
	require.Equal(t, "[GO.ALL p-slots:a LEASE 2 3600000 me KEY p-aligned:b QUOTA 2 3600000 0 ALIGN 0 MS] go.all <nil>\n", seen)
}

type processor func(context.Context, redis.Cmder) error

func (p processor) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }

// always returns a server that has one reply to all commands.
func always(t *testing.T, reply string) (addr string) {
	return serve(t, 0, func([]string) string { return reply })
}

// clusterOf returns a client of a cluster whose masters have equal shares of the slots. Its own interval to look for them
// never comes.
func clusterOf(t *testing.T, masters func() []string, dialer ...func(context.Context, string, string) (net.Conn, error)) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Dialer: append(dialer, nil)[0], ContextTimeoutEnabled: true, DialerRetries: 1, ClusterStateReloadInterval: time.Hour, ReadTimeout: 3 * time.Second,
		ClusterSlots: func(context.Context) (all []redis.ClusterSlot, err error) {
			addrs := masters()
			for i, addr := range addrs {
				share := servers.Slots / len(addrs)
				all = append(all, redis.ClusterSlot{Start: i * share, End: (i+1)*share - 1, Nodes: []redis.ClusterNode{{Addr: addr}}})
			}
			return all, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// A failed call makes the cluster client look for the new master.
func TestCluster_looksForTheNewMaster(t *testing.T) {
	alive := always(t, "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1\r\n")
	var master atomic.Value
	master.Store("127.0.0.1:1") // nobody listens there
	rdb := clusterOf(t, func() []string { return []string{master.Load().(string)} })
	c := newReal(t, rdb, throttle.Timeout(patient))
	_, err := hourly(c).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	master.Store(alive)
	require.Eventually(t, func() bool {
		r, err := hourly(c).Allow(background, "")
		return err == nil && r.Allowed
	}, time.Minute, 10*time.Millisecond, "a call reaches the new master")
}

// A cluster client that cannot find its masters, because its nodes are silent from the start, holds up a few calls, and no
// caller in a hurry. When they answer, it decides.
func TestCluster_silentFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := farClient(t, time.Millisecond, admits).Options()
		var silent atomic.Bool
		silent.Store(true)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Dialer: far.Dialer, ContextTimeoutEnabled: true, ClusterSlots: func(ctx context.Context) ([]redis.ClusterSlot, error) {
			if !silent.Load() {
				return []redis.ClusterSlot{{End: servers.Slots - 1, Nodes: []redis.ClusterNode{{Addr: far.Addr}}}}, nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(3 * time.Second):
			}
			return nil, context.DeadlineExceeded
		}})
		defer rdb.Close()
		limiter, began := hourly(newReal(t, rdb)), time.Now()
		hurry, cancel := context.WithTimeout(background, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, only(limiter.Allow(hurry, "")), context.DeadlineExceeded)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		for i := range 1000 {
			require.ErrorIs(t, only(limiter.Allow(background, fmt.Sprint(i))), throttle.ErrUnavailable)
		}
		require.Less(t, time.Since(began), 500*time.Millisecond)
		silent.Store(false)
		time.Sleep(4 * time.Second)
		for i := range 100 {
			require.NoError(t, only(limiter.Allow(background, fmt.Sprint(i))))
		}
	})
}

// Check asks every master: one without the module is noticed, whichever it is.
func TestCluster_checkAsksAllMasters(t *testing.T) {
	with, without := always(t, "*1\r\n*0\r\n"), always(t, "*1\r\n*-1\r\n")
	for _, row := range []struct {
		masters []string
		want    error
	}{{[]string{with, with}, nil}, {[]string{with, without}, throttle.ErrNoModule}, {[]string{without, with}, throttle.ErrNoModule}} {
		for range 5 { // a cluster client asks any node first
			rdb := clusterOf(t, func() []string { return row.masters })
			require.ErrorIs(t, newReal(t, rdb).Check(background), row.want)
		}
	}
}

// A cluster client does not ask for the list of commands before a call: it would ask for up to 5 s, whatever the call's
// time limit.
func TestCluster_asksForNoList(t *testing.T) {
	addr, got, listing := swallow(t)
	rdb := clusterOf(t, func() []string { return []string{addr} })
	c := newReal(t, rdb, throttle.Timeout(2*time.Second))
	_, err := hourly(c).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, got.Load())
	require.Zero(t, listing.Load())
}

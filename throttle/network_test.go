package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// far returns a server in memory that is one round trip away.
func far(trip time.Duration) *resp.Server {
	s := resp.NewNetwork(resp.Options{}).Add("10.0.0.1:6379")
	s.Change(func(f *resp.Faults) { f.Far = trip })
	return s
}

// noMaintenance: go-redis holds a lock while it asks for maintenance, and then time stands still in a bubble.
var noMaintenance = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// clientOf returns a client of a server in memory, for a bubble. Both are closed when it ends.
func clientOf(t *testing.T, s *resp.Server, with ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, Dialer: s.Dial, MaintNotificationsConfig: noMaintenance, PoolSize: 1000, DialerRetries: 1}
	for _, change := range with {
		change(o)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() {
		_ = rdb.Close()
		s.Network.Close()
	})
	return rdb
}

// clusterOf returns a client of a cluster in memory. Its own interval to look for masters never comes.
func clusterOf(t *testing.T, n *resp.Network, addrs ...string) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: n.Dial, ContextTimeoutEnabled: true, DialerRetries: 1, PoolSize: 1000,
		ClusterStateReloadInterval: time.Hour, MaintNotificationsConfig: noMaintenance})
	t.Cleanup(func() {
		_ = rdb.Close()
		n.Close()
		time.Sleep(time.Second) // the client may look for masters meanwhile
	})
	return rdb
}

// 64 goroutines ask for 64 keys from afar. After Check every call finds a connection, and none waits so long for a turn that
// its reply comes too late. Without Check the client sets connections up, although that takes longer than the time limit.
func TestNetwork_far(t *testing.T) {
	for _, ms := range []int{1, 5, 10, 20, 30, 40} {
		for _, cluster := range []bool{false, true} {
			for _, check := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					var p throttle.Processor
					trip := func(f *resp.Faults) { f.Far = time.Duration(ms) * time.Millisecond }
					if n := resp.NewNetwork(resp.Options{}); cluster {
						n.NewCluster("10.0.0.1:6379").Masters()[0].Change(trip)
						p = clusterOf(t, n, "10.0.0.1:6379")
					} else {
						s := n.Add("10.0.0.1:6379")
						s.Change(trip)
						p = clientOf(t, s)
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
	synctest.Test(t, func(t *testing.T) {
		c := newReal(t, clientOf(t, far(20*time.Millisecond)), throttle.Timeout(patient))
		require.NoError(t, c.Check(background))
		for i := range 40 {
			ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
			require.Error(t, verbsThatSend[[]string{"All", "Policy"}[i%2]](c, ctx))
			cancel()
		}
	})
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

// A failed call makes the cluster client look for the new master.
func TestCluster_looksForTheNewMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := resp.NewNetwork(resp.Options{})
		cluster := n.NewCluster("10.0.0.1:6379", "10.0.0.2:6379")
		c := newReal(t, clusterOf(t, n, "10.0.0.1:6379", "10.0.0.2:6379"))
		require.NoError(t, c.Check(background))
		old := cluster.Owner("a:")
		cluster.Promote(old.AddCopy("10.0.0.3:6379", 0))
		old.Change(func(f *resp.Faults) { f.Refuse = true })
		require.ErrorIs(t, only(hourly(c).Allow(background, "")), throttle.ErrUnavailable)
		time.Sleep(time.Second)
		require.True(t, must(hourly(c).Allow(background, "")).Allowed)
	})
}

// A cluster client that cannot find its masters, because its nodes are silent from the start, holds up a few calls, and no
// caller in a hurry. When they answer, it decides.
func TestCluster_silentFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := resp.NewNetwork(resp.Options{})
		master := n.NewCluster("10.0.0.1:6379").Masters()[0]
		silent := func(on bool) { master.Change(func(f *resp.Faults) { f.Lost = on }) }
		silent(true)
		limiter, began := hourly(newReal(t, clusterOf(t, n, "10.0.0.1:6379"))), time.Now()
		hurry, cancel := context.WithTimeout(background, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, only(limiter.Allow(hurry, "")), context.DeadlineExceeded)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		for i := range 1000 {
			require.ErrorIs(t, only(limiter.Allow(background, fmt.Sprint(i))), throttle.ErrUnavailable)
		}
		require.Less(t, time.Since(began), 500*time.Millisecond)
		silent(false)
		time.Sleep(10 * time.Second)
		for i := range 100 {
			require.NoError(t, only(limiter.Allow(background, fmt.Sprint(i))))
		}
	})
}

// Check asks every master: one without the module is noticed, whichever it is.
func TestCluster_checkAsksAllMasters(t *testing.T) {
	for missing, want := range map[int]error{-1: nil, 0: throttle.ErrNoModule, 1: throttle.ErrNoModule} {
		for range 5 { // a cluster client asks any node first
			synctest.Test(t, func(t *testing.T) {
				n := resp.NewNetwork(resp.Options{})
				for i, s := range n.NewCluster("10.0.0.1:6379", "10.0.0.2:6379").Masters() {
					s.Change(func(f *resp.Faults) { f.NoModule = i == missing })
				}
				require.ErrorIs(t, newReal(t, clusterOf(t, n, "10.0.0.1:6379")).Check(background), want)
			})
		}
	}
}

// A cluster client does not ask for the list of commands before a call: it would ask for up to 5 s, whatever the call's
// time limit.
func TestCluster_asksForNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, asked := resp.NewNetwork(resp.Options{}), []string{}
		s := n.NewCluster("10.0.0.1:6379").Masters()[0]
		s.Change(func(f *resp.Faults) {
			f.Reply = func(words []string) (any, bool) {
				asked = append(asked, words[0])
				return nil, false
			}
		})
		must(hourly(newReal(t, clusterOf(t, n, "10.0.0.1:6379"))).Allow(background, ""))
		require.Equal(t, []string{"GO.THROTTLE"}, asked)
	})
}

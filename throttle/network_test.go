package throttle_test

import (
	"context"
	"fmt"
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

// 64 goroutines ask for 64 keys from afar. Without Check the client sets connections up, although that takes longer than the
// time limit. Afterwards no call waits so long for a turn that its reply comes too late.
func TestNetwork_far(t *testing.T) {
	for _, ms := range []int{5, 40} {
		synctest.Test(t, func(t *testing.T) {
			limiter := newReal(t, clientOf(t, far(time.Duration(ms)*time.Millisecond))).Rate("t", throttle.PerHour(1e6))
			for round, last := 0, int64(64); last > 0; round++ {
				var failed atomic.Int64
				manyAtOnce(64, func(i int) {
					if _, err := limiter.Allow(background, fmt.Sprint(i)); err != nil {
						failed.Add(1)
					}
				})
				last = failed.Load()
				require.Less(t, round, 30, "%d ms: %d of 64 calls failed", ms, last)
				time.Sleep(time.Second) // a circuit may be open
			}
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
	for want, limiter := range map[string]allower{
		"[GO.THROTTLE p-rate:bob 1 2 3600000 MS] go.throttle 7\n":             c.Rate("rate", throttle.PerHour(2)),
		"[GO.THROTTLE p-login:bob 4 5 60000 LOCKOUT 1000 MS] go.throttle 7\n": login,
		"[GO.WINDOW p-window:bob 2 3600000 MS] go.window 7\n":                 c.Window("window", 2, time.Hour),
		"[GO.WINDOW p-exact:bob 2 3600000 EXACT MS] go.window 7\n":            c.Window("exact", 2, time.Hour, throttle.Exact()),
		"[GO.QUOTA p-quota:bob 2 3600000 MS] go.quota 7\n":                    quota,
		"[GO.QUOTA p-aligned:bob 2 3600000 ALIGN 0 MS] go.quota 7\n":          c.Quota("aligned", 2, time.Hour, throttle.In(nil)),
		"[GO.QUOTA p-month:bob 2 1mo ALIGN -01:30 MS] go.quota 7\n":           c.Quota("month", 2, throttle.Month, throttle.In(time.FixedZone("", -5400))),
		"[GO.QUOTA p-utc:bob 2 1mo ALIGN 0 MS] go.quota 7\n":                  c.Quota("utc", 2, throttle.Month),
		"[GO.POLICY p-api:bob MS] go.policy 7\n":                              c.Policy("api"),
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
	must(c.All(background, c.Slots("slots", 2, time.Hour).Part("a", "me"), c.Quota("aligned", 2, time.Hour, throttle.In(nil)).Part("b", 0)))
	require.Equal(t, "[GO.ALL p-slots:a LEASE 2 3600000 me KEY p-aligned:b QUOTA 2 3600000 0 ALIGN 0 MS] go.all <nil>\n", seen)
}

type processor func(context.Context, redis.Cmder) error

func (p processor) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }

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

// A command isn't sent again if its connection is closed after it was run, alone or in a pipeline: it would take its units twice.
func TestNetwork_sendsOnce(t *testing.T) {
	for _, calls := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			ran := map[string]int{}
			s := resp.NewNetwork(resp.Options{Ran: func(r resp.Run) { ran[fmt.Sprint(r.Words)]++ }}).Add("10.0.0.1:6379")
			c := newReal(t, clientOf(t, s))
			rate := c.Rate("a", throttle.PerHour(100))
			s.CutAfter(1)
			manyAtOnce(calls, func(i int) { _, _ = rate.Allow(background, fmt.Sprint(i)) })
			s.CutAfter(1)
			manyAtOnce(calls, func(i int) { _, _ = c.All(background, rate.Part(fmt.Sprint(i), 1)) })
			for words, n := range ran {
				require.Equal(t, 1, n, words)
			}
			require.NotEmpty(t, ran)
		})
	}
}

package throttle_test

import (
	"fmt"
	"os"
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

// byScript: the clients of these tests call the script, on servers without the module.
var byScript = os.Getenv("GOTHROTTLE_SCRIPT") != ""

// startServer starts a server with the module of GOTHROTTLE_MODULE, or without one.
func startServer(t *testing.T, args ...string) *servers.Server {
	t.Helper()
	servers.Needed(t, "test-server")
	return servers.New(t, servers.Options{Args: args, Bare: byScript})
}

// newReal returns a client of a server.
func newReal(t *testing.T, rdb throttle.Processor, options ...throttle.Option) *throttle.Client {
	t.Helper()
	if byScript {
		options = append(options, throttle.Script())
	}
	c := must(throttle.New(rdb, append([]throttle.Option{throttle.Logger(quiet)}, options...)...))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// patient is the time limit of tests in which nothing is to fail, on a machine that may be busy.
const patient = time.Minute

// Every verb reads the replies of a real server, in RESP2 and RESP3.
func TestServer_everyVerb(t *testing.T) {
	s := startServer(t)
	for _, protocol := range []int{2, 3} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, Protocol: protocol})
		t.Cleanup(func() { _ = rdb.Close() })
		everyVerb(t, rdb, byScript)
	}
}

// So it does with the server in memory, also by the script: the suite is the same.
func TestFloor_everyVerb(t *testing.T) {
	for i := range 4 {
		synctest.Test(t, func(t *testing.T) {
			everyVerb(t, clientOf(t, far(time.Millisecond), func(o *redis.Options) { o.Protocol = 2 + i%2 }), i > 1)
		})
	}
}

func everyVerb(t *testing.T, rdb *redis.Client, byScript bool) {
	var script throttle.Option
	if byScript {
		script = throttle.Script()
	}
	require.NoError(t, rdb.FlushAll(background).Err())
	if !byScript {
		require.NoError(t, rdb.ConfigSet(background, "gothrottle.policies", "api THROTTLE 1 1 60s, THROTTLE 9 1 60s").Err())
	}
	c := newReal(t, rdb, throttle.KeyPrefix("p:"), throttle.Timeout(patient), script)
	require.NoError(t, c.Check(background))
	limit := throttle.PerMinute(30).Burst(5)
	useVerbs(t, c)
	must(c.Rate("a", limit).Settle(background, "", 15))
	reservation := must(c.Rate("a", limit).Reserve(background, "", 1, time.Minute))
	require.GreaterOrEqual(t, reservation.Wait, 19*time.Second)
	require.NoError(t, reservation.Cancel(background))
	r := must(c.Window("w", 5, time.Hour, throttle.Exact()).Allow(background, ""))
	require.EqualValues(t, 4, r.Remaining)
	all := must(c.All(background,
		c.Quota("q", 5, time.Hour, throttle.In(time.FixedZone("", 60))).Part("", 2), c.Slots("jobs", 2, time.Minute).Part("", "me")))
	require.True(t, all.Allowed)
	require.EqualValues(t, []int64{3, 1}, []int64{all.Each[0].Remaining, all.Each[1].Remaining})
	lease := must(c.Slots("jobs", 2, time.Minute).Lease(background, ""))
	require.Zero(t, lease.Result.Remaining)
	require.InDelta(t, time.Now().UnixMicro(), must(lease.Token(background)), 60e6)
	require.NoError(t, lease.Close())
	tokens := c.Quota("tokens", 100, throttle.Month)
	hold := must(tokens.Hold(background, "bob", 60, c.Rate("team", limit).Part("", 5)))
	require.Error(t, only(tokens.Hold(background, "bob", 41)))
	require.NoError(t, hold.Settle(background, 30))
	require.EqualValues(t, 70, left(t, tokens, "bob"))
	require.NoError(t, rdb.RPush(background, "p:other:", 1).Err())
	_, err := c.Rate("other", limit).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrParams)

	plain := newReal(t, rdb, throttle.Timeout(patient), script)
	if byScript {
		require.ErrorIs(t, only(plain.Policy("api").Allow(background, "bob")), throttle.ErrParams)
		return
	}
	r = must(plain.Policy("api").Allow(background, "bob"))
	require.EqualValues(t, []int64{2, 1}, []int64{r.Limit, r.Remaining})
	_, err = plain.Policy("none").Allow(background, "bob")
	require.ErrorIs(t, err, throttle.ErrParams)
}

// In a cluster calls go to the node of their key. By the script, one node may have the module.
func TestServer_cluster(t *testing.T) {
	servers.Needed(t, "test-server")
	nodes := servers.NewCluster(t, 3, 0, servers.Options{Bare: byScript, Args: []string{"--enable-module-command", "yes"}})
	if byScript {
		must(nodes[0].Do("MODULE", "LOAD", must(servers.Module())))
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = cluster.Close() })
	c := newReal(t, cluster, throttle.Timeout(patient))
	require.NoError(t, c.Check(background))
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			require.True(t, must(c.Rate("t", throttle.PerHour(2)).Allow(background, fmt.Sprint("key", i))).Allowed)
		})
	}
	wg.Wait()
	must(c.All(background, c.Rate("rate", throttle.PerHour(2)).Part("{a}", 1), c.Quota("quota", 2, time.Hour).Part("{a}", 1)))
	for _, key := range []string{"a", "{a}b", "c{a}"} {
		require.NoError(t, must(c.Quota("held", 2, time.Hour).Hold(background, key, 1)).Settle(background, 1), "its keys are in one slot")
	}
}

// Concurrent calls of two clients, merged into batches, with denials that are remembered, and with budgets, are granted what the
// server has charged, never more than the limit, and all of it if somebody is denied and nobody holds units ahead.
func TestServer_concurrent(t *testing.T) {
	s := startServer(t)
	concurrent(t, 100, func() throttle.Processor { return goRedis(t, s.Addr) })
}

// So they are with the server in memory.
func TestFloor_concurrent(t *testing.T) {
	addr := throttletest.NewServer().Serve(t)
	concurrent(t, 20, func() throttle.Processor { return goRedis(t, addr) })
}

func concurrent(t *testing.T, rounds int64, connect func() throttle.Processor) {
	const units = 4
	budget := throttle.Budget(units, 24*time.Hour)
	for name, option := range map[string]throttle.Option{"merged": nil, "denials": throttle.DenyCache(true), "budgets": budget} {
		rdb := [2]throttle.Processor{connect(), connect()}
		looks := newReal(t, rdb[0], throttle.KeyPrefix(name), throttle.Timeout(patient))
		for round := range rounds {
			limit := 1 + round*7%150
			quota := func(c *throttle.Client) throttle.Window { return c.Quota(fmt.Sprint(limit), limit, 24*time.Hour) }
			var clients [2]*throttle.Client
			for i := range clients {
				clients[i] = newReal(t, rdb[i], throttle.KeyPrefix(name), throttle.Timeout(patient), option)
			}
			var admitted, denied, granted atomic.Int64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					mine := quota(clients[i%2])
					for n := range 12 {
						r := must(mine.Allow(background, ""))
						admitted.Add(r.Granted)
						denied.Add(1 - r.Granted)
						if granted.Add(r.Granted) > 0 && (n+i)%8 == 7 {
							granted.Add(must(mine.Refund(background, "", 1)).Granted)
						}
					}
				})
			}
			all.Wait()
			for _, c := range clients {
				require.NoError(t, c.Close())
			}
			left := must(quota(looks).Peek(background, "")).Remaining
			lost := limit - granted.Load() - left
			require.Zero(t, lost, "%s: limit %d", name, limit)
			if name != "budgets" && denied.Load() > 0 {
				require.GreaterOrEqual(t, admitted.Load(), limit, name)
			}
		}
	}
}

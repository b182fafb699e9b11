package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
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
}

// linearQuota is a quota that ends long after the test.
type linearQuota struct {
	used int64
	full bool // once
}

// linearClients is how many clients there are; half of the goroutines share one.
const linearClients = 2

// quotaModel is what the client promises. The input is whether a caller gives a unit back, in place of asking for one. The
// output is whether it did. A call is admitted only if there is room. A denial is true now or, if denials are
// remembered, was true once; with budgets, units that clients have taken in advance may be missing.
func quotaModel(limit, taken int64, remembers bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearQuota{} },
		Step: func(state, input, output any) (bool, any) {
			s := state.(linearQuota)
			switch got := output.(bool); {
			case input.(bool):
				ok := got == (s.used > 0) || taken > 0 // the server counts those as used
				if got {
					s.used--
				}
				return ok, s
			case got:
				s.used++
				ok := s.used <= limit
				s.full = s.full || s.used == limit
				return ok, s
			}
			return s.used+taken >= limit || remembers && s.full, s
		},
	}
}

// Concurrent calls of two clients, merged into batches, with denials that are remembered, and with budgets, reply as if they
// came one after the other, within what each option promises.
func TestServer_linearizable(t *testing.T) {
	s := startServer(t)
	linearizable(t, 300, func() throttle.Processor { return goRedis(t, s.Addr) })
}

// So they do with the server in memory.
func TestFloor_linearizable(t *testing.T) {
	addr := throttletest.NewServer().Serve(t)
	linearizable(t, 30, func() throttle.Processor { return goRedis(t, addr) })
}

func linearizable(t *testing.T, rounds int, connect func() throttle.Processor) {
	if testing.Short() {
		rounds /= 10
	}
	const units = 4
	for name, mode := range map[string]struct {
		option    throttle.Option
		taken     int64
		remembers bool
	}{
		"merged":  {},
		"denials": {option: throttle.DenyCache(true), remembers: true},
		"budgets": {option: throttle.Budget(units, 24*time.Hour), taken: linearClients * units},
	} {
		t.Run(name, func(t *testing.T) {
			var clients [linearClients]*throttle.Client
			for i := range clients {
				clients[i] = newReal(t, connect(), throttle.KeyPrefix(name), throttle.Timeout(patient), mode.option)
			}
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 5))
				limit := 1 + r.Int64N(40)
				history := linearRound(t, r, func(id int) throttle.Window {
					return clients[id%linearClients].Quota(fmt.Sprint(limit), limit, 24*time.Hour)
				}, fmt.Sprint(seed))
				if porcupine.CheckOperationsTimeout(quotaModel(limit, mode.taken, mode.remembers), history, time.Minute) != porcupine.Ok {
					t.Fatalf("seed %d, limit %d: no order of the calls explains the replies: %+v", seed, limit, history)
				}
			}
		})
	}
}

// linearRound makes the calls of eight goroutines, one in eight of them a refund.
func linearRound(t *testing.T, r *rand.Rand, limiter func(id int) throttle.Window, key string) (all []porcupine.Operation) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var clock atomic.Int64 // the order of calls and returns
	for id := range 8 {
		var refunds [12]bool
		for i := range refunds {
			refunds[i] = r.IntN(8) == 0
		}
		l := limiter(id)
		wait.Go(func() {
			for _, refund := range refunds {
				o := porcupine.Operation{ClientId: id, Input: refund, Call: clock.Add(1)}
				if refund {
					got, err := l.Refund(background, key, 1)
					o.Output = got.Granted < 0
					assert.NoError(t, err)
				} else {
					got, err := l.Allow(background, key)
					o.Output = got.Allowed
					assert.NoError(t, err)
				}
				o.Return = clock.Add(1)
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return all
}

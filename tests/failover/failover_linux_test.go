// Package failover cuts off masters under load, and holds what clients are granted against the bounds that docs/failover.md
// states. tests/sim proves the bounds in many worlds; this measures one failover of each kind of deployment.
package failover

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/server"
	"gothrottle/throttle"
)

// The keys give back one unit in a period, so in a failover of some seconds no unit comes back and counts are exact.
const (
	burst  = 1500
	period = 1000 * time.Second
)

// timeout is the time limit of the throttle.Client, and its default.
const timeout = 50 * time.Millisecond

var (
	ctx   = context.Background()
	began = time.Now()
	limit = throttle.Per(1, period).Burst(burst)
)

// now is the time since the start. Clients and faults share this clock.
func now() time.Duration { return time.Since(began) }

func TestFailover(t *testing.T) {
	server.Needed(t, "test-failover")
	go measureLateness()
	fmt.Println("| servers | excess, units | old master goes on, ms | acknowledged units lost | no decision, ms | of that with a new master, ms |\n|---|---:|---:|---:|---:|---:|")
	for _, start := range []func(*testing.T) *deployment{newReplica, newSentinel, newCluster} {
		d := start(t)
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			e := &episode{deployment: d, t: t, old: d.nodes[0]}
			e.play()
			e.check()
		})
	}
}

// late is the longest time that a goroutine woke up late, in ns.
var late atomic.Int64

func measureLateness() {
	for {
		from := now()
		time.Sleep(5 * time.Millisecond)
		late.Store(max(late.Load(), int64(now()-from-5*time.Millisecond)))
	}
}

// slack is what the machine may add to a time.
func slack() time.Duration { return time.Second + 3*time.Duration(late.Load()) }

// episode is one failover under load.
type episode struct {
	*deployment
	t        *testing.T
	old, new *server.Server

	// Times: when the master was cut off, the new master decided, clients could find it, the old one was a master no more.
	cut, serves, named, demoted time.Duration

	mu           sync.Mutex
	atCoast      []time.Duration // units that the throttle.Client was granted
	decided      []time.Duration // its decisions
	denied       time.Duration   // the last one of them that denied
	longest      time.Duration   // of its calls
	atIsland     []time.Duration // units that the old master granted to the island
	acknowledged int64           // units of another key, which all replicas acknowledged
}

// load starts the callers. It returns a function that ends them.
func (e *episode) load(key, safe string) (end func()) {
	rdb := redis.NewUniversalClient(&e.options)
	client, err := throttle.New(rdb, throttle.Logger(slog.New(slog.DiscardHandler)), throttle.Timeout(timeout))
	require.NoError(e.t, err)
	name, rest, _ := strings.Cut(key, ":")
	limiter := client.Rate(name, limit)
	island := e.old.Client(func(o *redis.Options) {
		o.Dialer, o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled = e.island.dial, callTimeout, callTimeout, true
	})
	var stop atomic.Bool
	var running sync.WaitGroup
	every := func(pause time.Duration, f func()) {
		running.Go(func() {
			for tick := time.Tick(pause); !stop.Load(); f() {
				<-tick
			}
		})
	}
	for range 2 {
		every(6*time.Millisecond, func() { e.ask(limiter, rest) })
	}
	every(10*time.Millisecond, func() { // the burst lasts longer than a master that must stop
		if reply, err := island.Do(ctx, "GO.THROTTLE", key, burst-1, 1, int(period.Seconds())).Int64Slice(); err == nil && reply[0] == 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.atIsland = append(e.atIsland, now())
		}
	})
	every(10*time.Millisecond, func() {
		pipe := island.Pipeline()
		decision, acks := pipe.Do(ctx, "GO.THROTTLE", safe, 99_999, 1, int(period.Seconds())), pipe.Do(ctx, "WAIT", len(e.nodes)-1, 200)
		_, _ = pipe.Exec(ctx)
		reply, err := decision.Int64Slice()
		if n, _ := acks.Int(); err == nil && reply[0] == 0 && n == len(e.nodes)-1 {
			e.acknowledged++
		}
	})
	return sync.OnceFunc(func() { stop.Store(true); running.Wait(); client.Close(); rdb.Close(); island.Close() })
}

// ask makes a call of the throttle.Client.
func (e *episode) ask(limiter throttle.Allower, key string) {
	from := now()
	result, err := limiter.Allow(ctx, key)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.longest = max(e.longest, now()-from)
	if err != nil {
		assert.ErrorIs(e.t, err, throttle.ErrUnavailable)
		return
	}
	if result.Allowed {
		e.atCoast = append(e.atCoast, now())
	} else {
		e.denied = now()
	}
	e.decided = append(e.decided, now())
}

// play cuts the master off together with the island, whose client goes on asking it, until there is a new master. It ends
// when the limit bites there.
func (e *episode) play() {
	e.t.Helper()
	const key, safe = "key:{b}", "safe:{b}" // in a cluster of three, their slot belongs to the first master
	end := e.load(key, safe)
	defer end()
	time.Sleep(700 * time.Millisecond)
	e.cut = now()
	e.net.move("island", hostOf(e.net, e.old), e.island)
	if e.promote != nil {
		e.promote(e.nodes[1])
	}
	require.NoError(e.t, server.Await("a new master decides", func() bool {
		for _, n := range e.nodes[1:] {
			if _, err := n.Do("GO.THROTTLE", key, burst-1, 1, int(period.Seconds()), 0); err == nil {
				e.new, e.serves = n, now()
			}
		}
		return e.new != nil
	}))
	require.NoError(e.t, server.Await("the Sentinels name it", func() bool {
		return !slices.ContainsFunc(e.sentinels, func(s *server.Server) bool {
			name, _ := s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")
			return !strings.Contains(fmt.Sprint(name), e.new.Host+" ")
		})
	}))
	e.named = now()
	if e.stops > 0 { // long enough to see a master that does not stop
		time.Sleep(e.cut + e.stops + slack() + time.Second - now())
	}
	e.net.move("main", hostOf(e.net, e.old), e.island)
	e.demote(e.old)
	require.NoError(e.t, server.Await("the old master becomes a replica", func() bool {
		info, _ := e.old.Do("INFO", "replication")
		return server.Field(fmt.Sprint(info), "role") == "slave"
	}))
	e.demoted = now()
	require.NoError(e.t, server.Await("the limit bites at the new master", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.denied > e.serves
	}))
	end()
	assert.LessOrEqual(e.t, e.acknowledged, e.used(safe, 100_000), "lost units that all replicas had acknowledged")
	e.checkExcess(e.used(key, burst))
}

// used returns how many units the new master counts.
func (e *episode) used(key string, burst int64) int64 {
	e.t.Helper()
	reply, err := e.new.Do("GO.THROTTLE_RO", key, burst-1, 1, int(period.Seconds()), 0)
	require.NoError(e.t, err)
	return burst - reply.([]any)[2].(int64)
}

// after counts the times that lie in a span.
func after(times []time.Duration, from, to time.Duration) (n int64) {
	for _, at := range times {
		if at >= from && at <= to {
			n++
		}
	}
	return n
}

// checkExcess checks the bound of docs/failover.md: burst + U. U are units that the new master does not know; the old one
// can have kept to itself what it admitted since the fault, and shortly before.
func (e *episode) checkExcess(used int64) {
	e.t.Helper()
	granted := int64(len(e.atCoast) + len(e.atIsland))
	unknown := after(e.atIsland, e.cut-slack(), e.demoted+slack()) + after(e.atCoast, e.cut-slack(), e.cut+slack())
	assert.LessOrEqual(e.t, granted-used, unknown, "units that the new master has forgotten, and that the old one can have kept to itself")
	assert.LessOrEqual(e.t, granted-burst, max(0, granted-used), "excess, and forgotten units")
}

// check checks the times, and prints the row.
func (e *episode) check() {
	e.t.Helper()
	held := time.Duration(0)
	if n := len(e.atIsland); n > 0 {
		held = max(0, e.atIsland[n-1]-e.cut)
	}
	if e.stops > 0 {
		assert.LessOrEqual(e.t, held, e.stops+slack(), "the old master went on")
	}
	var out time.Duration
	for i, at := range e.decided[1:] {
		if at > e.cut {
			out = max(out, at-e.decided[i])
		}
	}
	i, _ := slices.BinarySearch(e.decided, e.named)
	require.Less(e.t, i, len(e.decided), "no decisions after the failover")
	back := e.decided[i] - e.named
	assert.Less(e.t, back, 9*time.Second+slack(), "decisions come back")
	assert.Less(e.t, e.longest, timeout+slack(), "the longest call")
	fmt.Printf("| %s, partition | %d | %d | 0 of %d | %d | %d |\n", e.name, max(0, len(e.atCoast)+len(e.atIsland)-burst), held.Milliseconds(),
		e.acknowledged, out.Milliseconds(), back.Milliseconds())
}

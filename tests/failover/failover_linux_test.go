package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestFailover makes FAILOVERS masters fail: three fifths in a cluster, the others in two deployments with Sentinel, all at
// the same time. SEED chooses the order of the faults, ONLY is the name of the one kind that is made. With FIGURES=1 the
// figures are written into the page.
func TestFailover(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("FAILOVERS"))
	if n < 3 {
		t.Skip("make test-failover runs this test")
	}
	redis.SetLogger(silent{}) // it would log every attempt to reach a dead server
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano() % 1e6)
	}
	t.Logf("SEED=%d FAILOVERS=%d", seed, n)
	machine()
	random := rand.New(rand.NewPCG(seed, 0))
	cluster, sentinel := newSummary("cluster"), newSummary("sentinel")
	ofCluster, ofSentinel := shuffled(random, only(clusterFaults), n-n*2/5), shuffled(random, only(sentinelFaults), n*2/5)
	parts := []struct {
		d      *deployment
		faults <-chan *fault
		sum    *summary
	}{
		{newCluster(t), ofCluster, cluster}, {newSentinel(t, "a"), ofSentinel, sentinel}, {newSentinel(t, "b"), ofSentinel, sentinel},
	}
	t.Run("parts", func(t *testing.T) {
		for i, p := range parts {
			t.Run(p.d.kind, func(t *testing.T) {
				t.Parallel()
				p.d.use(t)
				p.d.run(rand.New(rand.NewPCG(seed, uint64(i+1))), p.faults, p.sum)
			})
		}
	})
	name, err := servers.Version(parts[0].d.nodes[0].run.Program)
	require.NoError(t, err)
	require.NotEmpty(t, append(cluster.rows, sentinel.rows...), "ONLY=%s names no failure", os.Getenv("ONLY"))
	all := &figures{name, append(cluster.rows, sentinel.rows...)}
	fmt.Println(all.text())
	if os.Getenv("FIGURES") == "1" && !t.Failed() {
		require.NoError(t, all.write())
	}
}

// only returns the faults whose name is that of ONLY, or all.
func only(faults []*fault) (chosen []*fault) {
	for _, f := range faults {
		if name := os.Getenv("ONLY"); name == "" || name == f.name {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// shuffled returns a list of so many faults, each kind as often as the others.
func shuffled(random *rand.Rand, faults []*fault, count int) <-chan *fault {
	list := make(chan *fault, count)
	for i, order := 0, []int(nil); i < count && len(faults) > 0; i++ {
		if i%len(faults) == 0 {
			order = random.Perm(len(faults))
		}
		list <- faults[order[i%len(faults)]]
	}
	close(list)
	return list
}

// run makes failovers, one after the other. If a master fails by itself meanwhile, as it may on a machine that is
// too busy for the node timeout, the failover proves nothing, and is made again.
func (d *deployment) run(random *rand.Rand, faults <-chan *fault, sum *summary) {
	coast, island := d.newClients(d.coast), d.newClients(d.island)
	masters, number := d.settle(), 0
	for f := range faults {
		for tries := 1; ; tries++ {
			number++
			s := random.IntN(len(d.shards))
			e := &episode{d: d, t: d.t, number: number, fault: f, shard: d.shards[s], old: masters[s], random: random, coast: coast, island: island, began: now()}
			e.play()
			want := slices.Clone(masters)
			want[s] = e.new
			if masters = d.settle(); slices.Equal(masters, want) && !e.early {
				e.check(sum)
				break
			}
			fmt.Fprintf(os.Stderr, "%s %d: %s: a master failed by itself, and this failover is made again\n", d.kind, number, f.name)
			require.Less(d.t, tries, 10, "masters fail by themselves")
		}
		if d.t.Failed() {
			d.t.Fatalf("%s: a bound is broken, see above", f.name)
		}
	}
}

// episode is one failover under load, with keys of its own.
type episode struct {
	d             *deployment
	t             *testing.T
	number        int
	fault         *fault
	shard         *shard
	random        *rand.Rand
	coast, island *clients
	old, new      *server

	big, small, steady *limited // keys of the shard that all ask
	waited             *limited // the key of the shard whose units are acknowledged
	others             []*limited
	callers            []*caller
	running            sync.WaitGroup

	// Times: when the episode and the fault began, the master was cut off, the new master decided, clients could find it,
	// a stopped master went on, the old master was no master any more.
	began, failed, cut, serves, named, resumed, demoted time.Duration

	early  bool // another node was the master before the fault
	result result
}

func (e *episode) must(err error) {
	e.t.Helper()
	require.NoError(e.t, err, e.fault.name)
}

func (e *episode) someTime(most time.Duration) time.Duration {
	return time.Duration(e.random.Int64N(int64(most)))
}

// play starts the load, lets the fault happen, and stops the load when the limits bite at the new master.
func (e *episode) play() {
	e.t.Helper()
	if e.fault.fenced {
		e.fence(1)
		defer e.fence(0)
	}
	stop := make(chan struct{})
	e.load()
	for _, c := range e.callers {
		e.running.Go(func() { c.run(stop) })
	}
	var once sync.Once
	end := func() { once.Do(func() { close(stop); e.running.Wait() }) }
	defer end()
	time.Sleep(500*time.Millisecond + e.someTime(400*time.Millisecond))
	e.fault.do(e)
	eventually(e.t, "the limits bite at the new master", func() bool {
		return e.big.lastDenied() > e.serves && e.small.lastDenied() > e.serves
	})
	end()
}

// fence sets min-replicas-to-write.
func (e *episode) fence(replicas int) {
	for _, n := range e.d.nodes {
		e.must(n.ConfigSet(ctx, "min-replicas-max-lag", strconv.Itoa(fencedLag)).Err())
		e.must(n.ConfigSet(ctx, "min-replicas-to-write", strconv.Itoa(replicas)).Err())
	}
}

const ms = time.Millisecond

// load makes the keys and their callers. The direct callers and the clients of the island are cut off with the master.
func (e *episode) load() {
	key := func(s *shard, name string) string { return fmt.Sprintf("%s%d-%s", s.tag, e.number, name) }
	e.big, e.small = slowKey(key(e.shard, "big"), 1500), slowKey(key(e.shard, "small"), 100)
	e.steady = &limited{key: key(e.shard, "steady"), pace: pace{50, 100}}
	e.waited = slowKey(key(e.shard, "waited"), 100_000)
	rdb := redis.NewClient(e.old.plain(e.d.island))
	e.t.Cleanup(func() { rdb.Close() })
	replicas := len(e.shard.nodes) - 1
	e.callers = []*caller{
		e.coast.plain(e.big, 3*ms), e.coast.typed(e.big, 4*ms), e.coast.typed(e.big, 4*ms),
		direct(e.big, e.d.island, e.old, rdb, 3*ms), e.island.typed(e.big, 6*ms),
		e.coast.plain(e.small, 10*ms), e.coast.typed(e.small, 10*ms), direct(e.small, e.d.island, e.old, rdb, 10*ms),
		e.coast.typed(e.steady, 6*ms), direct(e.steady, e.d.island, e.old, rdb, 6*ms),
		e.coast.waits(e.waited, replicas, 5*ms),
		{key: e.waited, from: e.d.island, only: e.old, every: 10 * ms, ask: func() (bool, error) { return acknowledged(rdb, e.waited, replicas) }},
	}
	for _, s := range e.d.shards {
		if s != e.shard {
			other := slowKey(key(s, "other"), 150)
			e.others = append(e.others, other)
			e.callers = append(e.callers, e.coast.plain(other, 20*ms), e.coast.typed(other, 20*ms))
		}
	}
}

// used returns how many units of a slow key the shard's master counts.
func (e *episode) used(l *limited) int64 {
	e.t.Helper()
	var used int64
	var failure error
	defer func() {
		if e.t.Failed() && failure != nil {
			e.t.Logf("%s: %v", l.key, failure)
		}
	}()
	eventually(e.t, "a master tells the use of "+l.key, func() bool {
		for _, s := range e.d.shards {
			if m := s.master(); m != nil && strings.HasPrefix(l.key, s.tag) {
				reply, err := m.Do(ctx, l.words("GO.THROTTLE_RO", 0)...).Int64Slice()
				if failure = err; err == nil {
					used = l.pace.burst - reply[2]
				}
				return err == nil
			}
		}
		return false
	})
	return used
}

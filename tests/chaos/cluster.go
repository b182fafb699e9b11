package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	servers "gothrottle/tests/server"
)

// numNodes is how many masters a cluster has.
const numNodes = 3

// node is a master of a cluster.
type node struct {
	*server
	id    string
	probe string // a key whose slot stays here
	clock *clock
	now   funnel.Micros    // what the module's clock tells
	conns [2]*redis.Client // for calls; they speak RESP2 and RESP3
}

// clusterRun is a cluster, one model of all its keys, and slots that move between the masters.
type clusterRun struct {
	*run   // the model and its checks; its three servers are the nodes
	g      *generator
	nodes  [numNodes]*node
	clocks [numNodes]*clock
	owner  map[string]int // the node that owns the slot of a tag
	later  []words        // calls that got TRYAGAIN
	tally  map[string]int
	drifts bool // the servers' clocks do not stand still exactly: a monotonic clock moves them on
}

// tags are hash tags of slots that move.
var tags = []string{"a", "b", "c", "d"}

// searchCluster runs one seed after the other until the time is over.
func searchCluster(l *lab) bool {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()>>32 + 1
	}
	fmt.Printf("chaos: slots of a cluster move; the first seed is %d\n", seed)
	os.Setenv("GOTHROTTLE_CLOCK_BOUND", "1") // the modules' monotonic clocks stand still on all servers
	st, tally, end := newStats(), map[string]int{}, time.Now().Add(*timeFlag)
	for ; time.Now().Before(end); seed++ {
		if err := performCluster(l, seed, st, tally, end); err != nil {
			fmt.Print(clusterTable(st, tally))
			fmt.Printf("chaos: seed %d: %v\n", seed, err)
			fmt.Printf("chaos: to run it again: go run ./tests/chaos -cluster -server %s -steps %d -seed %d\n", *serverFlag, *stepsFlag, seed)
			return false
		}
	}
	fmt.Printf("chaos: no difference; the next seed is %d\n%s", seed, clusterTable(st, tally))
	return true
}

func clusterTable(st *stats, tally map[string]int) string {
	b := &strings.Builder{}
	row := func(name string, value any) { fmt.Fprintf(b, "  %-28s %v\n", name, value) }
	row("server", st.version)
	row("time", time.Since(st.began).Round(time.Second))
	row("clusters", st.runs)
	row("calls", st.calls)
	row("replies that were checked", st.checks)
	row("keys that were compared", st.compared)
	for _, name := range slices.Sorted(maps.Keys(tally)) {
		row(name, tally[name])
	}
	return b.String()
}

// performCluster makes the steps of a seed on a new cluster. It returns the first difference, or nil.
func performCluster(l *lab, seed uint64, st *stats, tally map[string]int, until time.Time) error {
	st.runs++
	c := &clusterRun{tally: tally, owner: map[string]int{}, g: &generator{rand.New(rand.NewPCG(seed, 2)), begin, begin},
		run: &run{lab: l, folder: filepath.Join(l.folder, fmt.Sprint("cluster", st.runs)), stats: st, m: newModel()}}
	defer c.stop()
	err := c.begin()
	for c.number = 0; c.number < *stepsFlag && err == nil && time.Now().Before(until); c.number++ {
		err = c.step()
	}
	if err == nil {
		err = c.compare()
	}
	for _, n := range c.nodes {
		if err != nil && n != nil && !n.loaded() {
			err = fmt.Errorf("%w; a node has ended: %s", err, n.tail())
		}
	}
	return err
}

func (c *clusterRun) stop() {
	for _, n := range c.nodes {
		if n != nil {
			n.conns[0].Close()
			n.conns[1].Close()
		}
	}
	for _, clock := range c.clocks {
		if clock != nil {
			clock.file.Close()
		}
	}
	c.run.end()
}

func (c *clusterRun) begin() error {
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return err
	}
	for i, to := range []**server{&c.master, &c.twin, &c.plain} {
		file, err := os.Create(filepath.Join(c.folder, fmt.Sprint("clock", i)))
		if err != nil {
			return err
		}
		c.clocks[i] = &clock{file: file, wall: begin - time.Now().UnixMicro(), mono: 1e12}
		if err := c.clocks[i].write(); err != nil {
			return err
		}
		s, err := c.startNode(i)
		*to = s
		if err != nil {
			return err
		}
		c.nodes[i] = &node{server: s, clock: c.clocks[i], id: s.ask("CLUSTER", "MYID"), conns: [2]*redis.Client{s.connect(2), s.connect(3)}}
	}
	c.stats.servers(c.master)
	c.drifts = c.master.info("server", "valkey_version") != ""
	if c.runs = c.drifts; c.drifts {
		c.m.blur = blurred
	}
	if err := c.meet(); err != nil {
		return err
	}
	if err := c.policies(); err != nil {
		return err
	}
	return c.pass(0)
}

// startNode starts node i. It tries another port for the nodes' own connections if one is taken.
func (c *clusterRun) startNode(i int) (s *server, err error) {
	for range 3 {
		s, err = c.lab.start(fmt.Sprint("node ", i), filepath.Join(c.folder, fmt.Sprint(i)), c.clocks[i], "--loadmodule", c.lab.module,
			"--cluster-enabled", "yes", "--cluster-port", servers.FreePort(), "--save", "", "--hz", "100", "--repl-diskless-sync-delay", "0",
			// The clocks jump, so nothing may depend on time that passed.
			"--cluster-node-timeout", "1000000000", "--repl-timeout", "1000000000")
		if err == nil {
			return s, nil
		}
	}
	return s, err
}

// meet makes the nodes a cluster, with a third of the slots each.
func (c *clusterRun) meet() error {
	const slots = 16384
	for i, n := range c.nodes {
		n.ask("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if reply := n.ask("CLUSTER", "ADDSLOTSRANGE", i*slots/numNodes, (i+1)*slots/numNodes-1); reply != "OK" {
			return c.differ("CLUSTER ADDSLOTSRANGE: %s", reply)
		}
		if i > 0 {
			bus := n.client.ConfigGet(ctx, "cluster-port").Val()["cluster-port"]
			c.master.ask("CLUSTER", "MEET", "127.0.0.1", n.port, bus)
		}
	}
	for _, tag := range tags {
		c.owner[tag] = c.slot(tag) * numNodes / slots
	}
	for i := 0; i < numNodes; i++ { // a key whose slot is none of those that move
		for k := 0; c.nodes[i].probe == ""; k++ {
			if name := fmt.Sprint(probeKey, k); c.slot(name)*numNodes/slots == i && !c.moves(name) {
				c.nodes[i].probe = name
			}
		}
	}
	return c.eventually("each node knows the whole cluster", func() bool {
		for _, n := range c.nodes {
			info := n.client.ClusterInfo(ctx).Val()
			if !strings.Contains(info, "cluster_known_nodes:3\r") || !strings.Contains(info, "cluster_state:ok\r") ||
				!strings.Contains(info, "cluster_slots_ok:16384\r") {
				return false
			}
		}
		return true
	})
}

func (c *clusterRun) slot(key string) int {
	return int(c.master.client.ClusterKeySlot(ctx, key).Val())
}

func (c *clusterRun) moves(key string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return c.slot(tag) == c.slot(key) })
}

func (c *clusterRun) step() error {
	switch n := c.g.IntN(20); {
	case n < 13:
		return c.batch(pick(c.g.Rand, tags...), 1+c.g.IntN(40))
	case n < 15:
		return c.pass(pick(c.g.Rand, 1, c.g.Int64N(second), c.g.Int64N(20*second), c.g.Int64N(90*second)))
	case n == 15:
		return c.policies()
	}
	return c.move(pick(c.g.Rand, tags...))
}

func (c *clusterRun) policies() error {
	text := pick(c.g.Rand, policyTexts...)
	c.m.rules = parsePolicies(text)
	for _, n := range c.nodes {
		if reply := n.ask("CONFIG", "SET", "gothrottle.policies", text); reply != "OK" {
			return c.differ("CONFIG SET gothrottle.policies: %s", reply)
		}
	}
	return nil
}

// behind is how far the servers' clocks are behind those of their modules, in µs. A module's clock
// never runs backward. So it stands still while its server's clock is behind and the monotonic clock
// stands still. That holds for servers as well whose clock does not stand still.
const behind = 3600 * second

// pass moves the clocks of the modules by at least d µs. Afterwards they all tell the same.
func (c *clusterRun) pass(d int64) error {
	c.g.wall = max(c.g.wall+d, int64(c.m.now)+1)
	if err := c.setClocks(c.g.wall); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := c.eventually("the module's clock moves", func() bool { return int64(n.tell()) >= c.g.wall }); err != nil {
			return err
		}
		if !c.drifts && int64(n.now) != c.g.wall {
			return c.differ("the clock of a module tells %d, want %d", n.now, c.g.wall)
		}
	}
	if err := c.setClocks(c.g.wall - behind); err != nil {
		return err
	}
	for _, n := range c.nodes {
		err := c.eventually("the module's clock stands still", func() bool {
			cached := n.number("server", "server_time_usec") // what the module reads; TIME tells a newer one
			return cached < c.g.wall && n.tell() == n.tell()
		})
		if err != nil {
			return err
		}
		c.m.now = max(c.m.now, n.now)
	}
	for _, n := range c.nodes { // behind the server's clock, the module's runs at half speed
		n.clock.mono += 2 * int64(c.m.now-n.now)
		if err := n.clock.write(); err != nil {
			return err
		}
		if told := n.tell(); told != c.m.now {
			return c.differ("the clock of a module tells %d, want %d", told, c.m.now)
		}
	}
	return nil
}

// setClocks makes the servers' clocks stand still at a time.
func (c *clusterRun) setClocks(wall int64) error {
	c.m.wall = funnel.Micros(wall)
	for _, clock := range c.clocks {
		clock.frozen, clock.wall = true, wall
		if err := clock.write(); err != nil {
			return err
		}
	}
	return nil
}

// tell asks for the time of the module's clock.
func (n *node) tell() funnel.Micros {
	p := n.client.Pipeline()
	p.Do(ctx, "DEL", n.probe)
	p.Do(ctx, "GO.QUOTA", n.probe, 1, maxSeconds)
	told := p.Do(ctx, "GET", n.probe)
	_, _ = p.Exec(ctx)
	n.now = probed(told)
	return n.now
}

// letClocksRun makes the servers' clocks run from where they stand.
func (c *clusterRun) letClocksRun() error {
	now := time.Now().UnixMicro()
	for _, clock := range c.clocks {
		clock.frozen, clock.wall = false, int64(c.m.wall)-now
		if err := clock.write(); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	servers "gothrottle/tests/server"
)

// numNodes is how many masters a cluster has.
const numNodes = 3

// node is a master of a cluster.
type node struct {
	*server
	id    string
	probe string        // a key whose slot stays here
	now   funnel.Micros // what the module's clock shows
}

// clusterRun is a cluster, one model of all its keys, and slots that move between the masters.
type clusterRun struct {
	*run  // the model and its checks; its three servers are the nodes
	g     *generator
	nodes [numNodes]*node
	owner map[string]int // the node that owns the slot of a tag
	later []words        // calls that got TRYAGAIN
	blank *memory.Server // has no keys: only wrong words make a call fail
}

var (
	tags   = []string{"a", "b", "c", "d"} // hash tags of slots that move
	slots  = map[string]int{"a": 15495, "b": 3300, "c": 7365, "d": 11298}
	probes = [numNodes]string{"clock2", "clock3", "clock0"} // a key at each node whose slot does not move
)

// performCluster makes the steps of a seed on a new cluster. It returns the first difference, or nil.
func performCluster(l *lab, seed uint64, st *stats, until time.Time) error {
	os.Setenv("GOTHROTTLE_CLOCK_BOUND", "1") // the modules' monotonic clocks stand still on all servers
	c := &clusterRun{run: newRun(l, st), owner: map[string]int{}, blank: memory.NewServer(),
		g: &generator{Rand: rand.New(rand.NewPCG(seed, 2)), wall: begin}}
	return c.perform(*stepsFlag, until, c.begin, c.step, c.compare)
}

func (c *clusterRun) begin() {
	var runs []*servers.Server
	for i, to := range []**server{&c.master, &c.twin, &c.plain} {
		clock := c.lab.clock()
		clock.Wall, clock.Mono = begin-time.Now().UnixMicro(), 1e12
		must(clock.Write())
		*to = c.lab.start(fmt.Sprint("node ", i), servers.Options{Cluster: true, Folder: filepath.Join(c.folder, fmt.Sprint(i)), Clock: clock,
			Args: []string{"--hz", "100", "--cluster-node-timeout", "1000000000"}})
		c.nodes[i], runs = &node{server: *to, probe: probes[i]}, append(runs, (*to).Server)
	}
	must(servers.Join(numNodes, runs...))
	for _, n := range c.nodes {
		n.id = n.ask("CLUSTER", "MYID")
	}
	if c.lab.runs {
		c.m.blur = blurred
	}
	for tag, slot := range slots {
		c.owner[tag] = slot * numNodes / servers.Slots
	}
	c.policies()
	c.pass(0)
}

func (c *clusterRun) step() {
	switch n := c.g.IntN(20); {
	case n < 13:
		c.batch(pick(c.g.Rand, tags...), 1+c.g.IntN(40))
	case n < 15:
		c.pass(pick(c.g.Rand, 1, c.g.Int64N(second), c.g.Int64N(20*second), c.g.Int64N(90*second)))
	case n == 15:
		c.policies()
	default:
		c.move(pick(c.g.Rand, tags...))
	}
}

func (c *clusterRun) policies() {
	text := pick(c.g.Rand, policyTexts...)
	_ = c.blank.SetPolicies(text)
	c.configure(text, c.master, c.twin, c.plain)
}

// behind is how far the servers' clocks are behind those of their modules, in µs. A module's clock
// never runs backward. So it does not move while its server's clock is behind and the monotonic clock
// does not move. This is also true of servers whose clock moves.
const behind = 3600 * second

// pass moves the clocks of the modules by at least d µs. Afterwards they all show the same.
func (c *clusterRun) pass(d int64) {
	c.g.wall = max(c.g.wall+d, int64(c.m.now)+1)
	c.setClocks(true, c.g.wall)
	for _, n := range c.nodes {
		c.eventually("the module's clock moves", func() bool { return int64(n.readClock()) >= c.g.wall })
		if !c.lab.runs && int64(n.now) != c.g.wall {
			c.differ("the clock of a module shows %d, want %d", n.now, c.g.wall)
		}
	}
	c.setClocks(true, c.g.wall-behind)
	for _, n := range c.nodes {
		c.eventually("the module's clock does not move", func() bool {
			cached := n.number("server", "server_time_usec") // what the module reads; TIME returns a newer one
			return cached < c.g.wall && n.readClock() == n.readClock()
		})
		c.m.now = max(c.m.now, n.now)
	}
	for _, n := range c.nodes { // behind the server's clock, the module's runs at half speed
		n.Clock.Mono += 2 * int64(c.m.now-n.now)
		must(n.Clock.Write())
		if now := n.readClock(); now != c.m.now {
			c.differ("the clock of a module shows %d, want %d", now, c.m.now)
		}
	}
	all, _ := c.union() // the servers may have deleted what had expired by the later time
	c.takeExpired(all, int64(c.m.now)/1000)
}

// setClocks makes the servers' clocks stand still at a time, or run with this time added to the real one.
func (c *clusterRun) setClocks(still bool, wall int64) {
	if still {
		c.m.wall = funnel.Micros(wall)
	}
	for _, n := range c.nodes {
		n.Clock.Frozen, n.Clock.Wall = still, wall
		must(n.Clock.Write())
	}
}

// readClock asks for the time of the module's clock.
func (n *node) readClock() funnel.Micros {
	p := n.client.Pipeline()
	quota := servers.AskClock(p, n.probe)
	_, _ = p.Exec(ctx)
	n.now = probed(replyText(quota))
	return n.now
}

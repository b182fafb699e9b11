package main

import (
	"fmt"
	"path/filepath"
	"time"

	"gothrottle/commands/memory"
	servers "gothrottle/tests/server"
	"gothrottle/tests/world"
)

// numNodes is how many masters a cluster has.
const numNodes = 3

// clusterRun is a cluster, one model of all its keys, and slots that move between the masters.
type clusterRun struct {
	*run  // the model and its checks; its three servers are the nodes
	g     *world.Generator
	nodes [numNodes]*server
	owner map[string]int // the node that owns the slot of a tag
	later []words        // calls that got TRYAGAIN
	blank *memory.Server // has no keys: only wrong words make a call fail
}

var (
	tags  = []string{"a", "b", "c", "d"} // hash tags of slots that move
	slots = map[string]int{"a": 15495, "b": 3300, "c": 7365, "d": 11298}
)

// performCluster makes the steps of a seed on a new cluster. It returns the first difference, or nil.
func performCluster(l *lab, seed uint64, st *stats, until time.Time) error {
	c := &clusterRun{run: newRun(l, st), owner: map[string]int{}, blank: memory.NewServer(),
		g: world.NewGenerator(seed, 2)}
	return c.perform(*stepsFlag, until, c.begin, c.step, c.compare)
}

func (c *clusterRun) begin() {
	c.startClock()
	c.setClock(false, begin-3600*second-time.Now().UnixMicro()) // it goes on until the nodes know each other
	var runs []*servers.Server
	for i, to := range []**server{&c.master, &c.twin, &c.plain} {
		*to = c.lab.start(fmt.Sprint("node ", i), servers.Options{Cluster: true, Folder: filepath.Join(c.folder, fmt.Sprint(i)), Clock: c.clock,
			Args: []string{"--hz", "100", "--cluster-node-timeout", "1000000000"}})
		c.nodes[i], runs = *to, append(runs, (*to).Server)
	}
	must(servers.Join(numNodes, runs...))
	c.setClock(true, begin)
	for tag, slot := range slots {
		c.owner[tag] = slot * numNodes / servers.Slots
	}
	c.policies()
	c.pass(0)
}

func (c *clusterRun) step() {
	switch n := c.g.IntN(20); {
	case n < 13:
		c.batch(world.Pick(c.g.Rand, tags...), 1+c.g.IntN(40))
	case n < 15:
		c.pass(world.Pick(c.g.Rand, 1, c.g.Int64N(second), c.g.Int64N(20*second), c.g.Int64N(90*second)))
	case n == 15:
		c.policies()
	default:
		c.moveSlot(world.Pick(c.g.Rand, tags...))
	}
}

func (c *clusterRun) policies() {
	text := world.Pick(c.g.Rand, world.PolicyTexts...)
	_ = c.blank.SetPolicies(text)
	c.configure(text, c.master, c.twin, c.plain)
}

// pass moves the clock by d µs.
func (c *clusterRun) pass(d int64) {
	c.move(d, d, func() {
		for _, n := range c.nodes {
			c.sees(n)
		}
	})
	c.m.now = c.m.wall
}

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
	"gothrottle/tests/world"
)

// numNodes is how many masters a cluster has.
const numNodes = 3

// clusterRun is a cluster, one model of all its keys, and slots that move between the masters.
type clusterRun struct {
	*run   // the model and its checks; its three servers are the nodes
	g      *world.Generator
	nodes  []*server
	client *redis.ClusterClient
	owner  map[string]int // the node that owns the slot of a tag
	later  []words        // calls whose keys were at two nodes
	blank  *memory.Server // has no keys: only wrong words make a call fail
}

var (
	tags  = []string{"a", "b", "c", "d"} // hash tags of slots that move
	slots = map[string]int{"a": 15495, "b": 3300, "c": 7365, "d": 11298}
)

// performCluster makes the steps of a seed on a new cluster. It returns the first difference, or another error, or nil.
func performCluster(ctx context.Context, seed uint64, tally map[string]int) error {
	c := &clusterRun{run: newRun(tally), owner: map[string]int{}, blank: memory.NewServer(), g: world.NewGenerator(seed, 2)}
	c.g.Holds = true
	err := c.perform(ctx, c.begin, c.step, c.compare)
	if c.client != nil {
		c.client.Close()
	}
	return err
}

func (c *clusterRun) begin() {
	c.startClock()
	c.clock.Frozen = false // it goes on until the nodes know each other
	c.clock.Set(begin - 3600*second - time.Now().UnixMicro())
	var runs []*servers.Server
	var addrs []string
	for i, to := range []**server{&c.master, &c.twin, &c.plain} {
		*to = c.start(fmt.Sprint("node ", i), servers.Options{Cluster: true, Args: []string{"--hz", "100", "--cluster-node-timeout", "1000000000"}})
		c.nodes, runs, addrs = append(c.nodes, *to), append(runs, (*to).Server), append(addrs, (*to).Addr)
	}
	must(servers.Join(numNodes, runs...))
	c.clock.Frozen = true
	c.clock.Set(begin)
	for tag, slot := range slots {
		c.owner[tag] = slot * numNodes / servers.Slots
	}
	c.client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2, MinRetryBackoff: -1, DisableIdentity: true,
		ReadTimeout: servers.Patience})
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
	must(c.blank.SetPolicies(text))
	c.configure(text, c.nodes...)
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

// right reports whether a call is right and all its keys have the tag. Each node counts the keys of GO.TOP for itself.
func (c *clusterRun) right(tag string, w words) bool {
	_, err := c.blank.Do(c.m.now, w...)
	for _, key := range c.blank.Keys() {
		c.blank.Delete(key)
	}
	return err == nil && !commands.Find(w[0]).NoKey && !slices.ContainsFunc(keysOf(w), func(key string) bool { return !strings.Contains(key, "{"+tag+"}") })
}

// batch makes n calls at keys of one slot: each alone, in a transaction or in a script. If the node makes none, because the
// slot is moving, they are made alone.
func (c *clusterRun) batch(tag string, n int) {
	via := world.Pick(c.g.Rand, "alone", "alone", "multi", "eval")
	var calls []words
	c.g.Tag = "{" + tag + "}"
	for range n {
		// In a cluster of Valkey the module itself replies TRYAGAIN, after other calls of a transaction were made.
		if w := c.g.Call(); c.right(tag, w) && (via == "alone" || len(keysOf(w)) == 1 || c.master.info("server", "valkey_version") == "") {
			calls = append(calls, w)
		}
	}
	if len(calls) > 0 && (via == "alone" || !c.together(tag, via, calls)) {
		c.alone(calls)
	}
}

// alone makes calls one by one. The client follows them to the node that has their keys.
func (c *clusterRun) alone(calls []words) {
	for _, w := range calls {
		reply := text(c.client.Do(ctx, corpus.Args(w)...).Result())
		if refused.MatchString(reply) {
			c.tally["calls that were made later"]++
			c.later = append(c.later, w)
			continue
		}
		c.checkOne(w, reply, false)
	}
}

var (
	refused         = regexp.MustCompile(`^-(ASK|MOVED|TRYAGAIN|EXECABORT) `)            // what servers say of keys that are not here
	refusedInScript = regexp.MustCompile(` non local key| during rehashing of the slot`) // of one call of a script
)

// together makes calls of which the server makes all or none. It reports whether it made them.
func (c *clusterRun) together(tag, via string, calls []words) bool {
	got := send(c.nodes[c.owner[tag]].client, via, calls)
	c.tally["calls by "+via]++
	if refused.MatchString(got.failed) || got.failed == "" && refused.MatchString(got.replies[0]) {
		return false
	} else if got.failed != "" {
		c.differ("the calls %q got the reply %s", calls, got.failed)
	}
	for i, w := range calls {
		if via == "eval" && refusedInScript.MatchString(got.replies[i]) {
			c.tally["refused within a script"]++ // the script itself made a key of a slot that moves absent
			continue
		}
		c.checkOne(w, got.replies[i], got.doubles)
	}
	return true
}

// again makes the calls that wait for their keys. Those that no node makes wait on.
func (c *clusterRun) again() {
	calls := c.later
	c.later = nil
	c.alone(calls)
}

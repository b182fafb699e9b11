package main

import (
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// moveSlot moves the slot of a tag to another node, while calls go on. Then it compares all data.
func (c *clusterRun) moveSlot(tag string) {
	from := c.owner[tag]
	to := (from + 1 + c.g.IntN(numNodes-1)) % numNodes
	kind := "MIGRATE"
	if atomic := c.atomicKind(); atomic != "" && c.g.IntN(2) == 0 {
		kind = atomic
		c.moveAtomic(tag, atomic, c.nodes[from], c.nodes[to])
	} else {
		c.moveKeys(tag, c.nodes[from], c.nodes[to])
	}
	c.stats.tally["moves by "+kind]++
	c.say("%s moved from node %d to node %d by %s", tag, from, to, kind)
	c.owner[tag] = to
	c.eventually("all nodes know the newest epoch", func() bool { // two nodes that take slots in one epoch may take them back
		epoch := func(n *server) string { return servers.Field(n.ask("CLUSTER", "INFO"), "cluster_current_epoch") }
		return epoch(c.nodes[0]) == epoch(c.nodes[1]) && epoch(c.nodes[1]) == epoch(c.nodes[2])
	})
	c.eventually("all nodes know the slot's owner", func() bool {
		return !slices.ContainsFunc(c.nodes[:], func(n *server) bool { return !n.knows(tag, c.nodes[to]) })
	})
	c.again(tag)
	if len(c.later) > 0 {
		c.differ("%q got TRYAGAIN after the move of the slot", c.later[0])
	}
	c.compare()
}

// moveKeys moves a slot by MIGRATE of a few keys at a time.
func (c *clusterRun) moveKeys(tag string, from, to *server) {
	slot, id := slots[tag], to.ask("CLUSTER", "MYID")
	c.accept(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.ask("CLUSTER", "MYID"))
	c.accept(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id)
	for {
		c.inBetween(tag)
		names := from.client.ClusterGetKeysInSlot(ctx, slot, 1+c.g.IntN(4)).Val()
		if len(names) == 0 {
			break
		}
		words := append([]any{"MIGRATE", "127.0.0.1", to.Port, "", 0, servers.Patience.Milliseconds(), "KEYS"}, corpus.Args(names)...)
		if reply := from.ask(words...); reply != "OK" && reply != "NOKEY" { // all of them may have expired
			c.differ("%q: %s", words, reply)
		}
		c.stats.tally["keys by MIGRATE"] += len(names)
		c.whole()
	}
	for _, n := range []*server{to, from, c.nodes[0], c.nodes[1], c.nodes[2]} {
		c.accept(n, "CLUSTER", "SETSLOT", slot, "NODE", id)
		c.inBetween(tag)
	}
}

// inBetween makes calls while a slot moves.
func (c *clusterRun) inBetween(tag string) {
	c.again(tag)
	switch c.g.IntN(6) {
	case 0:
	case 1:
		c.pass(c.g.Int64N(second))
	default:
		c.batch(tag, 1+c.g.IntN(12))
	}
}

// atomicKind returns the command by which the server moves a slot as a whole, "" if it has none.
func (c *clusterRun) atomicKind() string {
	help := c.master.ask("CLUSTER", "HELP")
	for _, kind := range []string{"MIGRATION IMPORT", "MIGRATESLOTS"} {
		if strings.Contains(help, kind) {
			return kind
		}
	}
	return ""
}

// moveAtomic lets the servers move a slot.
func (c *clusterRun) moveAtomic(tag, kind string, from, to *server) {
	slot := slots[tag]
	asked, words, done, earlier := to, []any{"CLUSTER", "MIGRATION", "STATUS", "ID", ""}, "state:completed", 0
	if kind == "MIGRATESLOTS" {
		earlier = strings.Count(from.ask("CLUSTER", "GETSLOTMIGRATIONS"), "state:success") // its reply lists all moves
		c.accept(from, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to.ask("CLUSTER", "MYID"))
		asked, words, done = from, []any{"CLUSTER", "GETSLOTMIGRATIONS"}, "state:success"
	} else {
		words[4] = to.ask("CLUSTER", "MIGRATION", "IMPORT", slot, slot)
	}
	last, calls := "", c.g.IntN(3) > 0
	err := servers.Await("the slot has moved", func() bool {
		if calls {
			c.batch(tag, 1+c.g.IntN(30))
		}
		c.pass(10 * millisecond) // the servers look at the clock now and then
		last = asked.ask(words...)
		// If time jumps before the old owner knows the new one, its move fails, and it may take the slot back.
		return strings.Count(last, done) > earlier && from.client.ClusterCountKeysInSlot(ctx, slot).Val() == 0 && from.knows(tag, to)
	})
	if err != nil {
		c.differ("%v; %v: %s", err, words, last)
	}
}

// knows reports whether a node takes another one, or itself, for the owner of a tag's slot.
func (s *server) knows(tag string, owner *server) bool {
	reply := s.ask("EXISTS", "{"+tag+"}")
	return s == owner && reply == "0" || s != owner && strings.HasPrefix(reply, "-MOVED ") && strings.HasSuffix(reply, ":"+owner.Port)
}

// union returns every key of the cluster, and the node that each is at. A key is at one node,
// and once its slot has moved, that node owns it. The node must not reply ASK for keys of slots that come to it, so ASKING
// comes before each command.
func (c *clusterRun) union() (all map[string]*memory.Value, at map[string]int) {
	all, at = map[string]*memory.Value{}, map[string]int{}
	for i, n := range c.nodes {
		p := n.client.Pipeline()
		names := n.client.Keys(ctx, "*").Val()
		found := make([]*redis.Cmd, len(names))
		for j, name := range names {
			p.Do(ctx, "ASKING")
			found[j] = p.Eval(ctx, corpus.ReadKeys, []string{name})
		}
		_, _ = p.Exec(ctx)
		for j, name := range names {
			reply, err := found[j].Slice()
			if err != nil {
				c.differ("%s at node %d: %v", name, i, err)
			}
			key, v := "0 "+name, corpus.Values([]string{name}, reply)[name]
			switch {
			case v == nil:
				continue
			case all[key] != nil:
				c.differ("%s is at two nodes: %s and %s", name, show(all[key], nil), show(v, nil))
			}
			all[key], at[key] = v, i
		}
	}
	return all, at
}

// whole checks that the cluster holds what the model holds, and returns the node that each key is at.
func (c *clusterRun) whole() map[string]int {
	all, at := c.union()
	c.stats.tally[numCompared] += len(all)
	c.holds(all)
	return at
}

// compare checks what must hold while no slot moves: each key is at the owner of its slot.
func (c *clusterRun) compare() {
	at := c.whole()
	for key, i := range at {
		for _, tag := range tags {
			if strings.Contains(key, "{"+tag+"}") && c.owner[tag] != i {
				c.differ("%s is at node %d, want %d", key, i, c.owner[tag])
			}
		}
	}
	c.healthy()
}

package main

import (
	"slices"
	"strings"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// moveSlot moves the slot of a tag to another node, while calls go on. Then it compares all data.
func (c *clusterRun) moveSlot(tag string) {
	from := c.owner[tag]
	to := (from + 1 + c.g.IntN(numNodes-1)) % numNodes
	kind := ""
	if c.g.IntN(2) == 0 {
		kind = c.moveAtomic(tag, c.nodes[from], c.nodes[to])
	}
	if kind == "" {
		kind = "MIGRATE"
		c.moveKeys(tag, c.nodes[from], c.nodes[to])
	}
	c.tally["moves by "+kind]++
	c.owner[tag] = to
	c.eventually("all nodes know the newest epoch", func() bool { // two nodes that take slots in one epoch may take them back
		epoch := func(n *server) string { return servers.Field(n.client.ClusterInfo(ctx).Val(), "cluster_current_epoch") }
		first := epoch(c.nodes[0])
		return first != "" && first == epoch(c.nodes[1]) && first == epoch(c.nodes[2])
	})
	c.eventually("all nodes know the slot's owner", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *server) bool { return !n.knows(tag, c.nodes[to]) })
	})
	if c.again(); len(c.later) > 0 {
		c.differ("%q was refused after the move of the slot", c.later[0])
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
		c.tally["keys by MIGRATE"] += len(names)
		c.whole()
	}
	for _, n := range append([]*server{to, from}, c.nodes...) {
		c.accept(n, "CLUSTER", "SETSLOT", slot, "NODE", id)
		c.inBetween(tag)
	}
}

// inBetween makes calls while a slot moves.
func (c *clusterRun) inBetween(tag string) {
	c.again()
	switch c.g.IntN(6) {
	case 0:
	case 1:
		c.pass(c.g.Int64N(second))
	default:
		c.batch(tag, 1+c.g.IntN(12))
	}
}

// moveAtomic lets the servers move a slot. It returns the command, "" if they know none.
func (c *clusterRun) moveAtomic(tag string, from, to *server) (command string) {
	slot, asked, status, done := slots[tag], from, []any{"CLUSTER", "GETSLOTMIGRATIONS"}, "state success"
	earlier := strings.Count(from.ask(status...), done) // the reply lists all moves
	command = "MIGRATESLOTS"
	if reply := from.ask("CLUSTER", command, "SLOTSRANGE", slot, slot, "NODE", to.ask("CLUSTER", "MYID")); reply[0] == '-' {
		command = "MIGRATION IMPORT"
		asked, status, done = to, []any{"CLUSTER", "MIGRATION", "STATUS", "ID", to.ask("CLUSTER", "MIGRATION", "IMPORT", slot, slot)}, "state completed"
	}
	last, calls := asked.ask(status...), c.g.IntN(3) > 0
	if last[0] == '-' {
		return ""
	}
	err := servers.Await("the slot has moved", func() bool {
		if calls {
			c.batch(tag, 1+c.g.IntN(30))
		}
		c.pass(10 * millisecond) // the servers look at the clock now and then
		last = asked.ask(status...)
		// If time jumps before the old owner knows the new one, its move fails, and it may take the slot back.
		return strings.Count(last, done) > earlier && from.client.ClusterCountKeysInSlot(ctx, slot).Val() == 0 && from.knows(tag, to)
	})
	if err != nil {
		c.differ("%v; %v: %s", err, status, last)
	}
	return command
}

// knows reports whether a node takes another one, or itself, for the owner of a tag's slot.
func (s *server) knows(tag string, owner *server) bool {
	reply := s.ask("EXISTS", "{"+tag+"}")
	return s == owner && reply == "0" || s != owner && strings.HasPrefix(reply, "-MOVED ") && strings.HasSuffix(reply, ":"+owner.Port)
}

// whole checks that the cluster holds what the model holds, each key at one node, and returns the node that each key is at.
func (c *clusterRun) whole() (at map[string]int) {
	all, at := map[string]*memory.Value{}, map[string]int{}
	for i, n := range c.nodes {
		for name, v := range c.dataset(n) {
			if all[name] != nil {
				c.differ("%s is at two nodes: %+v and %+v", name, all[name], v)
			}
			all[name], at[name] = v, i
		}
	}
	c.holds(all)
	return at
}

// compare checks what must hold while no slot moves: each key is at the owner of its slot.
func (c *clusterRun) compare() {
	for key, i := range c.whole() {
		if tag, _, _ := strings.Cut(key[strings.Index(key, "{")+1:], "}"); c.owner[tag] != i {
			c.differ("%s is at node %d, want %d", key, i, c.owner[tag])
		}
	}
	c.healthy()
}

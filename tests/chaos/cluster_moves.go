package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// move moves the slot of a tag to another node, while calls go on. Then it compares all data.
func (c *clusterRun) move(tag string) error {
	from := c.owner[tag]
	to := (from + 1 + c.g.IntN(numNodes-1)) % numNodes
	kind, err := "MIGRATE", error(nil)
	if atomic := c.atomicKind(); atomic != "" && c.g.IntN(2) == 0 {
		kind = atomic
		err = c.moveAtomic(tag, atomic, c.nodes[from], c.nodes[to])
	} else {
		err = c.moveKeys(tag, c.nodes[from], c.nodes[to])
	}
	if err != nil {
		return err
	}
	c.tally["moves by "+kind]++
	if *verboseFlag {
		fmt.Printf("step %d: %s moved from node %d to node %d by %s\n", c.number, tag, from, to, kind)
	}
	c.owner[tag] = to
	if err := c.again(tag); err != nil {
		return err
	}
	if len(c.later) > 0 {
		return c.differ("%q got TRYAGAIN after the move of the slot", []string(c.later[0]))
	}
	return c.compare()
}

// moveKeys moves a slot by MIGRATE of a few keys at a time.
func (c *clusterRun) moveKeys(tag string, from, to *node) error {
	slot := c.slot(tag)
	if err := c.accept(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id); err != nil {
		return err
	}
	if err := c.accept(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id); err != nil {
		return err
	}
	for {
		if err := c.inBetween(tag); err != nil {
			return err
		}
		names := from.client.ClusterGetKeysInSlot(ctx, slot, 1+c.g.IntN(4)).Val()
		if len(names) == 0 {
			break
		}
		err := c.unchanged("MIGRATE", func() error {
			words := append([]any{"MIGRATE", "127.0.0.1", to.Port, "", 0, patience.Milliseconds(), "KEYS"}, anys(names)...)
			c.tally["keys by MIGRATE"] += len(names)
			return c.accept(from, words...)
		})
		if err != nil {
			return err
		}
	}
	for _, n := range []*node{to, from, c.nodes[0], c.nodes[1], c.nodes[2]} {
		if err := c.accept(n, "CLUSTER", "SETSLOT", slot, "NODE", to.id); err != nil {
			return err
		}
		if err := c.inBetween(tag); err != nil {
			return err
		}
	}
	return nil
}

// inBetween makes calls while a slot moves.
func (c *clusterRun) inBetween(tag string) error {
	if err := c.again(tag); err != nil {
		return err
	}
	switch c.g.IntN(6) {
	case 0:
		return nil
	case 1:
		return c.pass(c.g.Int64N(second))
	}
	return c.batch(tag, 1+c.g.IntN(12))
}

// accept sends a command that must be accepted.
func (c *clusterRun) accept(n *node, words ...any) error {
	if reply := n.ask(words...); reply != "OK" {
		return c.differ("%v: %s", words, reply)
	}
	return nil
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

// moveAtomic lets the servers move a slot. Their clocks run meanwhile.
func (c *clusterRun) moveAtomic(tag, kind string, from, to *node) error {
	slot := c.slot(tag)
	if err := c.letClocksRun(); err != nil {
		return err
	}
	run := func(calls bool) error {
		asked, words, done, earlier := to, []any{"CLUSTER", "MIGRATION", "STATUS", "ID", ""}, "state completed", 0
		if kind == "MIGRATESLOTS" {
			earlier = strings.Count(from.ask("CLUSTER", "GETSLOTMIGRATIONS"), "state success") // its reply lists all moves
			if err := c.accept(from, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to.id); err != nil {
				return err
			}
			asked, words, done = from, []any{"CLUSTER", "GETSLOTMIGRATIONS"}, "state success"
		} else {
			words[4] = to.ask("CLUSTER", "MIGRATION", "IMPORT", slot, slot)
		}
		var err error
		last := ""
		e := c.eventually("the slot has moved", func() bool {
			if calls && err == nil {
				err = c.batch(tag, 1+c.g.IntN(30))
			}
			last = asked.ask(words...)
			return err != nil || strings.Count(last, done) > earlier && from.client.ClusterCountKeysInSlot(ctx, slot).Val() == 0
		})
		if err == nil && e != nil {
			err = fmt.Errorf("%w; %v: %s", e, words, last)
		}
		return err
	}
	err := error(nil)
	if c.g.IntN(3) == 0 {
		err = c.unchanged(kind, func() error { return run(false) })
	} else {
		err = run(true)
	}
	if err != nil {
		return err
	}
	return c.setClocks(c.clocks[0].Wall + time.Now().UnixMicro())
}

// union returns every key of the cluster, but for those of the clocks. A key is at one node, and once
// its slot has moved, that node owns it.
func (c *clusterRun) union() (all map[string]*value, at map[string]int, err error) {
	all, at = map[string]*value{}, map[string]int{}
	for i, n := range c.nodes {
		for key, v := range n.dataset() {
			if all[key] != nil {
				return nil, nil, c.differ("%s is at two nodes: %v and %v", key, all[key], v)
			}
			all[key], at[key] = v, i
		}
	}
	return all, at, nil
}

// dataset returns every key of the node, but for that of the clock. The node must not reply ASK for
// keys of slots that come to it, so ASKING stands before each command.
func (n *node) dataset() map[string]*value {
	all := map[string]*value{}
	names := n.client.Keys(ctx, "*").Val()
	for _, name := range names {
		p := n.client.Pipeline()
		var one []redis.Cmder
		for _, read := range []func() redis.Cmder{
			func() redis.Cmder { return p.Type(ctx, name) },
			func() redis.Cmder { return p.Do(ctx, "PEXPIRETIME", name) },
			func() redis.Cmder { return p.HGetAll(ctx, name) },
			func() redis.Cmder { return p.Get(ctx, name) },
			func() redis.Cmder { return p.ZRangeWithScores(ctx, name, 0, -1) },
		} {
			p.Do(ctx, "ASKING")
			one = append(one, read())
		}
		_, _ = p.Exec(ctx) // most reads give an error: each value has one type only
		if v := valueOf(one); name != n.probe && v.typ != "none" {
			all["0 "+name] = v
		}
	}
	return all
}

// slackOfExpiry is how far apart two servers' clocks may be if they do not stand still, in ms.
const slackOfExpiry = 2000

// unchanged checks that a move of keys leaves values and expiries as they were.
func (c *clusterRun) unchanged(what string, move func() error) error {
	before, _, err := c.union()
	if err != nil {
		return err
	}
	if err := move(); err != nil {
		return err
	}
	after, _, err := c.union()
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		a, b := before[key], after[key]
		if c.drifts && a != nil && a.expire > 0 && b.expire > 0 && a.expire-slackOfExpiry < b.expire && b.expire < a.expire+slackOfExpiry {
			a.expire = b.expire
		}
	}
	return c.alike(what, before, after)
}

// compare checks that the cluster holds what the model holds, and that each key is at the owner of its
// slot only.
func (c *clusterRun) compare() error {
	all, at, err := c.union()
	if err != nil {
		return err
	}
	for key, i := range at {
		for _, tag := range tags {
			if strings.Contains(key, "{"+tag+"}") && c.owner[tag] != i {
				return c.differ("%s is at node %d, want %d", key, i, c.owner[tag])
			}
		}
	}
	for _, n := range c.nodes {
		if panics := n.info("gothrottle", "gothrottle_panics"); panics != "0" {
			return c.differ("the module's panics: %q", panics)
		}
		if line := warning(n.LogFile); line != "" {
			return c.differ("the log of %s: %s", n.name, line)
		}
	}
	if c.drifts {
		for _, e := range c.m.dbs[0] {
			e.latest = 0 // MIGRATE sends the remaining time to a server whose clock is another one
		}
	}
	c.stats.compared += len(all)
	return c.holds(all)
}

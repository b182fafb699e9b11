package tests

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A topology: three masters, three replicas, and a client that knows all six.
func TestCluster(t *testing.T) { startCluster(t).test(t) }

func TestCluster_ioThreads(t *testing.T) { startCluster(t, ioThreads...).test(t) }

func (c *cluster) test(t *testing.T) {
	t.Run("every command finds its node", c.testRouting)
	t.Run("a client redirects no call", c.testNoRedirection)
	t.Run("a call with keys of several slots is refused", c.testCrossSlot)
	t.Run("a migrated slot keeps its limiters", c.testMigration)
	t.Run("a master with a replica takes pipelines", c.testPipelines)
	t.Run("a failover keeps the limiters", c.testFailover)
}

func (c *cluster) testRouting(t *testing.T) {
	moved := 0
	for name, sample := range samples {
		for i := range 12 {
			key := fmt.Sprint("{", i, "}", name)
			assert.Equal(t, sample.Sample.First, flat(c.clients.Do(ctx, sample.on(key)...).Result()), "%s %d", name, i)
			assert.Equal(t, sample.Sample.Second, flat(c.clients.Do(ctx, sample.on(key)...).Result()), "%s %d", name, i)
			// A node that does not serve the slot names the node that does.
			err := c.nodes[i%3].Do(ctx, sample.on(key)...).Err()
			if owner := c.slot(key) * 3 / slots; owner != int64(i%3) {
				assert.ErrorContains(t, err, "MOVED ", name)
				moved++
			} else {
				assert.NoError(t, failure(err), name)
			}
		}
	}
	assert.Greater(t, moved, 20)
	// Several keys of one slot. The hash tag makes the slot the same.
	assert.Equal(t, "[0 5 4 -1 60 1 [0 10 9 -1 36000] [0 5 4 -1 60] [0 1000 999 -1 3600]]",
		c.ask("GO.ALL {u}a THROTTLE 9 10 360000 1 THROTTLE 4 1 60 1 KEY {u}b THROTTLE 999 1 3600 1"))
	// A script that calls the module.
	reply, err := c.clients.Eval(ctx, "return redis.call('GO.WINDOW', KEYS[1], 5, 60)", []string{"{u}script"}).Slice()
	assert.Equal(t, "[0 5 4 -1 60]", flat(reply, err))
	// After READONLY a replica answers read-only commands. It redirects the others.
	key := "replica"
	owner := c.slot(key) * 3 / slots
	require.NoError(t, c.clients.Do(ctx, "GO.WINDOW", key, 5, 3600, 2).Err())
	inStep(t, c.nodes[owner], c.nodes[owner+3])
	w := c.nodes[owner+3].session()
	assert.Regexp(t, "^MOVED ", w.do("GO.WINDOW_RO", key, 5, 3600, 0))
	require.Equal(t, "OK", w.do("READONLY"))
	assert.Regexp(t, `^\[0 5 3 -1 3[56]..]$`, fmt.Sprint(w.do("GO.WINDOW_RO", key, 5, 3600, 0)))
	for name, sample := range samples {
		reply := flat(w.do(sample.on("{"+key+"}"+name)...), nil)
		if sample.writes() {
			assert.Regexp(t, "^MOVED ", reply, name)
		} else {
			assert.Equal(t, sample.Sample.First, reply, name)
		}
	}
	// Several keys of one slot, even at a replica.
	call := fmt.Sprintf("GO.ALL_RO {%[1]s}x THROTTLE 9 1 60 KEY %[1]s WINDOW 5 3600 0 KEY {%[1]s}y QUOTA 9 60", key)
	assert.Regexp(t, `^\[0 5 3 -1 3[56].. 1 \[0 10 9 -1 60] \[0 5 3 -1 3[56]..] \[0 9 8 -1 60]]$`, fmt.Sprint(w.do(fields(call)...)))
	require.Equal(t, "OK", w.do("READWRITE"))
	assert.Regexp(t, "^MOVED ", w.do(fields(call)...))
}

// The client sends a call to the node of its first word. No call is redirected once the client
// knows the slots.
func (c *cluster) testNoRedirection(t *testing.T) {
	redirections := func() (n int) {
		for _, node := range c.nodes {
			moved := 0
			_, _ = fmt.Sscanf(node.info("errorstats", "errorstat_MOVED"), "count=%d", &moved)
			n += moved
		}
		return n
	}
	require.NoError(t, c.clients.Ping(ctx).Err())
	c.clients.ReloadState(ctx)
	before, nodes := redirections(), map[int64]bool{}
	for i := range 60 {
		tag := fmt.Sprintf("{user%d}", i)
		nodes[c.slot(tag)*3/slots] = true
		for _, suffix := range []string{"", "_RO"} {
			call := fmt.Sprintf("GO.ALL%[2]s %[1]srpm THROTTLE 59 60 60 KEY %[1]stpm THROTTLE 9999 10000 60 40 "+
				"KEY %[1]sspend QUOTA 500 86400 3 ALIGN 0 KEY %[1]scalls LEASE 3 600 id", tag, suffix)
			assert.Regexp(t, `^\[0 3 2 -1 600 3 \[0 `, c.ask(call), call)
		}
		for name, sample := range samples {
			assert.NoError(t, failure(c.clients.Do(ctx, sample.on(tag+name)...).Err()), name)
		}
	}
	assert.Len(t, nodes, 3, "masters that were called")
	assert.Equal(t, before, redirections(), "calls that were redirected")
	// The counter works: a node redirects a call for the key of another node.
	for _, node := range c.nodes[:3] {
		node.Do(ctx, "GO.ALL", "{user1}rpm", "QUOTA", 1, 60)
	}
	assert.Greater(t, redirections(), before)
}

func (c *cluster) testCrossSlot(t *testing.T) {
	// foo and bar have different slots. One key of another slot is enough, in each position.
	for _, keys := range []string{"foo bar", "foo {foo}x bar", "bar foo", "bar {bar}x foo {foo}x", "foo {foo}x {foo}y bar"} {
		for _, clause := range []string{"THROTTLE 9 1 60", "WINDOW 9 60 1 EXACT", "QUOTA 9 60 ALIGN 0", "LEASE 9 60 KEY"} {
			var groups []string
			for _, key := range strings.Fields(keys) {
				groups = append(groups, key+" "+clause)
			}
			owner := c.nodes[c.slot(strings.Fields(keys)[0])*3/slots]
			for _, n := range c.nodes {
				want := "CROSSSLOT "
				if n != owner && !n.asks() {
					want = "MOVED " // the server sees the first key only
				}
				assert.ErrorContains(t, n.Do(ctx, allOf(groups...)...).Err(), want, keys)
			}
			assert.ErrorContains(t, c.clients.Do(ctx, allOf(groups...)...).Err(), "CROSSSLOT ", keys)
		}
	}
	// COMMAND GETKEYS shows the keys that the server sees.
	seen := []any{"foo"}
	if c.nodes[0].asks() {
		seen = append(seen, "bar")
	}
	w := c.nodes[0].session()
	assert.Equal(t, seen, getKeys(t, w, fields("GO.ALL foo QUOTA 9 60 KEY bar QUOTA 9 60"), keyFlags(samples["GO.ALL"])))
	// The same words as ids of leases are no keys.
	assert.Equal(t, "[0 9 8 -1 60 0 [0 9 8 -1 60 0] [0 9 8 -1 60 0]]",
		c.ask("GO.ALL {foo}a LEASE 9 60 bar KEY {foo}b LEASE 9 60 KEY"))
	require.NoError(t, c.clients.Del(ctx, "{foo}a", "{foo}b").Err())
	for _, key := range []string{"foo", "bar", "{foo}x"} {
		assert.Zero(t, c.clients.Exists(ctx, key).Val())
	}
}

func (c *cluster) testMigration(t *testing.T) {
	const tag = "moving"
	keys, slot := c.fill(tag), c.slot("{"+tag+"}")
	from := c.nodes[slot*3/slots]
	to, toIndex := c.nodes[(slot*3/slots+1)%3], (slot*3/slots+1)%3
	before := c.peeks(tag)
	want, expiries := states(t, from, keys)
	require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[slot*3/slots]).Err())
	require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[toIndex]).Err())
	host, port, _ := net.SplitHostPort(to.addr)
	// The keys move one by one. In between, calls reach each key where it is. A call with keys on
	// both nodes gets TRYAGAIN.
	for i, key := range keys {
		require.NoError(t, from.Do(ctx, "MIGRATE", host, port, key, 0, 5000).Err(), key)
		assert.Equal(t, before, c.peeks(tag), "after %d keys", i+1)
		if i == 0 {
			c.tryAgain(t, from, to, keys[0]+" THROTTLE 15 30 108000 1", keys[1]+" THROTTLE 15 7 108000 1")
			assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", key, 15, 30, 108000).Err(), "ASK ")
			assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", "{"+tag+"}new", 15, 30, 108000).Err(), "ASK ")
		}
	}
	// All keys of a call are at the other node, and the client follows.
	all := fmt.Sprintf("GO.ALL {%[1]s}rpm THROTTLE 59 1 3600 0 KEY {%[1]s}log2 WINDOW 9 3600 1 KEY {%[1]s}spend QUOTA 99 3600 0", tag)
	assert.ErrorContains(t, from.Do(ctx, fields(all)...).Err(), "ASK ")
	assert.Regexp(t, `^\[0 9 6 `, c.ask(all))
	assert.Regexp(t, `^\[0 9 7 `, c.ask(strings.Replace(all, "3600 1", "3600 -1", 1)))
	for _, i := range []int64{toIndex, slot * 3 / slots} {
		require.NoError(t, c.nodes[i].Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[toIndex]).Err())
	}
	got, later := states(t, to, keys)
	for _, state := range []map[string]string{want, got} {
		delete(state, "{"+tag+"}log2") // the calls above changed log2
	}
	delete(expiries, "{"+tag+"}log2")
	assert.Equal(t, want, got)
	for key, at := range expiries { // MIGRATE sends the remaining time, so the expiry may become later
		assert.True(t, later[key] >= at && later[key] <= at+patience.Milliseconds(), "%s: %d, was %d", key, later[key], at)
	}
	assert.Equal(t, before, c.peeks(tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE {moving}hash 15 30 108000"))
	assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", keys[0], 15, 30, 108000).Err(), "MOVED ")
}

// tryAgain checks the replies to calls with two keys while their slot moves. The key of gone is
// at the node to, and the key of here is at the node from.
func (c *cluster) tryAgain(t *testing.T, from, to *server, gone, here string) {
	t.Helper()
	assert.ErrorContains(t, from.Do(ctx, allOf(here, gone)...).Err(), "TRYAGAIN ")
	want := "TRYAGAIN "
	if !from.asks() {
		want = "ASK " // the server sees the first key only
	}
	assert.ErrorContains(t, from.Do(ctx, allOf(gone, here)...).Err(), want)
	// Where a client comes to after ASK.
	w := to.session()
	for _, call := range [][]any{allOf(gone, here), allOf(here, gone)} {
		require.Equal(t, "OK", w.do("ASKING"))
		assert.Regexp(t, "^TRYAGAIN ", w.do(call...), call)
	}
}

// The replica receives every effect of pipelines that several connections send to its master.
func (c *cluster) testPipelines(t *testing.T) {
	var tags, keys []string
	for i := 0; len(tags) < 8; i++ {
		if tag := fmt.Sprint("pipe", i); c.slot(tag)*3/slots == 1 {
			tags = append(tags, tag)
		}
	}
	master, replica := c.nodes[1], c.nodes[4]
	master.pipelines(t, tags)
	for _, tag := range tags {
		for _, kind := range []string{"THROTTLE", "WINDOW", "QUOTA"} {
			keys = append(keys, "{"+tag+"}"+kind)
		}
	}
	inStep(t, master, replica)
	want := contents(t, master, keys)
	require.Greater(t, len(want), 12)
	same(t, want, contents(t, replica, keys), "replica")
}

// contents returns the values and expiries of the keys that exist at a node, which may be a replica.
func contents(t *testing.T, n *server, keys []string) map[string]string {
	t.Helper()
	w, all := n.session(), map[string]string{}
	require.Equal(t, "OK", w.do("READONLY"))
	for _, key := range keys {
		if dump, ok := w.do("DUMP", key).(string); ok {
			all[key] = fmt.Sprintf("%q %v", dump, w.do("PEXPIRETIME", key))
		}
	}
	return all
}

func (c *cluster) testFailover(t *testing.T) {
	// A hash tag whose slot the first master serves.
	tag := "failing"
	for i := 0; c.slot("{"+tag+"}")*3/slots != 0; i++ {
		tag = fmt.Sprint("failing", i)
	}
	keys := c.fill(tag)
	before := c.peeks(tag)
	inStep(t, c.nodes[0], c.nodes[3])
	want, expiries := states(t, c.nodes[0], keys)
	for _, n := range c.nodes { // until now a busy machine must not look like a failure
		require.NoError(t, n.ConfigSet(ctx, "cluster-node-timeout", "2000").Err())
	}
	redis.SetLogger(quiet{}) // the client would log every attempt to reach the killed node
	c.nodes[0].run.Kill()
	require.NoError(t, c.run.AwaitOwner(0, c.nodes[3].run))
	got, same := states(t, c.nodes[3], keys)
	assert.Equal(t, want, got)
	assert.Equal(t, expiries, same)
	eventually(t, "the client reaches the new master", func() bool { return strings.HasPrefix(c.ask("GO.QUOTA {"+tag+"}quota 16 3600 0"), "[") })
	assert.Equal(t, before, c.peeks(tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE {"+tag+"}hash 15 30 108000"))
	assert.Equal(t, "1", c.ask("GO.RELEASE {"+tag+"}lease id"))
}

package tests

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

const slots = servers.Slots

// cluster is three masters, three replicas and a client that knows all six.
type cluster struct {
	run     *servers.Cluster
	nodes   []*server // nodes 0 to 2 start as masters, node 3+i as the replica of node i
	clients *redis.ClusterClient
}

// startCluster creates a cluster. The arguments are those of every node, besides the usual ones.
func startCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	lasts(t)
	localOnly(t)
	c := &cluster{run: servers.NewCluster(t, 3, 1, launch(options{Args: append([]string{"--cluster-node-timeout", "10000",
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync", "yes"}, args...)}))}
	var addrs []string
	for _, n := range c.run.Nodes {
		c.nodes, addrs = append(c.nodes, connect(t, n)), append(addrs, n.Addr)
	}
	c.clients = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DisableIdentity: true,
		MaxRedirects: 8, DialerRetries: 1, ClusterStateReloadInterval: 100 * time.Millisecond, ReadTimeout: patience,
		MinRetryBackoff: 20 * time.Millisecond, MaxRetryBackoff: 200 * time.Millisecond,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	t.Cleanup(func() { c.clients.Close() })
	return c
}

// owner returns the number of the master that first serves a key, and its slot.
func (c *cluster) owner(key string) (node, slot int) {
	slot = int(c.nodes[0].ClusterKeySlot(ctx, key).Val())
	return slot * 3 / slots, slot
}

// tag returns a hash tag, which begins with a name, of a slot that this master serves.
func (c *cluster) tag(name string, node int) string {
	for i := 0; ; i++ {
		tag := fmt.Sprintf("{%s%d}", name, i)
		if owner, _ := c.owner(tag); owner == node {
			return tag
		}
	}
}

// ask sends a line through the cluster client and returns the reply as text.
func (c *cluster) ask(call string) string { return flat(c.clients.Do(ctx, fields(call)...).Result()) }

// No transcript has a cluster.
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
	for name, sample := range samples {
		for node := range 3 {
			words := sample.on(c.tag("routed", node) + name)
			assert.Equal(t, sample.Sample.First, flat(c.clients.Do(ctx, words...).Result()), "%s %d", name, node)
			assert.Equal(t, sample.Sample.Second, flat(c.clients.Do(ctx, words...).Result()), "%s %d", name, node)
			// A node that does not serve the slot names the node that does.
			assert.NoError(t, failure(c.nodes[node].Do(ctx, words...).Err()), name)
			assert.ErrorContains(t, c.nodes[(node+1)%3].Do(ctx, words...).Err(), "MOVED ", name)
		}
	}
	// After READONLY a replica answers read-only commands, also with several keys of one slot. It redirects the others.
	w, tag := c.nodes[3].session(), c.tag("read", 0)
	several := fields(strings.ReplaceAll("GO.ALL_RO {}x THROTTLE 9 1 60 KEY {}y QUOTA 9 60", "{}", tag))
	assert.Regexp(t, "^MOVED ", w.do(several...))
	require.Equal(t, "OK", w.do("READONLY"))
	assert.Equal(t, "[0 9 8 -1 60 1 [0 10 9 -1 60] [0 9 8 -1 60]]", fmt.Sprint(w.do(several...)))
	for name, sample := range samples {
		if reply := flat(w.do(sample.on(tag+"replica"+name)...), nil); sample.Writes() {
			assert.Regexp(t, "^MOVED ", reply, name)
		} else {
			assert.Equal(t, sample.Sample.First, reply, name)
		}
	}
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
	before := redirections()
	for i := range 60 {
		tag := fmt.Sprintf("{user%d}", i)
		for _, suffix := range []string{"", "_RO"} {
			call := fmt.Sprintf("GO.ALL%[2]s %[1]srpm THROTTLE 59 60 60 KEY %[1]sspend QUOTA 500 86400 3 ALIGN 0 KEY %[1]scalls LEASE 3 600 id", tag, suffix)
			assert.Regexp(t, `^\[0 3 2 -1 600 2 \[0 `, c.ask(call), call)
		}
		for name, sample := range samples {
			assert.NoError(t, failure(c.clients.Do(ctx, sample.on(tag+name)...).Err()), name)
		}
	}
	assert.Equal(t, before, redirections(), "calls that were redirected")
}

func (c *cluster) testCrossSlot(t *testing.T) {
	// foo and bar have different slots. One key of another slot is enough, in each position.
	for _, keys := range []string{"foo bar", "foo {foo}x bar", "bar foo", "bar {bar}x foo {foo}x", "foo {foo}x {foo}y bar"} {
		owner, _ := c.owner(strings.Fields(keys)[0])
		for _, clause := range []string{"THROTTLE 9 1 60", "WINDOW 9 60 1 EXACT", "QUOTA 9 60 ALIGN 0", "LEASE 9 60 KEY"} {
			call := "GO.ALL " + strings.ReplaceAll(keys+" ", " ", " "+clause+" KEY ")
			call = strings.TrimSuffix(call, " KEY ")
			for i, n := range c.nodes {
				want := "CROSSSLOT "
				if i != owner && !n.asks() {
					want = "MOVED " // the server sees the first key only
				}
				assert.Contains(t, n.ask(call), want, call)
			}
			assert.Contains(t, c.ask(call), "CROSSSLOT ", call)
		}
	}
	for _, key := range []string{"foo", "bar", "{foo}x"} {
		assert.Zero(t, c.clients.Exists(ctx, key).Val())
	}
}

// The keys move one by one. In between, calls reach each key where it is. A call with keys on both nodes gets TRYAGAIN.
func (c *cluster) testMigration(t *testing.T) {
	tag := c.tag("moving", 0)
	keys, before := makeLimiters(t, c.ask, tag), peekLimiters(c.ask, tag)
	from, to := c.nodes[0], c.nodes[1]
	_, slot := c.owner(tag)
	require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.run.IDs[0]).Err())
	require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.run.IDs[1]).Err())
	host, port, _ := net.SplitHostPort(to.addr)
	for i, key := range keys {
		require.NoError(t, from.Do(ctx, "MIGRATE", host, port, key, 0, patience.Milliseconds()).Err(), key)
		assert.Equal(t, before, peekLimiters(c.ask, tag), "after %d keys", i+1)
		if i == 0 {
			c.tryAgain(t, from, to, keys[0]+" THROTTLE 15 30 108000 0", keys[1]+" THROTTLE 15 7 108000 0")
			assert.Contains(t, from.ask("GO.THROTTLE "+key+" 15 30 108000"), "ASK ")
			assert.Contains(t, from.ask("GO.THROTTLE "+tag+"new 15 30 108000"), "ASK ")
		}
	}
	for _, n := range []*server{to, from} {
		require.NoError(t, n.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", c.run.IDs[1]).Err())
	}
	assert.Equal(t, before, peekLimiters(c.ask, tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE "+tag+"hash 15 30 108000"))
	assert.Contains(t, from.ask("GO.THROTTLE "+tag+"hash 15 30 108000"), "MOVED ")
}

// tryAgain checks the replies to calls with two keys while their slot moves. The key of gone is
// at the node to, and the key of here is at the node from.
func (c *cluster) tryAgain(t *testing.T, from, to *server, gone, here string) {
	t.Helper()
	assert.Contains(t, from.ask("GO.ALL "+here+" KEY "+gone), "TRYAGAIN ")
	want := "TRYAGAIN "
	if !from.asks() {
		want = "ASK " // the server sees the first key only
	}
	assert.Contains(t, from.ask("GO.ALL "+gone+" KEY "+here), want)
	w := to.session() // where a client comes to after ASK
	for _, call := range []string{"GO.ALL " + gone + " KEY " + here, "GO.ALL " + here + " KEY " + gone} {
		require.Equal(t, "OK", w.do("ASKING"))
		assert.Regexp(t, "^TRYAGAIN ", w.do(fields(call)...), call)
	}
}

// contents returns what a node holds of the keys with a tag.
func (s *server) contents(tag string) map[string]string {
	all := s.dataset()
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.Contains(key, tag) })
	return all
}

// The replica receives every effect of pipelines that several connections send to its master.
func (c *cluster) testPipelines(t *testing.T) {
	tag := c.tag("pipe", 2)
	c.nodes[2].admitsExactly(t, tag)
	c.nodes[5].inStep(c.nodes[2])
	want := c.nodes[2].contents(tag)
	require.Len(t, want, 10)
	same(t, want, c.nodes[5].contents(tag), "replica")
}

func (c *cluster) testFailover(t *testing.T) {
	tag := c.tag("failing", 2)
	makeLimiters(t, c.ask, tag)
	before := peekLimiters(c.ask, tag)
	c.nodes[5].inStep(c.nodes[2])
	want := c.nodes[2].contents(tag)
	for _, n := range c.nodes { // until now a busy machine must not look like a failure
		require.NoError(t, n.ConfigSet(ctx, "cluster-node-timeout", "2000").Err())
	}
	c.nodes[2].run.Kill()
	eventually(t, "the client reaches the new master", func() bool { return strings.HasPrefix(c.ask("GO.QUOTA "+tag+"quota 16 3600 0"), "[") })
	same(t, want, c.nodes[5].contents(tag), "the new master")
	assert.Equal(t, before, peekLimiters(c.ask, tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE "+tag+"hash 15 30 108000"))
	assert.Equal(t, "1", c.ask("GO.RELEASE "+tag+"lease id"))
}

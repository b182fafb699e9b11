package tests

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const slots = 16384

// cluster is three masters, each with a replica, and a client that knows them all.
type cluster struct {
	t       *testing.T
	nodes   []*server // 0 to 2 were made masters, 3 to 5 their replicas
	ids     []string
	clients *redis.ClusterClient
}

// startCluster makes a cluster the way redis-cli does.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	if env.image != "" {
		t.Skip("the nodes of a cluster tell each other and the client their addresses, which inside " +
			"containers are not those that this process can reach; the local run has this test")
	}
	c := &cluster{t: t}
	for range 6 {
		c.nodes = append(c.nodes, start(t, options{args: []string{"--cluster-enabled", "yes",
			"--cluster-port", freePort(t), "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
			"--repl-diskless-sync", "yes"}}))
	}
	var addrs []string
	for i, n := range c.nodes {
		require.NoError(t, n.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		c.ids = append(c.ids, n.Do(ctx, "CLUSTER", "MYID").Val().(string))
		addrs = append(addrs, n.addr)
		if i < 3 {
			require.NoError(t, n.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1).Err())
		}
	}
	for _, n := range c.nodes[1:] {
		host, port, _ := net.SplitHostPort(n.addr)
		bus := n.ConfigGet(ctx, "cluster-port").Val()["cluster-port"]
		require.NoError(t, c.nodes[0].Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
	}
	c.everyNode("knows all", func(n *server) bool {
		info := n.ClusterInfo(ctx).Val()
		return strings.Contains(info, "cluster_known_nodes:6\r") && strings.Contains(info, "cluster_slots_ok:16384\r")
	})
	for i, n := range c.nodes[3:] {
		eventually(t, "it may replicate", func() bool { return n.Do(ctx, "CLUSTER", "REPLICATE", c.ids[i]).Err() == nil })
	}
	c.everyNode("sees three replicas, and all is well", func(n *server) bool {
		return strings.Contains(n.ClusterInfo(ctx).Val(), "cluster_state:ok\r") &&
			strings.Count(n.ClusterNodes(ctx).Val(), " slave ")+strings.Count(n.ClusterNodes(ctx).Val(), "myself,slave ") == 3
	})
	for i, n := range c.nodes[3:] {
		inStep(t, c.nodes[i], n)
	}
	c.clients = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DisableIdentity: true,
		MaxRedirects: 8, DialerRetries: 1, ClusterStateReloadInterval: 100 * time.Millisecond, ReadTimeout: patience, MinRetryBackoff: 20 * time.Millisecond, MaxRetryBackoff: 200 * time.Millisecond,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	t.Cleanup(func() { c.clients.Close() })
	return c
}

// everyNode waits until ok holds for each node that lives.
func (c *cluster) everyNode(what string, ok func(*server) bool) {
	c.t.Helper()
	for _, n := range c.nodes {
		if !n.exited() {
			eventually(c.t, "every node "+what, func() bool { return ok(n) })
		}
	}
}

// slot returns the hash slot of a key.
func (c *cluster) slot(key string) int64 {
	c.t.Helper()
	n, err := c.nodes[0].ClusterKeySlot(ctx, key).Result()
	require.NoError(c.t, err)
	return n
}

// ask sends a line through the cluster client and returns the reply as text.
func (c *cluster) ask(call string) string { return flat(c.clients.Do(ctx, fields(call)...).Result()) }

// fill makes one limiter of every kind under a hash tag and returns their keys.
func (c *cluster) fill(tag string) (keys []string) {
	c.t.Helper()
	for _, call := range []string{
		"GO.THROTTLE {%s}hash 15 30 108000 3", "GO.THROTTLE {%s}frac 15 7 108000 3", "GO.WINDOW {%s}log 16 3600 3",
		"GO.WINDOW {%s}log 16 3600 -1", "GO.WINDOW {%s}parts 1000 3153600000 3", "GO.QUOTA {%s}quota 16 3600 3",
		"GO.MTHROTTLE 2 {%[1]s}cells {%[1]s}cells 15 30 108000 3 1 1 3600 1", "GO.LEASE {%s}lease 3 3600 id",
	} {
		words := fields(fmt.Sprintf(call, tag))
		require.NoError(c.t, c.clients.Do(ctx, words...).Err(), call)
		key := words[1].(string)
		if key == "2" {
			key = words[2].(string)
		}
		keys = append(keys, key)
	}
	return keys
}

// states returns what a node holds at keys, and when they expire.
func states(t *testing.T, n *server, keys []string) (values map[string]string, expiries map[string]int64) {
	t.Helper()
	values, expiries = map[string]string{}, map[string]int64{}
	for _, key := range keys {
		dump, err := n.Dump(ctx, key).Result()
		require.NoError(t, err, key)
		values[key], expiries[key] = dump, n.expiry(key)
	}
	return values, expiries
}

// peeks are the replies of the limiters that fill made.
func (c *cluster) peeks(tag string) string {
	c.t.Helper()
	all := ""
	for _, call := range []string{
		"GO.THROTTLE_RO {%s}hash 15 30 108000 0", "GO.THROTTLE {%s}frac 15 7 108000 0", "GO.WINDOW {%s}log 16 3600 0",
		"GO.WINDOW_RO {%s}parts 1000 3153600000 0", "GO.QUOTA {%s}quota 16 3600 0",
		"GO.MTHROTTLE 2 {%[1]s}cells {%[1]s}cells 15 30 108000 0 1 1 3600 0", "GO.LEASE {%s}lease 1 3600 other",
	} {
		reply := c.ask(fmt.Sprintf(call, tag))
		require.True(c.t, strings.HasPrefix(reply, "["), "%s: %s", call, reply)
		var limited, limit, remaining int
		_, err := fmt.Sscanf(reply, "[%d %d %d", &limited, &limit, &remaining)
		require.NoError(c.t, err)
		all += fmt.Sprintln(call, limited, limit, remaining) // the times go on
	}
	return all
}

func TestCluster(t *testing.T) {
	c := startCluster(t)
	t.Run("every command finds its node", c.testRouting)
	t.Run("keys of several slots are refused", c.testCrossSlot)
	t.Run("a slot moves with its limiters", c.testMigration)
	t.Run("a failover keeps the limiters", c.testFailover)
}

func (c *cluster) testRouting(t *testing.T) {
	moved := 0
	for name, sample := range samples {
		for i := range 12 {
			key := fmt.Sprint("{", i, "}", name)
			assert.Equal(t, sample.first, flat(c.clients.Do(ctx, sample.on(key)...).Result()), "%s %d", name, i)
			assert.Equal(t, sample.second, flat(c.clients.Do(ctx, sample.on(key)...).Result()), "%s %d", name, i)
			// A node that does not hold the slot says who does, for any key of the call.
			err := c.nodes[i%3].Do(ctx, sample.on(key)...).Err()
			if owner := c.slot(key) * 3 / slots; owner != int64(i%3) {
				assert.ErrorContains(t, err, "MOVED ", name)
				moved++
			} else {
				assert.NoError(t, err, name)
			}
		}
	}
	assert.Greater(t, moved, 20)
	// Several keys of one slot, by their tag.
	assert.Equal(t, "[0 -1 -1 [0 10 9 -1 36000] [0 1000 999 -1 3600] [0 5 4 -1 60]]",
		c.ask("GO.MTHROTTLE 3 {u}a {u}b {u}a 9 10 360000 1 999 1 3600 1 4 1 60 1"))
	// A script on its keys.
	reply, err := c.clients.Eval(ctx, "return redis.call('GO.WINDOW', KEYS[1], 5, 60)", []string{"{u}script"}).Slice()
	assert.Equal(t, "[0 5 4 -1 60]", flat(reply, err))
	// A replica that may be read answers the read-only ones, and sends the others on.
	key := "replica"
	owner := c.slot(key) * 3 / slots
	require.NoError(t, c.clients.Do(ctx, "GO.WINDOW", key, 5, 3600, 2).Err())
	inStep(t, c.nodes[owner], c.nodes[owner+3])
	w := c.nodes[owner+3].wire()
	assert.Regexp(t, "^MOVED ", w.do("GO.WINDOW_RO", key, 5, 3600, 0))
	require.Equal(t, status("OK"), w.do("READONLY"))
	assert.Equal(t, []any{int64(0), int64(5), int64(3), int64(-1), int64(3600)}, w.do("GO.WINDOW_RO", key, 5, 3600, 0))
	assert.Regexp(t, "^MOVED ", w.do("GO.WINDOW", key, 5, 3600, 0))
}

func (c *cluster) testCrossSlot(t *testing.T) {
	// foo and bar are of different slots, wherever they stand.
	for _, keys := range []string{"foo bar", "foo foo bar", "foo {foo}x bar", "bar foo", "bar bar bar foo bar"} {
		names := strings.Fields(keys)
		of := make([]string, len(names))
		for i := range of {
			of[i] = "9 1 60 1"
		}
		for _, n := range c.nodes {
			assert.ErrorContains(t, n.Do(ctx, limits(names, of)...).Err(), "CROSSSLOT ", keys)
		}
		assert.ErrorContains(t, c.clients.Do(ctx, limits(names, of)...).Err(), "CROSSSLOT ", keys)
	}
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
	// Key by key: in between, calls go where the key is, and a call with keys on both
	// sides is asked to come again.
	for i, key := range keys {
		require.NoError(t, from.Do(ctx, "MIGRATE", host, port, key, 0, 5000).Err(), key)
		assert.Equal(t, before, c.peeks(tag), "after %d keys", i+1)
		if i == 0 {
			call := limits([]string{keys[0], keys[1]}, []string{"15 30 108000 0", "15 7 108000 0"})
			assert.ErrorContains(t, from.Do(ctx, call...).Err(), "TRYAGAIN ")
			assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", key, 15, 30, 108000).Err(), "ASK ")
			assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", "{"+tag+"}new", 15, 30, 108000).Err(), "ASK ")
		}
	}
	for _, i := range []int64{toIndex, slot * 3 / slots} {
		require.NoError(t, c.nodes[i].Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[toIndex]).Err())
	}
	got, later := states(t, to, keys)
	assert.Equal(t, want, got)
	for key, at := range expiries { // MIGRATE itself sends what is left of it, so it may come out later
		assert.True(t, later[key] >= at && later[key] <= at+patience.Milliseconds(), "%s: %d, was %d", key, later[key], at)
	}
	assert.Equal(t, before, c.peeks(tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE {moving}hash 15 30 108000"))
	assert.ErrorContains(t, from.Do(ctx, "GO.THROTTLE", keys[0], 15, 30, 108000).Err(), "MOVED ")
}

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func (c *cluster) testFailover(t *testing.T) {
	// A tag of the first master's slots.
	tag := "failing"
	for i := 0; c.slot("{"+tag+"}")*3/slots != 0; i++ {
		tag = fmt.Sprint("failing", i)
	}
	keys := c.fill(tag)
	before := c.peeks(tag)
	inStep(t, c.nodes[0], c.nodes[3])
	want, expiries := states(t, c.nodes[0], keys)
	redis.SetLogger(quiet{}) // the client would tell of every attempt to reach the dead node
	c.nodes[0].kill()
	eventually(t, "the replica serves the slots", func() bool {
		return strings.Contains(c.nodes[3].ClusterNodes(ctx).Val(), "myself,master ") &&
			c.nodes[3].Do(ctx, "GO.WINDOW", keys[2], 16, 3600, 0).Err() == nil
	})
	got, same := states(t, c.nodes[3], keys)
	assert.Equal(t, want, got)
	assert.Equal(t, expiries, same)
	eventually(t, "the client has found it", func() bool { return strings.HasPrefix(c.ask("GO.QUOTA {"+tag+"}quota 16 3600 0"), "[") })
	assert.Equal(t, before, c.peeks(tag))
	assert.Regexp(t, `^\[0 16 12 `, c.ask("GO.THROTTLE {"+tag+"}hash 15 30 108000"))
	assert.Equal(t, "1", c.ask("GO.RELEASE {"+tag+"}lease id"))
}

package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"

	servers "gothrottle/tests/server"
)

// cluster is three masters, three replicas and a client that knows all six.
type cluster struct {
	nodes   []*server // nodes 0 to 2 are masters, node 3+i is the replica of node i
	clients *redis.ClusterClient
}

// No transcript has a cluster. Slots that move, and calls meanwhile, are in tests/chaos.
func TestCluster(t *testing.T) {
	lasts(t)
	localOnly(t)
	for _, args := range [][]string{nil, ioThreads} {
		c, addrs := &cluster{}, []string{}
		for _, n := range servers.NewCluster(t, 3, 1, launch(options{Args: args})) {
			c.nodes, addrs = append(c.nodes, connect(t, n)), append(addrs, n.Addr)
		}
		c.clients = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { c.clients.Close() })
		t.Run("every command finds its node", c.testRouting)
		t.Run("a call with keys of several slots is refused", c.testCrossSlot)
	}
}

// owner returns the number of the master that serves a key.
func (c *cluster) owner(key string) int {
	return int(c.nodes[0].ClusterKeySlot(ctx, key).Val()) * 3 / servers.Slots
}

// tag returns a hash tag of a slot that this master serves.
func (c *cluster) tag(node int) string {
	for i := 0; ; i++ {
		if tag := fmt.Sprintf("{%d}", i); c.owner(tag) == node {
			return tag
		}
	}
}

func (c *cluster) testRouting(t *testing.T) {
	for name, sample := range samples {
		for node := range 3 {
			words := sample.on(c.tag(node) + name)
			assert.Equal(t, sample.Sample.First, flat(c.clients.Do(ctx, words...).Result()), "%s %d", name, node)
			assert.Equal(t, sample.Sample.Second, flat(c.clients.Do(ctx, words...).Result()), "%s %d", name, node)
			// A node that does not serve the slot names the node that does.
			assert.NoError(t, failure(c.nodes[node].Do(ctx, words...).Err()), name)
			assert.ErrorContains(t, c.nodes[(node+1)%3].Do(ctx, words...).Err(), "MOVED ", name)
		}
	}
	// After READONLY a replica answers read-only commands, also with several keys of one slot. It redirects the others.
	w, tag := c.nodes[3].session(), c.tag(0)
	several := fields(strings.ReplaceAll("GO.ALL_RO {}x THROTTLE 9 1 60 KEY {}y QUOTA 9 60", "{}", tag))
	assert.Regexp(t, "^MOVED ", w.do(several...))
	assert.Equal(t, "OK", w.do("READONLY"))
	assert.Equal(t, "[0 9 8 -1 60 1 [0 10 9 -1 60] [0 9 8 -1 60]]", fmt.Sprint(w.do(several...)))
	for name, sample := range samples {
		if reply := flat(w.do(sample.on(tag+"replica"+name)...), nil); sample.Writes() {
			assert.Regexp(t, "^MOVED ", reply, name)
		} else {
			assert.Equal(t, sample.Sample.First, reply, name)
		}
	}
}

func (c *cluster) testCrossSlot(t *testing.T) {
	// foo and bar have different slots. One key of another slot is enough, in each position.
	for _, keys := range []string{"foo bar", "bar foo", "bar {bar}x foo {foo}x", "foo {foo}x {foo}y bar"} {
		call := "GO.ALL " + strings.ReplaceAll(keys, " ", " QUOTA 9 60 KEY ") + " QUOTA 9 60"
		for i, n := range c.nodes {
			want := "CROSSSLOT "
			if i != c.owner(keys[:3]) && !n.asks() {
				want = "MOVED " // the server sees the first key only
			}
			assert.Contains(t, n.ask(call), want, call)
		}
	}
	for _, key := range []string{"foo", "bar", "{foo}x"} {
		assert.Zero(t, c.clients.Exists(ctx, key).Val())
	}
}

package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

const slots = servers.Slots

// cluster is three masters, three replicas and a client that knows all six.
type cluster struct {
	t       *testing.T
	run     *servers.Cluster
	nodes   []*server // nodes 0 to 2 start as masters, node 3+i as the replica of node i
	ids     []string
	clients *redis.ClusterClient
}

// startCluster creates a cluster. The arguments are those of every node, besides the usual ones.
func startCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	lasts(t)
	localOnly(t)
	c := &cluster{t: t, run: servers.NewCluster(t, 3, 1, options{args: append([]string{"--cluster-node-timeout", "10000",
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync", "yes"}, args...)}.launch())}
	c.ids = c.run.IDs
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

// slot returns the hash slot of a key.
func (c *cluster) slot(key string) int64 {
	c.t.Helper()
	n, err := c.nodes[0].ClusterKeySlot(ctx, key).Result()
	require.NoError(c.t, err)
	return n
}

// ask sends a line through the cluster client and returns the reply as text.
func (c *cluster) ask(call string) string { return flat(c.clients.Do(ctx, fields(call)...).Result()) }

// fill creates one limiter of every kind under a hash tag and returns the keys.
func (c *cluster) fill(tag string) (keys []string) {
	c.t.Helper()
	for _, call := range []string{
		"GO.THROTTLE {%s}hash 15 30 108000 3", "GO.THROTTLE {%s}frac 15 7 108000 3", "GO.WINDOW {%s}log 16 3600 3",
		"GO.WINDOW {%s}log 16 3600 -1", "GO.WINDOW {%s}parts 1000 3153600000 3", "GO.QUOTA {%s}quota 16 3600 3",
		"GO.ALL {%[1]s}cells THROTTLE 15 30 108000 3 THROTTLE 1 1 3600 1", "GO.LEASE {%s}lease 3 3600 id",
		"GO.ALL {%[1]s}rpm THROTTLE 59 1 3600 KEY {%[1]s}log2 WINDOW 9 3600 2 KEY {%[1]s}spend QUOTA 99 3600 7 KEY {%[1]s}calls LEASE 3 3600 id",
	} {
		words := fields(fmt.Sprintf(call, tag))
		require.NoError(c.t, c.clients.Do(ctx, words...).Err(), call)
		keys = append(keys, words[1].(string))
		if words[0] == "GO.ALL" {
			for i := range words {
				if words[i] == "KEY" {
					keys = append(keys, words[i+1].(string))
				}
			}
		}
	}
	return keys
}

// peeks returns what each limiter of fill replies to a peek, without the times.
func (c *cluster) peeks(tag string) string {
	c.t.Helper()
	all := ""
	for _, call := range []string{
		"GO.THROTTLE_RO {%s}hash 15 30 108000 0", "GO.THROTTLE {%s}frac 15 7 108000 0", "GO.WINDOW {%s}log 16 3600 0",
		"GO.WINDOW_RO {%s}parts 1000 3153600000 0", "GO.QUOTA {%s}quota 16 3600 0",
		"GO.ALL {%[1]s}cells THROTTLE 15 30 108000 0 THROTTLE 1 1 3600 0", "GO.LEASE {%s}lease 1 3600 other", "GO.LEASE_RO {%s}lease 3 3600 id",
		"GO.ALL_RO {%[1]s}rpm THROTTLE 59 1 3600 0", "GO.ALL_RO {%[1]s}log2 WINDOW 9 3600 0", "GO.ALL_RO {%[1]s}spend QUOTA 99 3600 0",
		"GO.ALL_RO {%[1]s}calls LEASE 3 3600 id",
	} {
		reply := c.ask(fmt.Sprintf(call, tag))
		require.True(c.t, strings.HasPrefix(reply, "["), "%s: %s", call, reply)
		var limited, limit, remaining int
		_, err := fmt.Sscanf(reply, "[%d %d %d", &limited, &limit, &remaining)
		require.NoError(c.t, err)
		all += fmt.Sprintln(call, limited, limit, remaining) // the times change from call to call
	}
	return all
}

// quiet is a logger that writes nothing.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// states returns the values at keys of a node, and the times at which the keys expire.
func states(t testing.TB, n *server, keys []string) (values map[string]string, expiries map[string]int64) {
	t.Helper()
	values, expiries = map[string]string{}, map[string]int64{}
	for _, key := range keys {
		dump, err := n.Dump(ctx, key).Result()
		require.NoError(t, err, key)
		values[key], expiries[key] = dump, n.expiry(key)
	}
	return values, expiries
}

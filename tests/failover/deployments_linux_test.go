package failover

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// callTimeout is the time limit of connections and of plain calls.
const callTimeout = 500 * time.Millisecond

// deployment is servers that fail over, and two hosts with clients. The clients at the island are cut off together with
// a master; the clients at the coast never are.
type deployment struct {
	t             *testing.T
	kind          string // "cluster" or "sentinel"
	net           *network
	shards        []*shard
	nodes         []*server
	sentinels     []*server
	coast, island *host
	nodeTimeout   time.Duration
}

// shard is the servers that hold the same keys. All keys of a shard have its tag.
type shard struct {
	tag   string
	nodes []*server
}

// universal is a client of go-redis that finds the master by itself.
type universal interface {
	throttle.Processor
	Do(ctx context.Context, args ...any) *redis.Cmd
	Close() error
}

// newCluster makes three masters with a replica each.
func newCluster(t *testing.T) *deployment {
	d := &deployment{t: t, kind: "cluster", net: newNetwork(t, "cluster"), nodeTimeout: time.Second}
	d.coast, d.island = d.net.host("coast"), d.net.host("isle")
	var runs []*servers.Server
	for i := range 6 {
		n := newServer(d.net, fmt.Sprint("n", i), servers.Options{Port: "6379", Cluster: true, Args: []string{"--repl-diskless-sync", "yes",
			"--cluster-node-timeout", fmt.Sprint(d.nodeTimeout.Milliseconds()), "--cluster-replica-validity-factor", "0"}})
		d.nodes, runs = append(d.nodes, n), append(runs, n.run)
	}
	_, err := servers.Join(3, runs...)
	require.NoError(t, err)
	for i, n := range d.nodes[:3] {
		d.shards = append(d.shards, &shard{nodes: []*server{n, d.nodes[i+3]}})
	}
	for i := 0; d.shards[0].tag == "" || d.shards[1].tag == "" || d.shards[2].tag == ""; i++ {
		tag := fmt.Sprintf("{%d}", i)
		d.shards[d.nodes[0].ClusterKeySlot(ctx, tag).Val()*3/servers.Slots].tag = tag
	}
	return d
}

// use lets this test fail from now on.
func (d *deployment) use(t *testing.T) {
	d.t, d.net.t = t, t
	for _, n := range append(d.nodes, d.sentinels...) {
		n.t = t
	}
}

// everyInfo reports whether CLUSTER INFO of each node has all texts.
func (d *deployment) everyInfo(texts ...string) bool {
	for _, n := range d.nodes {
		info := n.ClusterInfo(ctx).Val()
		for _, text := range texts {
			if !strings.Contains(info, text) {
				return false
			}
		}
	}
	return true
}

// newSentinel makes a master, two replicas and three Sentinels that watch them.
func newSentinel(t *testing.T, name string) *deployment {
	d := &deployment{t: t, kind: "sentinel", net: newNetwork(t, "sentinel-"+name), nodeTimeout: time.Second}
	d.coast, d.island = d.net.host("coast"), d.net.host("isle")
	for i := range 3 {
		n := newServer(d.net, fmt.Sprint("n", i), servers.Options{Port: "6379", Args: []string{"--repl-diskless-sync", "yes"}})
		d.nodes = append(d.nodes, n)
		if i > 0 {
			require.NoError(t, n.run.Follow(d.nodes[0].run))
		}
	}
	d.shards = []*shard{{tag: "{0}", nodes: d.nodes}}
	for i := range 3 {
		d.sentinels = append(d.sentinels, newServer(d.net, fmt.Sprint("s", i), servers.Options{Port: "26379", Sentinel: []string{
			fmt.Sprintf("sentinel monitor m %s 6379 2", d.nodes[0].ip), "sentinel parallel-syncs m 2", "sentinel failover-timeout m 6000",
			fmt.Sprintf("sentinel down-after-milliseconds m %d", d.nodeTimeout.Milliseconds())}}))
	}
	return d
}

// client returns a client that finds the masters.
func (d *deployment) client(from *host) universal {
	var addrs []string
	if d.kind == "sentinel" {
		for _, s := range d.sentinels {
			addrs = append(addrs, s.addr)
		}
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: addrs, Dialer: from.dial,
			DialTimeout: callTimeout, ReadTimeout: callTimeout, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true})
	}
	for _, n := range d.nodes {
		addrs = append(addrs, n.addr)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: from.dial, DialTimeout: callTimeout, ReadTimeout: callTimeout,
		DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: noNotifications})
}

// master returns the server that decides for a shard, or nil.
func (s *shard) master() *server {
	for _, n := range s.nodes {
		if n.replication("role") == "master" {
			return n
		}
	}
	return nil
}

// settle waits until each shard has one master, all other nodes are in step with it, and nothing counts as failed. It
// returns the masters.
func (d *deployment) settle() (masters []*server) {
	d.t.Helper()
	eventually(d.t, d.kind+" is whole", func() bool {
		masters = nil
		for _, s := range d.shards {
			m := s.master()
			if m == nil {
				return false
			}
			for _, n := range s.nodes {
				if n != m && !n.follows(m) {
					return false
				}
			}
			masters = append(masters, m)
		}
		return d.agreed(masters)
	})
	return masters
}

// agreed reports whether those who start failovers see these masters, and all replicas.
func (d *deployment) agreed(masters []*server) bool {
	for _, s := range d.sentinels {
		info := s.Info(ctx, "sentinel").Val()
		if !strings.Contains(info, "status=ok,address="+masters[0].addr+",slaves=2,sentinels=3") ||
			s.Do(ctx, "SENTINEL", "CKQUORUM", "m").Err() != nil {
			return false
		}
		replicas, _ := s.Do(ctx, "SENTINEL", "REPLICAS", "m").Slice()
		if text := fmt.Sprint(replicas...); len(replicas) != 2 || strings.Contains(text, "_down") || strings.Contains(text, "disconnected") ||
			strings.Count(text, "master-link-status:ok")+strings.Count(text, "master-link-status ok") != 2 {
			return false
		}
	}
	if d.kind == "sentinel" {
		return true
	}
	for _, n := range d.nodes {
		if text := n.ClusterNodes(ctx).Val(); strings.Contains(text, "fail") || strings.Count(text, "master") != 3 {
			return false
		}
	}
	return d.everyInfo("cluster_state:ok\r")
}

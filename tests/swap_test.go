package tests

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var threeNodes = []string{"6379", "6380", "6381"}

// The swap of docs/swap.md, step by step, while a client calls.
func TestSwap(t *testing.T) {
	s := newMachine(t, threeNodes)
	c := s.startCaller()
	s.swap(c, swapBlocks(t, "One master with replicas", 3))
	c.account(s.nodes["6380"], "READONLY")
	s.allTheSame("6380")
}

// swap runs the three steps of the page.
func (s *machine) swap(c *caller, steps []string) {
	s.t.Helper()
	for _, step := range steps {
		s.run(step)
		c.proceed()
	}
	for _, n := range s.nodes {
		assert.NotContains(s.t, n.log(), "CRITICAL", "a node with gothrottle could apply everything")
	}
}

// allTheSame checks that all nodes hold the data of the master.
func (s *machine) allTheSame(master string) {
	s.t.Helper()
	m := s.nodes[master]
	eventually(s.t, "limiters that live shortly have expired", func() bool { return len(m.Keys(ctx, "short:*").Val()) == 0 })
	want := m.dataset()
	for port, n := range s.nodes {
		if port != master {
			n.inStep(m)
			same(s.t, want, n.dataset(), port)
		}
	}
}

// The way back after the swap, while a client calls: no unit is forgotten.
func TestSwap_wayBack(t *testing.T) {
	s := newMachine(t, threeNodes)
	c := s.startCaller()
	s.swap(c, swapBlocks(t, "One master with replicas", 3))
	master := s.nodes["6380"]
	master.must("GO.ALL two THROTTLE 9 1 3600 THROTTLE 99 1 60")
	master.must("HSET book 0 1795302334193880144 1 7 title x")
	for _, step := range swapBlocks(t, "The way back", 4)[1:] {
		s.run(step)
		c.proceed()
	}
	c.account(s.nodes["6379"], "READONLY")
	for _, key := range []string{"two", "book"} {
		assert.Equal(t, "hash", s.nodes["6379"].Type(ctx, key).Val(), "%s is no limiter of CL.THROTTLE", key)
	}
	s.inStepWith("6379")
	for port, n := range s.nodes {
		assert.Equal(t, "string", n.Type(ctx, "early:49").Val(), port)
		assert.NotContains(t, n.ask("COMMAND INFO GO.THROTTLE"), "go.throttle", port)
	}
}

// The way back after step 1. Clients notice nothing.
func TestSwap_wayBackFromStep1(t *testing.T) {
	s := newMachine(t, threeNodes)
	c := s.startCaller()
	s.run(swapBlocks(t, "One master with replicas", 3)[0])
	c.proceed()
	s.run(swapBlocks(t, "The way back", 4)[0])
	c.proceed()
	c.account(s.nodes["6379"])
	s.nodes["6380"].inStep(s.nodes["6379"])
	assert.Equal(t, "string", s.nodes["6380"].Type(ctx, "user:42").Val())
}

// Sentinel makes the failover.
func TestSwap_sentinel(t *testing.T) {
	s := newMachine(t, threeNodes)
	sentinel := s.startSentinel()
	c := s.startCaller()
	steps := swapBlocks(t, "One master with replicas", 3)
	steps[1] = swapBlocks(t, "With Sentinel or in a cluster", 2)[0]
	s.swap(c, steps)
	c.account(s.nodes["6380"], "READONLY", "EOF", "read", "write")
	// Sentinel ends the connections of a node that it changes, and may do so at any time.
	sentinel.terminate()
	for _, n := range s.nodes {
		n.Client = n.client(options3)
	}
	s.allTheSame("6380")
}

// startSentinel starts a Sentinel for the machine and waits until it knows the replicas.
func (s *machine) startSentinel() *server {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(s.here("/var/lib/redis/26379"), 0o755))
	conf := "port 26379\nsentinel monitor mymaster 127.0.0.1 6379 1\nsentinel down-after-milliseconds mymaster 60000\n"
	require.NoError(s.t, os.WriteFile(s.here("/etc/redis/26379.conf"), []byte(s.here(conf)), 0o644))
	n := s.start("26379", "--sentinel")
	// Sentinel asks its nodes ten times as often as by default.
	require.NoError(s.t, n.Do(ctx, "SENTINEL", "DEBUG", "INFO-PERIOD", 1000, "PUBLISH-PERIOD", 200).Err())
	eventually(s.t, "Sentinel knows both replicas", func() bool {
		replicas, err := n.Do(ctx, "SENTINEL", "REPLICAS", "mymaster").Slice()
		return err == nil && len(replicas) == 2
	})
	delete(s.nodes, "26379")
	return n
}

// without returns a block without the commands that contain a word.
func without(block, word string) string {
	var kept []string
	for line := range strings.Lines(block) {
		if !strings.Contains(line, word) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// One shard of a cluster, there and back.
func TestSwap_cluster(t *testing.T) {
	s := newMachine(t, threeNodes, "cluster-enabled yes", "cluster-node-timeout 10000")
	s.joinCluster()
	c := s.startCaller()
	failover := swapBlocks(t, "With Sentinel or in a cluster", 2)[1]
	steps := swapBlocks(t, "One master with replicas", 3)
	steps[1], steps[2] = failover, without(steps[2], "replicaof")
	s.swap(c, steps)
	s.inStepWith("6380")

	back := swapBlocks(t, "The way back", 4)[1:]
	back[1] = strings.Replace(back[1], "redis-cli -p 6380 FAILOVER TO 127.0.0.1 6379\n", "redis-cli -p 6379 CLUSTER FAILOVER\n", 1)
	require.Contains(t, back[1], "CLUSTER FAILOVER")
	for _, step := range back {
		s.run(without(step, "replicaof"))
		c.proceed()
	}
	c.account(s.nodes["6379"], "READONLY", "MOVED", "CLUSTERDOWN")
}

// inStepWith waits until all nodes have what the master has.
func (s *machine) inStepWith(master string) {
	s.t.Helper()
	for port, n := range s.nodes {
		if port != master {
			n.inStep(s.nodes[master])
		}
	}
}

// joinCluster makes a shard of the three nodes: all slots, two replicas.
func (s *machine) joinCluster() {
	s.t.Helper()
	master := s.nodes["6379"]
	require.NoError(s.t, master.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, slots-1).Err())
	id := master.Do(ctx, "CLUSTER", "MYID").Val()
	for _, port := range threeNodes[1:] {
		n := s.nodes[port]
		require.NoError(s.t, n.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", s.ports["6379"],
			master.ConfigGet(ctx, "cluster-port").Val()["cluster-port"]).Err())
		eventually(s.t, "the node accepts REPLICATE", func() bool { return n.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil })
		n.inStep(master)
	}
	eventually(s.t, "the cluster is up", func() bool {
		for _, n := range s.nodes {
			if !strings.Contains(n.ClusterInfo(ctx).Val(), "cluster_state:ok\r") || strings.Count(n.ClusterNodes(ctx).Val(), "slave ") != 2 {
				return false
			}
		}
		return true
	})
}

// One server with an append-only file, there and back.
func TestSwap_oneServer(t *testing.T) {
	s := newMachine(t, threeNodes[:1], "appendonly yes")
	c := s.startCaller()
	block := swapBlocks(t, "One server", 1)[0]
	was := s.nodes["6379"]
	s.run(block)
	c.proceed()
	assert.True(t, was.exited())

	script, _, found := strings.Cut(swapBlocks(t, "The way back", 4)[2], "redis-cli -p 6380 TYPE")
	require.True(t, found)
	s.run(strings.ReplaceAll(script, "6380", "6379"))
	s.run("redis-cli -p 6379 SHUTDOWN SAVE\nsed -i 's|^loadmodule .*|loadmodule " + cellModule + "|' /etc/redis/6379.conf\nredis-server /etc/redis/6379.conf\n")
	c.proceed()
	c.account(s.nodes["6379"], "EOF", "read", "write", "dial", "LOADING")
	assert.Equal(t, "string", s.nodes["6379"].Type(ctx, "early:49").Val())
}

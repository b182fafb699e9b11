package failover

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/server"
)

// callTimeout is the time limit of connections and of go-redis. docs/failover.md advises half a second.
const callTimeout = 500 * time.Millisecond

// nodeTimeout is cluster-node-timeout and down-after-milliseconds.
const nodeTimeout = time.Second

// deployment is servers that fail over, and two hosts with clients. The island is cut off together with the master, the
// coast never is.
type deployment struct {
	name          string
	net           *network
	coast, island *host
	nodes         []*server.Server // the first one is the master
	sentinels     []*server.Server
	options       redis.UniversalOptions   // of clients at the coast, which find the master by themselves
	promote       func(to *server.Server)  // nil: the deployment does so by itself
	demote        func(old *server.Server) // after the partition
	stops         time.Duration            // a master that is cut off decides at most so long; 0: until it is demoted
}

func newDeployment(t *testing.T, name string) *deployment {
	n := newNetwork(t, name)
	d := &deployment{name: name, net: n, coast: n.host("coast"), island: n.host("isle"), demote: func(*server.Server) {}}
	d.options = redis.UniversalOptions{Dialer: d.coast.dial, DialTimeout: callTimeout, ReadTimeout: callTimeout, DialerRetries: 1,
		ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	return d
}

// start starts a server on a host of its own.
func (d *deployment) start(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	h := d.net.host(fmt.Sprint("n", len(d.net.hosts)))
	o.Host, o.Before, o.Dial, o.Args = h.ip, strings.Fields("ip netns exec "+h.name), h.dial, append([]string{"--protected-mode", "no", "--repl-diskless-sync", "yes"}, o.Args...)
	return server.New(t, o)
}

// replicated makes a master and replicas.
func (d *deployment) replicated(t *testing.T, replicas int, args ...string) {
	t.Helper()
	for i := range replicas + 1 {
		d.nodes = append(d.nodes, d.start(t, server.Options{Port: "6379", Args: args}))
		if i > 0 {
			require.NoError(t, d.nodes[i].Follow(d.nodes[0]))
		}
	}
}

// newReplica makes a master that needs its replica to write, and a replica that a person promotes.
func newReplica(t *testing.T) *deployment {
	const lag = 2 // seconds; the server looks every second, and counts whole seconds
	d := newDeployment(t, "replica")
	d.replicated(t, 1, "--min-replicas-to-write", "1", "--min-replicas-max-lag", fmt.Sprint(lag))
	d.stops = (lag + 2) * time.Second
	var addr atomic.Value
	addr.Store(d.nodes[0].Addr)
	d.options.Addrs = []string{"the master:6379"}
	d.options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.coast.dial(ctx, network, addr.Load().(string))
	}
	d.promote = func(to *server.Server) {
		_, err := to.Do("CONFIG", "SET", "min-replicas-to-write", "0")
		require.NoError(t, err)
		_, err = to.Do("REPLICAOF", "NO", "ONE")
		require.NoError(t, err)
		addr.Store(to.Addr)
	}
	d.demote = func(old *server.Server) {
		_, err := old.Do("REPLICAOF", d.nodes[1].Host, d.nodes[1].Port)
		require.NoError(t, err)
	}
	return d
}

// newSentinel makes a master, two replicas and three Sentinels.
func newSentinel(t *testing.T) *deployment {
	d := newDeployment(t, "Sentinel")
	d.replicated(t, 2)
	d.options.MasterName = "m"
	for range 3 {
		s := d.start(t, server.Options{Port: "26379", Sentinel: []string{fmt.Sprintf("sentinel monitor m %s 6379 2", d.nodes[0].Host),
			"sentinel parallel-syncs m 2", "sentinel failover-timeout m 6000", fmt.Sprintf("sentinel down-after-milliseconds m %d", nodeTimeout.Milliseconds())}})
		d.sentinels, d.options.Addrs = append(d.sentinels, s), append(d.options.Addrs, s.Addr)
	}
	require.NoError(t, server.Await("the Sentinels know each other", func() bool {
		for _, s := range d.sentinels {
			if text, _ := s.Do("INFO", "sentinel"); !strings.Contains(fmt.Sprint(text), "slaves=2,sentinels=3") {
				return false
			}
		}
		return true
	}))
	return d
}

// newCluster makes three masters with a replica each. The keys belong to the first one.
func newCluster(t *testing.T) *deployment {
	d := newDeployment(t, "cluster")
	d.options.IsClusterMode = true
	for range 6 {
		n := d.start(t, server.Options{Port: "6379", Cluster: true, Args: []string{"--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds()),
			"--cluster-replica-validity-factor", "0"}})
		d.nodes, d.options.Addrs = append(d.nodes, n), append(d.options.Addrs, n.Addr)
	}
	require.NoError(t, server.Join(3, d.nodes...))
	// A master that is cut off pings each node within half the node timeout, waits a node timeout for the answer, and looks
	// every 100 ms.
	d.nodes, d.stops = []*server.Server{d.nodes[0], d.nodes[3]}, nodeTimeout*3/2+200*time.Millisecond
	return d
}

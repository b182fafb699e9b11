// Package failover lets a real Sentinel and a real cluster replace a master that hangs, and holds what the Go client is granted
// against the bound of docs/failover.md. tests/clients proves the bound in many worlds.
package failover

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/server"
	"gothrottle/throttle"
)

var ctx = context.Background()

// No unit comes back during the test, so counts are exact.
const (
	burst  = 500
	period = 100_000 * time.Second
)

// nodeTimeout is cluster-node-timeout and down-after-milliseconds.
const nodeTimeout = "3000" // ms

// deployment is a master, its replicas, and how clients find the master.
type deployment struct {
	master   *server.Server
	replicas []*server.Server
	options  redis.UniversalOptions
}

func TestFailover_sentinel(t *testing.T) {
	server.Needed(t, "test-failover")
	t.Parallel()
	d := &deployment{master: server.New(t, server.Options{}), options: redis.UniversalOptions{MasterName: "m"}}
	for range 2 {
		d.replicas = append(d.replicas, server.New(t, server.Options{}))
		require.NoError(t, d.replicas[len(d.replicas)-1].Follow(d.master))
	}
	var sentinels []*server.Server
	for range 3 {
		sentinels = append(sentinels, server.New(t, server.Options{Sentinel: []string{fmt.Sprintf("sentinel monitor m 127.0.0.1 %s 2", d.master.Port),
			"sentinel parallel-syncs m 2", "sentinel failover-timeout m 6000", "sentinel down-after-milliseconds m " + nodeTimeout}}))
		d.options.Addrs = append(d.options.Addrs, sentinels[len(sentinels)-1].Addr)
	}
	for _, s := range sentinels {
		require.NoError(t, server.Await("the Sentinels know each other", func() bool {
			text, _ := s.Do("INFO", "sentinel")
			return strings.Contains(fmt.Sprint(text), "slaves=2,sentinels=3")
		}))
	}
	d.test(t)
}

func TestFailover_cluster(t *testing.T) {
	server.Needed(t, "test-failover")
	t.Parallel()
	nodes := server.NewCluster(t, 3, 1, server.Options{Args: []string{"--cluster-node-timeout", nodeTimeout, "--cluster-replica-validity-factor", "0"}})
	d := &deployment{master: nodes[0], replicas: nodes[3:4]} // of the keys' slot
	for _, n := range nodes {
		d.options.Addrs = append(d.options.Addrs, n.Addr)
	}
	d.options.IsClusterMode = true
	d.test(t)
}

// test hangs the master while all replicas have some of the units, and perhaps lack others. Until there is a new master, calls
// end with ErrUnavailable. Then the client uses up what is left. The old master returns, and becomes a replica.
func (d *deployment) test(t *testing.T) {
	limiter, granted, failed := d.limiter(t), 0, false
	denied := func() bool {
		result, err := limiter.Allow(ctx, "{b}") // in a cluster of three, its slot belongs to the first master
		if err != nil {
			require.ErrorIs(t, err, throttle.ErrUnavailable)
			failed = true
		} else if result.Allowed {
			granted++
		}
		return err == nil && !result.Allowed
	}
	take := func(n int) {
		for from := granted; granted < from+n; {
			require.False(t, denied())
		}
	}
	take(burst / 4)
	pipe := d.master.Client().Pipeline()
	pipe.Incr(ctx, "{b}")
	acknowledged := pipe.Do(ctx, "WAIT", len(d.replicas), server.Patience.Milliseconds())
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.EqualValues(t, len(d.replicas), acknowledged.Val())
	take(burst / 4)
	require.NoError(t, d.master.Pause())
	failed = false
	require.NoError(t, server.Await("the limit bites at the new master", denied))
	assert.True(t, failed, "no call failed while the master hung")
	require.NoError(t, d.master.Resume())
	require.NoError(t, server.Await("the old master becomes a replica", func() bool {
		denied()
		info, _ := d.master.Do("INFO", "replication")
		return server.Field(fmt.Sprint(info), "role") == "slave"
	}))
	assert.LessOrEqual(t, granted-burst, burst/4, "excess, and units that no replica has acknowledged")
}

// limiter returns a limit of a client that finds the master by itself.
func (d *deployment) limiter(t *testing.T) throttle.Rate {
	o := &d.options
	o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled = 500*time.Millisecond, 500*time.Millisecond, true // as docs/failover.md advises
	o.DisableIdentity, o.MaintNotificationsConfig = true, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb := redis.NewUniversalClient(o)
	client, err := throttle.New(rdb, throttle.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); rdb.Close() })
	return client.Rate("key", throttle.Per(1, period).Burst(burst))
}

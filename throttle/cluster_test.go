package throttle_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
)

// A failed call makes the cluster client look for the new master. The client's own interval never comes here.
func TestCluster_looksForTheNewMaster(t *testing.T) {
	alive := newAdmitter(t)
	var master atomic.Value
	master.Store("127.0.0.1:1") // nobody listens there
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true, DialerRetries: 1, ClusterStateReloadInterval: time.Hour,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: master.Load().(string)}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newReal(t, rdb, throttle.Options{Timeout: patient})
	_, err := c.Allow(background, "a", throttle.PerHour(1))
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	master.Store(alive)
	require.Eventually(t, func() bool {
		r, err := c.Allow(background, "a", throttle.PerHour(1))
		return err == nil && r.Allowed
	}, time.Minute, 10*time.Millisecond, "a call reaches the new master")
}

// newSilent returns a cluster client whose only node swallows commands.
func newSilent(t *testing.T, readOnly bool) (*redis.ClusterClient, *swallower) {
	t.Helper()
	silent := newSwallower(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true, ReadTimeout: 3 * time.Second, ReadOnly: readOnly,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: silent.Addr().String()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, silent
}

// A cluster client does not ask for the list of commands before a call: it would ask for up to 5 s, whatever the call's
// time limit.
func TestCluster_asksForNoList(t *testing.T) {
	rdb, silent := newSilent(t, false)
	c := newReal(t, rdb, throttle.Options{Timeout: 2 * time.Second})
	_, err := c.Allow(background, "a", throttle.PerHour(1))
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, silent.got.Load())
	require.Zero(t, silent.listing.Load())
}

// The first call ends at its time limit, and so does Check, although a ReadOnly cluster client that has had no reply yet
// looks at no context: here it would take 3 s.
func TestCluster_firstCallsEndInTime(t *testing.T) {
	rdb, _ := newSilent(t, true)
	for name, ask := range map[string]func(*throttle.Client) error{
		"Allow": func(c *throttle.Client) error { _, err := c.Allow(background, "a", throttle.PerHour(1)); return err },
		"Check": func(c *throttle.Client) error { return c.Check(background) },
	} {
		endsInTime(t, 50*time.Millisecond, func() {
			require.ErrorIs(t, ask(newReal(t, rdb, throttle.Options{})), throttle.ErrUnavailable, name)
		})
	}
}

// A client that is new to a cluster asks a silent node first. Meanwhile calls to other nodes are decided.
func TestCluster_silentNodeHoldsUpNoOther(t *testing.T) {
	alive := newAdmitter(t)
	silent := listen(t, func(conn net.Conn) { answer(conn, "") }).Addr().String()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true, ReadOnly: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: silent}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: alive}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, rdb.Do(background, "GO.THROTTLE", "a").Err()) // go-redis knows the commands now
	c := newReal(t, rdb, throttle.Options{Timeout: patient})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	held := make(chan error, 1)
	go func() { _, err := c.Allow(ctx, "b", throttle.PerHour(1)); held <- err }()
	time.Sleep(20 * time.Millisecond) // so that the call to the silent node comes first
	for range 10 {
		r, err := c.Allow(background, "a", throttle.PerHour(1))
		require.NoError(t, err)
		require.True(t, r.Allowed)
	}
	select {
	case err := <-held:
		t.Fatal("the silent node replied", err)
	default:
	}
	cancel()
	require.ErrorIs(t, <-held, context.Canceled)
}

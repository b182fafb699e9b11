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

// newAdmitter listens as a server that admits every call.
func newAdmitter(t *testing.T) string {
	t.Helper()
	replies := map[string]string{"COMMAND": "*0\r\n", "PING": "+PONG\r\n", "GO.THROTTLE": "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1\r\n"}
	return listen(t, func(conn net.Conn) {
		answer(conn, 0, func(word string) string { return replies[word] })
	}).Addr().String()
}

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
	c := newReal(t, rdb, throttle.Options{}, throttle.Timeout(patient))
	_, err := c.Rate("a", throttle.PerHour(1)).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	master.Store(alive)
	require.Eventually(t, func() bool {
		r, err := c.Rate("a", throttle.PerHour(1)).Allow(background, "")
		return err == nil && r.Allowed
	}, time.Minute, 10*time.Millisecond, "a call reaches the new master")
}

// Check asks every master: one without the module is noticed, whichever it is.
func TestCluster_checkAsksAllMasters(t *testing.T) {
	serve := func(list string) string {
		return listen(t, func(conn net.Conn) {
			answer(conn, 0, func(word string) string { return map[string]string{"COMMAND": list}[word] })
		}).Addr().String()
	}
	with, without := serve("*1\r\n*0\r\n"), serve("*1\r\n*-1\r\n")
	for _, row := range []struct {
		masters []string
		want    error
	}{{[]string{with, with}, nil}, {[]string{with, without}, throttle.ErrNoModule}, {[]string{without, with}, throttle.ErrNoModule}} {
		for range 5 { // a cluster client asks any node first
			rdb := redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: row.masters[0]}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: row.masters[1]}}}}, nil
			}})
			t.Cleanup(func() { _ = rdb.Close() })
			require.ErrorIs(t, newReal(t, rdb, throttle.Options{}).Check(background), row.want)
		}
	}
}

// A cluster client does not ask for the list of commands before a call: it would ask for up to 5 s, whatever the call's
// time limit.
func TestCluster_asksForNoList(t *testing.T) {
	silent := newSwallower(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true, ReadTimeout: 3 * time.Second,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: silent.Addr().String()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newReal(t, rdb, throttle.Options{}, throttle.Timeout(2*time.Second))
	_, err := c.Rate("a", throttle.PerHour(1)).Allow(background, "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, silent.got.Load())
	require.Zero(t, silent.listing.Load())
}

package examples

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// patient is the time limit of tests in which nothing is to fail, on a machine that may be busy.
const patient = time.Minute

// newRueidis returns a client over rueidis.
func newRueidis(t *testing.T, o rueidis.ClientOption, timeout time.Duration) *throttle.Client {
	t.Helper()
	rdb, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(rdb.Close)
	client, err := throttle.New(Rueidis{rdb}, throttle.Options{Logger: quiet}, throttle.Timeout(timeout))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The verbs with each form of arguments and replies work over rueidis, in RESP2 and RESP3.
func TestRueidis_verbs(t *testing.T) {
	addr, rdb := startServer(t)
	for _, resp2 := range []bool{false, true} {
		t.Run(fmt.Sprint("RESP2 ", resp2), func(t *testing.T) {
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			client, ctx := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}, AlwaysRESP2: resp2, DisableCache: resp2}, patient), t.Context()
			require.NoError(t, client.Check(ctx))
			limit := throttle.PerMinute(30).Burst(5)
			r, err := client.Rate("a", limit).AllowN(ctx, "", 2)
			require.NoError(t, err)
			require.Equal(t, throttle.Result{Allowed: true, Limit: 5, Remaining: 3, Granted: 2, ResetAfter: 4 * time.Second, Source: throttle.FromServer}, r)
			r, err = client.Rate("a", limit).AllowAtMost(ctx, "", 9)
			require.NoError(t, err)
			require.EqualValues(t, 3, r.Granted)
			r, err = client.Rate("a", limit).Allow(ctx, "")
			require.NoError(t, err)
			require.False(t, r.Allowed)
			r, err = client.Policy("api").Allow(ctx, "bob")
			require.NoError(t, err)
			require.EqualValues(t, []int64{2, 1}, []int64{r.Limit, r.Remaining})
			all, err := client.All(ctx, client.Quota("q", 5, time.Hour).Part("", 2), client.Window("w", 3, time.Hour).Part("", 1))
			require.NoError(t, err)
			require.EqualValues(t, []int64{3, 2}, []int64{all.Each[0].Remaining, all.Each[1].Remaining})
			lease, err := client.Slots("jobs", 1, time.Minute).Lease(ctx, "")
			require.NoError(t, err)
			require.NoError(t, lease.Close())
			require.Zero(t, rdb.Exists(ctx, "jobs").Val())
		})
	}
}

// The client distinguishes the errors of the server, although rueidis drops the code ERR.
func TestRueidis_errors(t *testing.T) {
	addr, rdb := startServer(t)
	client := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}}, patient)
	require.NoError(t, rdb.LPush(t.Context(), "t:list", 1).Err())
	require.NoError(t, rdb.HSet(t.Context(), "t:hash", "a", 1).Err())
	for _, key := range []string{"list", "hash"} {
		_, err := client.Rate("t", throttle.PerHour(1)).Allow(t.Context(), key)
		require.ErrorIs(t, err, throttle.ErrParams, key)
	}
	_, err := client.Policy("nobody").Allow(t.Context(), "1")
	require.ErrorIs(t, err, throttle.ErrParams)
	require.ErrorContains(t, err, "ERR no policy for the key 'nobody:1'")
	addr, _ = start(t, servers.Options{Bare: true})
	plain := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}}, patient)
	require.ErrorIs(t, plain.Check(t.Context()), throttle.ErrNoModule)
	_, err = plain.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrNoModule)
}

// A server that does not answer holds a call no longer than its time limit.
func TestRueidis_timeLimit(t *testing.T) {
	addr, rdb := startServer(t)
	client := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}}, 50*time.Millisecond)
	require.NoError(t, rdb.Do(t.Context(), "CLIENT", "PAUSE", 600_000, "ALL").Err())
	began := time.Now()
	_, err := client.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), patient)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Rate("a", throttle.PerHour(1)).Allow(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
}

// cut is a connection that ends where it would send a command of gothrottle.
type cut struct {
	net.Conn
	sends *atomic.Int64
}

func (c cut) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("GO.THROTTLE")) {
		c.sends.Add(1)
		return len(b), c.Close()
	}
	return c.Conn.Write(b)
}

// A command whose connection breaks is not sent again.
func TestRueidis_sendsOnce(t *testing.T) {
	addr, _ := startServer(t)
	sends := new(atomic.Int64)
	client := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}, DialCtxFn: func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		return cut{conn, sends}, err
	}}, patient)
	_, err := client.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, sends.Load())
}

// Calls for many keys at once are all decided, and one hot key is limited exactly.
func TestRueidis_concurrent(t *testing.T) {
	addr, _ := startServer(t)
	limit := newRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}}, patient).Rate("t", throttle.PerHour(10))
	var calls sync.WaitGroup
	var allowed atomic.Int64
	for i := range 256 {
		calls.Go(func() {
			_, err := limit.Allow(t.Context(), fmt.Sprint("key", i))
			assert.NoError(t, err)
			hot, err := limit.Allow(t.Context(), "hot")
			assert.NoError(t, err)
			if hot.Allowed {
				allowed.Add(1)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 10, allowed.Load())
}

package examples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// patient is the time limit of tests in which nothing is to fail, on a machine that may be busy.
const patient = time.Minute

// newRueidis returns a client over rueidis.
func newRueidis(t *testing.T, addr string, resp2 bool, timeout time.Duration) *throttle.Client {
	t.Helper()
	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, AlwaysRESP2: resp2, DisableCache: resp2})
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
			client, ctx := newRueidis(t, addr, resp2, patient), t.Context()
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
	client := newRueidis(t, addr, false, patient)
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
	plain := newRueidis(t, addr, false, patient)
	require.ErrorIs(t, plain.Check(t.Context()), throttle.ErrNoModule)
	_, err = plain.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrNoModule)
}

// A server that does not answer holds a call no longer than its time limit.
func TestRueidis_timeLimit(t *testing.T) {
	addr, rdb := startServer(t)
	client := newRueidis(t, addr, false, 50*time.Millisecond)
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

// cutter forwards connections to a server, and cuts each that sends a command of gothrottle.
func cutter(t *testing.T, addr string) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	sends := new(atomic.Int64)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	forward := func(conn net.Conn) {
		defer conn.Close()
		server, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(conn, server) }()
		for buffer := make([]byte, 4096); ; {
			n, err := conn.Read(buffer)
			found := bytes.Count(buffer[:n], []byte("GO.THROTTLE"))
			sends.Add(int64(found))
			if err != nil || found > 0 {
				return // the server does not get the command, so no reply can come before the cut
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(conn) })
		}
	})
	return listener.Addr().String(), sends
}

// A command whose connection breaks is not sent again.
func TestRueidis_sendsOnce(t *testing.T) {
	addr, _ := startServer(t)
	cut, sends := cutter(t, addr)
	client := newRueidis(t, cut, false, patient)
	_, err := client.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, sends.Load())
}

// Calls for many keys at once are all decided, and one hot key is limited exactly.
func TestRueidis_concurrent(t *testing.T) {
	addr, _ := startServer(t)
	client := newRueidis(t, addr, false, patient)
	var calls sync.WaitGroup
	var allowed atomic.Int64
	failures := make(chan error, 512)
	for i := range 512 {
		key := "hot"
		if i%2 == 0 {
			key = fmt.Sprint("key", i)
		}
		calls.Go(func() {
			r, err := client.Rate("t", throttle.PerHour(10)).Allow(t.Context(), key)
			if err != nil {
				failures <- err
			}
			if r.Allowed && strings.HasPrefix(key, "hot") {
				allowed.Add(1)
			}
		})
	}
	calls.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	require.NoError(t, errors.Join(all...))
	require.EqualValues(t, 10, allowed.Load())
}

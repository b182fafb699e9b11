package examples

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

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
	client, err := throttle.New(Rueidis{rdb}, throttle.Logger(quiet), throttle.Timeout(timeout))
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
			require.Equal(t, throttle.Result{Allowed: true, Limit: 5, Remaining: 3, Granted: 2, ResetAfter: 4 * time.Second, Source: "server"}, r)
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

// Public clients with a typed CL.THROTTLE, made for redis-cell, read the replies of this module.
func TestDropIn(t *testing.T) {
	addr, rdb := startServer(t)
	cell, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(cell.Close)
	valkeyCell, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(valkeyCell.Close)
	ctx := t.Context()
	for name, take := range map[string]func(key string, units int64) ([]int64, error){
		"rueidis": func(key string, units int64) ([]int64, error) {
			call := cell.B().ClThrottle().Key(key).MaxBurst(15).CountPerPeriod(30).Period(60).Quantity(units)
			return cell.Do(ctx, call.Build()).AsIntSlice()
		},
		"valkey-go": func(key string, units int64) ([]int64, error) {
			call := valkeyCell.B().ClThrottle().Key(key).MaxBurst(15).CountPerPeriod(30).Period(60).Quantity(units)
			return valkeyCell.Do(ctx, call.Build()).AsIntSlice()
		},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := take(name, 1)
			require.NoError(t, err)
			require.Equal(t, []int64{0, 16, 15, -1, 2}, reply)
			reply, err = take(name, 17)
			require.NoError(t, err)
			require.Equal(t, []int64{1, 16, -1}, []int64{reply[0], reply[1], reply[3]}, "it never fits")
			require.NoError(t, rdb.LPush(ctx, "list of "+name, 1).Err())
			_, err = take("list of "+name, 1)
			require.ErrorContains(t, err, "WRONGTYPE")
		})
	}
}

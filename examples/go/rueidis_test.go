package examples

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"gothrottle/commands/memory/resp"
	"gothrottle/throttle"
)

var quiet = slog.New(slog.DiscardHandler)

// patient is the time limit of tests in which nothing is to fail, on a machine that may be busy.
const patient = time.Minute

// inMemory starts a server in memory on 127.0.0.1. ran counts the calls of limiters that it has run.
func inMemory(t *testing.T) (s *resp.Server, ran *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ran = new(atomic.Int64)
	s = resp.NewNetwork(resp.Options{Ran: func(resp.Run) { ran.Add(1) }}).Add(listener.Addr().String())
	require.NoError(t, s.Memory().SetPolicies("api THROTTLE 1 1 60s"))
	t.Cleanup(s.Close)
	go s.Serve(listener)
	return s, ran
}

// newRueidis returns a client over rueidis.
func newRueidis(t *testing.T, s *resp.Server, resp2 bool, timeout time.Duration) *throttle.Client {
	t.Helper()
	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr}, AlwaysRESP2: resp2, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(rdb.Close)
	client, err := throttle.New(Rueidis{rdb}, throttle.Logger(quiet), throttle.Timeout(timeout))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The verbs with each form of arguments and replies work over rueidis, in RESP2 and RESP3.
func TestRueidis_verbs(t *testing.T) {
	for _, resp2 := range []bool{false, true} {
		t.Run(fmt.Sprint("RESP2 ", resp2), func(t *testing.T) {
			s, _ := inMemory(t)
			client, ctx := newRueidis(t, s, resp2, patient), t.Context()
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
			held, err := s.Do("EXISTS", "jobs")
			require.NoError(t, err)
			require.Zero(t, held)
		})
	}
}

// The client distinguishes the errors of the server, although rueidis drops the code ERR.
func TestRueidis_errors(t *testing.T) {
	s, _ := inMemory(t)
	client := newRueidis(t, s, false, patient)
	for key, call := range map[string][]string{"list": {"RPUSH", "t:list", "1"}, "hash": {"HSET", "t:hash", "a", "1"}} {
		_, err := s.Do(call...)
		require.NoError(t, err)
		_, err = client.Rate("t", throttle.PerHour(1)).Allow(t.Context(), key)
		require.ErrorIs(t, err, throttle.ErrParams, key)
	}
	_, err := client.Policy("nobody").Allow(t.Context(), "1")
	require.ErrorIs(t, err, throttle.ErrParams)
	require.ErrorContains(t, err, "ERR no policy for the key 'nobody:1'")
	s.Change(func(f *resp.Faults) { f.NoModule = true })
	require.ErrorIs(t, client.Check(t.Context()), throttle.ErrNoModule)
	_, err = client.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrNoModule)
}

// A server that doesn't answer holds a call no longer than its time limit, and a command whose connection breaks isn't sent again.
func TestRueidis_sendsOnce(t *testing.T) {
	s, ran := inMemory(t)
	s.CutAfter(1)
	_, err := newRueidis(t, s, false, patient).Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.EqualValues(t, 1, ran.Load())
	hasty := newRueidis(t, s, false, 50*time.Millisecond)
	s.Change(func(f *resp.Faults) { f.Silent = true })
	_, err = hasty.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Public clients with a typed CL.THROTTLE, made for redis-cell, read the replies of this module.
func TestDropIn(t *testing.T) {
	s, _ := inMemory(t)
	cell, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr}, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(cell.Close)
	valkeyCell, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{s.Addr}, DisableCache: true})
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
		reply, err := take(name, 1)
		require.NoError(t, err, name)
		require.Equal(t, []int64{0, 16, 15, -1, 2}, reply, name)
		reply, err = take(name, 17)
		require.NoError(t, err, name)
		require.Equal(t, []int64{1, 16, -1}, []int64{reply[0], reply[1], reply[3]}, "it never fits")
		_, err = s.Do("RPUSH", "list of "+name, "1")
		require.NoError(t, err)
		_, err = take("list of "+name, 1)
		require.ErrorContains(t, err, "WRONGTYPE", name)
	}
}

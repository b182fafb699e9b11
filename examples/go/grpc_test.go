package examples

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// serveGRPC serves gRPC's health service behind a limit, and returns a client of it.
func serveGRPC(t *testing.T, g GRPC) grpc_health_v1.HealthClient {
	t.Helper()
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(g.Unary), grpc.ChainStreamInterceptor(g.Stream))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

// requireDenied requires a denial that says to wait for half an hour.
func requireDenied(t *testing.T, err error) {
	t.Helper()
	denial := status.Convert(err)
	require.Equal(t, codes.ResourceExhausted, denial.Code(), "%v", err)
	require.Len(t, denial.Details(), 1)
	wait := denial.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
	require.InDelta(t, 30*time.Minute, wait, float64(10*time.Second))
}

// The connection's host names the limiter: calls and streams of one host share it.
func TestGRPC_byPeer(t *testing.T) {
	client, server := throttletest.New(t, throttle.Options{Logger: quiet}, throttle.Timeout(patient))
	service := serveGRPC(t, GRPC{client.Rate("t", throttle.PerHour(2)), ByPeer})
	_, err := service.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	stream, err := service.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	_, err = service.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	requireDenied(t, err)
	stream, err = service.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	requireDenied(t, err)
	state, err := client.Rate("t", throttle.PerHour(2)).Peek(t.Context(), "peer:127.0.0.1")
	require.NoError(t, err)
	require.Zero(t, state.Remaining)
	server.Advance(30 * time.Minute)
	_, err = service.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
}

// Metadata names the limiter: each API key has its own.
func TestByMetadata(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("api-key", "a", "other", "x"))
	require.Equal(t, "api-key:a", ByMetadata("api-key")(ctx))
	require.Equal(t, "api-key:", ByMetadata("api-key")(t.Context()))
}

// An IPv6 host has all addresses of its network, so they share a limiter.
func TestByPeer(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:80": "peer:192.0.2.1", "[::ffff:192.0.2.1]:80": "peer:192.0.2.1", "[2001:db8:1:2:3::4]:80": "peer:2001:db8:1:2::/64",
		"[fe80::1%lo]:80": "peer:fe80::/64",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		require.Equal(t, want, ByPeer(peer.NewContext(t.Context(), &peer.Peer{Addr: tcp})))
	}
	unix := &net.UnixAddr{Name: "@", Net: "unix"}
	require.Equal(t, "peer:@", ByPeer(peer.NewContext(t.Context(), &peer.Peer{Addr: unix})))
	require.Equal(t, "peer:", ByPeer(t.Context()))
}

// A caller whose deadline passes while the limiter is asked is not served, also by a client that fails open.
func TestGRPC_deadlineHasPassed(t *testing.T) {
	for _, fallback := range []throttle.Option{nil, throttle.FailOpen()} {
		client, _ := throttletest.New(t, throttle.Options{Logger: quiet}, fallback)
		g := GRPC{client.Rate("t", throttle.PerHour(1)), ByPeer}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_, err := g.Unary(ctx, nil, nil, func(context.Context, any) (any, error) {
			t.Error("served")
			return nil, nil
		})
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	}
}

// While the server is away calls go on. A client that fails closed denies them. Other errors are internal.
func TestGRPC_withoutDecision(t *testing.T) {
	for _, row := range []struct {
		fallback throttle.Option
		limit    throttle.Limit
		want     codes.Code
	}{
		{nil, throttle.PerHour(1), codes.OK},
		{throttle.FailClosed(), throttle.PerHour(1), codes.ResourceExhausted},
		{nil, throttle.Limit{}, codes.Internal},
	} {
		client, server := throttletest.New(t, throttle.Options{Logger: quiet}, throttle.Timeout(patient), row.fallback)
		server.Fail(errors.New("away"))
		service := serveGRPC(t, GRPC{client.Rate("t", row.limit), ByPeer})
		for range 2 {
			_, err := service.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.Equal(t, row.want, status.Code(err), "%v", err)
		}
	}
}

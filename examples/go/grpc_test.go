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

// The connection's host names the limiter: calls and streams of one host share it. A denial says how long to wait.
func TestGRPC_byPeer(t *testing.T) {
	client, _ := throttletest.New(t, throttle.Logger(quiet), throttle.Timeout(patient))
	service := serveGRPC(t, GRPC{client.Rate("t", throttle.PerHour(2)), ByPeer})
	check := func() error {
		_, err := service.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	watch := func() error {
		stream, err := service.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	require.NoError(t, errors.Join(check(), watch()))
	for _, err := range []error{check(), watch()} {
		denial := status.Convert(err)
		require.Equal(t, codes.ResourceExhausted, denial.Code(), "%v", err)
		require.Len(t, denial.Details(), 1)
		wait := denial.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
		require.InDelta(t, 30*time.Minute, wait, float64(10*time.Second))
	}
	state, err := client.Rate("t", throttle.PerHour(2)).Peek(t.Context(), "{ip:127.0.0.1}")
	require.NoError(t, err)
	require.Zero(t, state.Remaining)
}

// Metadata or the peer names the limiter. A host of IPv6 has all addresses of its network.
func TestGRPC_keys(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("api-key", "a", "other", "x"))
	require.Equal(t, "api-key:a", ByMetadata("api-key")(ctx))
	require.Equal(t, "api-key:", ByMetadata("api-key")(t.Context()))
	host := &net.TCPAddr{IP: net.ParseIP("2001:db8:1:2:3::4"), Port: 80}
	require.Equal(t, "{ip:2001:db8:1:2::/64}", ByPeer(peer.NewContext(t.Context(), &peer.Peer{Addr: host})))
	require.Equal(t, "{ip:}", ByPeer(t.Context()))
}

// While the server is unavailable calls go on, unless the client fails closed or the caller's deadline has passed. Other errors are
// internal.
func TestGRPC_withoutDecision(t *testing.T) {
	for _, row := range []struct {
		fallback throttle.Option
		limit    throttle.Limit
		deadline time.Duration
		late     bool // the deadline's timer has not run
		want     codes.Code
	}{
		{nil, throttle.PerHour(1), patient, false, codes.OK},
		{throttle.FailClosed(), throttle.PerHour(1), patient, false, codes.Unavailable},
		{nil, throttle.Limit{}, patient, false, codes.Internal},
		{nil, throttle.PerHour(1), 0, false, codes.DeadlineExceeded},
		{throttle.FailOpen(), throttle.PerHour(1), 0, false, codes.DeadlineExceeded},
		{throttle.FailOpen(), throttle.PerHour(1), 0, true, codes.DeadlineExceeded},
	} {
		client, server := throttletest.New(t, throttle.Logger(quiet), throttle.Timeout(patient), row.fallback)
		server.Fail(errors.New("away"))
		ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
		defer cancel()
		if row.late {
			ctx = overdue{t.Context()}
		}
		served := false
		_, err := GRPC{client.Rate("t", row.limit), ByPeer}.Unary(ctx, nil, nil, func(context.Context, any) (any, error) {
			served = true
			return nil, nil
		})
		require.Equal(t, row.want, status.Code(err), "%v", err)
		require.Equal(t, row.want == codes.OK, served)
	}
}

type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

package examples

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
)

// GRPC limits the calls of a gRPC server. A stream counts as one call.
type GRPC struct {
	Limiter allower
	Key     func(context.Context) string // ByPeer, ByMetadata or your own
}

// allower is a throttle.Rate, throttle.Window or throttle.Policy.
type allower interface {
	Allow(ctx context.Context, key string) (throttle.Result, error)
}

// Unary is for grpc.ChainUnaryInterceptor.
func (g GRPC) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := g.admit(ctx); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// Stream is for grpc.ChainStreamInterceptor.
func (g GRPC) Stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := g.admit(stream.Context()); err != nil {
		return err
	}
	return next(srv, stream)
}

// admit returns the status of a denial. Calls go on while the server is unavailable, unless the limiter has a fallback.
func (g GRPC) admit(ctx context.Context) error {
	result, err := g.Limiter.Allow(ctx, g.Key(ctx))
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, throttle.ErrUnavailable): // perhaps ctx does not know it yet
		return status.Error(codes.DeadlineExceeded, err.Error())
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, throttle.ErrUnavailable) || err == nil && result.Allowed:
		return nil
	case err != nil:
		return status.Error(codes.Internal, "the rate limiter does not work")
	}
	denial := status.New(codes.ResourceExhausted, "too many calls")
	if result.Source == "failed-closed" { // nobody knows whether there were too many
		denial = status.New(codes.Unavailable, "the rate limiter is unavailable")
	}
	if result.RetryAfter > 0 && result.RetryAfter != throttle.Never {
		detailed, err := denial.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(result.RetryAfter)})
		if err == nil {
			denial = detailed
		}
	}
	return denial.Err()
}

var byIP = throttlehttp.ByIP()

// ByPeer names the limiter after the host of the connection, as throttlehttp.ByIP does: calls by gRPC and by HTTP share it.
func ByPeer(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return byIP(&http.Request{RemoteAddr: p.Addr.String()})
	}
	return "{ip:}"
}

// ByMetadata names the limiter after metadata that an interceptor before this one has verified, such as an API key.
func ByMetadata(name string) func(context.Context) string {
	return func(ctx context.Context) string {
		return name + ":" + strings.Join(metadata.ValueFromIncomingContext(ctx, name), ",")
	}
}

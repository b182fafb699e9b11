package examples

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// ByPeer names the limiter after the host of the connection.
func ByPeer(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "peer:"
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		host = p.Addr.String() // a Unix socket
	}
	return "peer:" + host
}

// ByMetadata names the limiter after metadata that an interceptor before this one has verified, such as an API key.
func ByMetadata(name string) func(context.Context) string {
	return func(ctx context.Context) string {
		return name + ":" + strings.Join(metadata.ValueFromIncomingContext(ctx, name), ",")
	}
}

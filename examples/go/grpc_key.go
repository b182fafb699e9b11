package examples

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// ByPeer names the limiter after the host of the connection: an IPv4 address, or the /64 network of an IPv6 address,
// because one host has all addresses of such a network.
func ByPeer(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "peer:"
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		host = p.Addr.String() // a Unix socket
	}
	if address, err := netip.ParseAddr(host); err == nil {
		if address = address.Unmap().WithZone(""); address.Is4() {
			return "peer:" + address.String()
		}
		network, _ := address.Prefix(64)
		return "peer:" + network.String()
	}
	return "peer:" + host
}

// ByMetadata names the limiter after metadata that an interceptor before this one has verified, such as an API key.
func ByMetadata(name string) func(context.Context) string {
	return func(ctx context.Context) string {
		return name + ":" + strings.Join(metadata.ValueFromIncomingContext(ctx, name), ",")
	}
}

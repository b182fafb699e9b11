package main

import (
	"crypto/tls"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/testdata"
)

// The gRPC server takes clients that have a certificate of the CA with the right name, and no others. The certificate of
// both sides is that of gRPC's own tests.
func TestMutualTLS(t *testing.T) {
	cert, key, ca := testdata.Path("server1.pem"), testdata.Path("server1.key"), testdata.Path("ca.pem")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	roots := (&settings{get: func(string) string { return ca }}).pool("CA")
	ask := func(g *gateway, pairs ...tls.Certificate) error {
		c := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "x.test.youtube.com", Certificates: pairs})
		_, err := pb.NewRateLimitServiceClient(dial(t, g.grpc, c)).ShouldRateLimit(t.Context(), request("d", "fixed=a"))
		return err
	}
	s := server(t)
	for name, right := range map[string]bool{"waterzooi.test.google.be": true, "other.example": false} {
		g := start(t, s.Addr, ours, "GRPC_SERVER_USE_TLS", "true", "GRPC_SERVER_TLS_CERT", cert,
			"GRPC_SERVER_TLS_KEY", key, "GRPC_CLIENT_TLS_CACERT", ca, "GRPC_CLIENT_TLS_SAN", name)
		require.Equal(t, right, ask(g, pair) == nil)
		require.Error(t, ask(g))
	}
}

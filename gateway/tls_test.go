package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
)

// authority signs certificates of names and addresses.
type authority struct {
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	folder string
}

// issue writes a certificate and its key into files. Without a signer it signs itself.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	if a.cert == nil {
		a.cert, a.key = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	require.NoError(t, err)
	if template.IsCA {
		a.cert, err = x509.ParseCertificate(der)
		require.NoError(t, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(a.folder, name+".crt"), filepath.Join(a.folder, name+".key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// The gRPC server takes clients that have a certificate of the CA with the right name, and no others.
func TestMutualTLS(t *testing.T) {
	a := &authority{folder: t.TempDir()}
	root, _ := a.issue(t, "root")
	cert, key := a.issue(t, "gateway")
	g := start(t, server(t).Addr, ours, "DECISION_TIMEOUT", patient, "GRPC_SERVER_USE_TLS", "true", "GRPC_SERVER_TLS_CERT", cert,
		"GRPC_SERVER_TLS_KEY", key, "GRPC_CLIENT_TLS_CACERT", root, "GRPC_CLIENT_TLS_SAN", "envoy.example")
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	ask := func(names ...string) error {
		o := &tls.Config{RootCAs: pool}
		for _, name := range names {
			pair, err := tls.LoadX509KeyPair(a.issue(t, name))
			require.NoError(t, err)
			o.Certificates = append(o.Certificates, pair)
		}
		_, err := pb.NewRateLimitServiceClient(dial(t, g.grpc, credentials.NewTLS(o))).ShouldRateLimit(t.Context(), request("d", "fixed=a"))
		return err
	}
	require.NoError(t, ask("envoy.example"))
	require.Error(t, ask("other.example"))
	require.Error(t, ask())
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// A server is watched by TLS with the flags of redis-cli. A certificate that is not known is refused.
func TestWatch_byTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := selfSigned(t, folder)
	port := servers.FreePort()
	addr := "127.0.0.1:" + port
	startServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	look := func(flags ...string) string {
		s, err := readFlags(append([]string{"--addr", addr}, flags...), func(string) string { return "" })
		require.NoError(t, err)
		o, err := s.options()
		require.NoError(t, err)
		rdb := redis.NewClient(o)
		defer rdb.Close()
		return newWatcher(rdb).ask(t.Context()).Error
	}
	require.Empty(t, look("--tls", "--cacert", cert, "--cert", cert, "--key", key))
	require.Empty(t, look("--tls", "--insecure", "--cert", cert, "--key", key))
	require.Contains(t, look("--tls", "--cert", cert, "--key", key), "certificate")
	require.Contains(t, look("--tls", "--cacert", cert, "--cert", cert, "--key", key, "--sni", "other.example"), "other.example")
	require.NotEmpty(t, look("--tls", "--cacert", cert))
	require.NotEmpty(t, look())
}

// selfSigned writes a certificate of 127.0.0.1, and its key.
func selfSigned(t *testing.T, folder string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "EC PRIVATE KEY", secret)
}

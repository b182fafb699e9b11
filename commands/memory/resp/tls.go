package resp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// certificate returns a configuration for servers with a certificate that is valid for a day, and the certificate's PEM. It
// serves any address, because clients check the name "localhost".
func certificate(now time.Time) (*tls.Config, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	about := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	raw, err := x509.CreateCertificate(rand.Reader, &about, &about, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

const serverName = "localhost"

// CA returns the certificate of the servers as PEM; nil without TLS.
func (n *Network) CA() []byte { return n.ca }

// encrypt shakes hands on a new connection.
func (n *Network) encrypt(ctx context.Context, raw net.Conn, _ string) (net.Conn, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(n.ca)
	c := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: serverName, Time: n.o.Now})
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

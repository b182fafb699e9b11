package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"sync/atomic"
)

// serverTLS reads the certificate of the gRPC server at each new connection, so a renewed one is used. With a CA for
// clients, a client needs a certificate of it, which has the name GRPC_CLIENT_TLS_SAN if that is set.
func (s *settings) serverTLS() *tls.Config {
	cert, key, san := s.env["GRPC_SERVER_TLS_CERT"], s.env["GRPC_SERVER_TLS_KEY"], s.env["GRPC_CLIENT_TLS_SAN"]
	var last atomic.Pointer[tls.Certificate]
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if before := last.Load(); err != nil && before != nil {
			s.log.Error("cannot read the certificate: the last one stays in use", "file", cert, "error", err)
			return before, nil
		} else if err == nil {
			last.Store(&pair)
		}
		return &pair, err
	}
	c := &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
	_, err := load(nil)
	s.refuse("GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY", err)
	if c.ClientCAs = s.pool("GRPC_CLIENT_TLS_CACERT"); c.ClientCAs != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if san != "" {
		c.VerifyConnection = func(state tls.ConnectionState) error { return state.PeerCertificates[0].VerifyHostname(san) }
		if c.ClientCAs == nil {
			s.refuse("GRPC_CLIENT_TLS_SAN", errors.New("it needs GRPC_CLIENT_TLS_CACERT"))
		}
	}
	return c
}

// pool reads certificates from the file that a setting names; nil if it names none.
func (s *settings) pool(name string) *x509.CertPool {
	if s.env[name] == "" {
		return nil
	}
	text, err := os.ReadFile(s.env[name])
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("the file has no certificate")
	}
	s.refuse(name, err)
	return pool
}

// clientTLS trusts the certificates of a file, and has a certificate of its own, if these settings name them.
func (s *settings) clientTLS(ca, cert, key string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.pool(ca)}
	if s.env[cert] != "" {
		pair, err := tls.LoadX509KeyPair(s.env[cert], s.env[key])
		s.refuse(cert+" and "+key, err)
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// redisTLS is for a server with a certificate. If it may have any name, its chain is verified.
func (s *settings) redisTLS(anyName bool) *tls.Config {
	c := s.clientTLS("REDIS_TLS_CACERT", "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY")
	if anyName {
		c.InsecureSkipVerify, c.VerifyConnection = true, func(state tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
			for _, one := range state.PeerCertificates[1:] {
				o.Intermediates.AddCert(one)
			}
			if _, err := state.PeerCertificates[0].Verify(o); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		}
	}
	return c
}

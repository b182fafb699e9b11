package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// settings come from the environment. The names are those of envoyproxy/ratelimit, where the meaning is the same.
type settings struct {
	get     func(name string) string
	wrong   []error
	httpAt  string
	grpcAt  string // host:port, or the path of a socket
	debugAt string

	config                       string // a file or folder of rules
	merge                        bool
	logLevel                     string
	logJSON                      bool
	timeout                      time.Duration
	budget                       int64
	prefix                       string
	near                         float64
	shadowMode                   bool
	quotaMode                    bool
	headers                      bool
	limitHeader                  string
	remainingHeader, resetHeader string
	tracing                      bool
	grpcTLS                      *tls.Config
	redis                        *redis.UniversalOptions
	maxAge, grace                time.Duration
}

// ignored are settings of envoyproxy/ratelimit that have no effect here. The log names each one that is set, and
// docs/gateway.md says why.
var ignored = strings.Fields(`
	REDIS_PERSECOND REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT REDIS_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR
	REDIS_HEALTH_CHECK_ACTIVE_CONNECTION EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
	STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT USE_STATSD USE_DOG_STATSD USE_PROMETHEUS PROMETHEUS_ADDR PROMETHEUS_PATH
	EXTRA_TAGS RESPONSE_DYNAMIC_METADATA RUNTIME_WATCH_ROOT RUNTIME_IGNOREDOTFILES FORCE_START_WITHOUT_INITIAL_CONFIG
	HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED TRACING_EXPORTER_PROTOCOL`)

// ignoredPrefixes begin the names of such settings.
var ignoredPrefixes = []string{"MEMCACHE_", "CONFIG_GRPC_XDS_", "XDS_CLIENT_", "REDIS_PERSECOND_"}

// refusedSettings would change what is decided, so the program does not start with them.
var refusedSettings = map[string]string{"BACKEND_TYPE": "redis", "CONFIG_TYPE": "FILE"}

func (s *settings) text(name, otherwise string) string {
	if v := s.get(name); v != "" {
		return v
	}
	return otherwise
}

// parsed reads a setting that isn't text.
func parsed[T any](s *settings, name string, otherwise T, parse func(string) (T, error)) T {
	text := s.get(name)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	s.refuse(name+"="+text, err)
	return v
}

func (s *settings) yes(name string) bool { return parsed(s, name, false, strconv.ParseBool) }

func (s *settings) address(host, port, otherwise string) string {
	return net.JoinHostPort(s.text(host, "0.0.0.0"), s.text(port, otherwise))
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("a time is more than 0")
	}
	return d, err
}

// refuse notes that a setting is wrong.
func (s *settings) refuse(name string, err error) {
	if err != nil {
		s.wrong = append(s.wrong, fmt.Errorf("%s: %w", name, err))
	}
}

// readSettings reads the environment. All that is wrong is in one error.
func readSettings(get func(string) string) (*settings, error) {
	s := &settings{get: get}
	s.httpAt, s.debugAt = s.address("HOST", "PORT", "8080"), s.address("DEBUG_HOST", "DEBUG_PORT", "6070")
	s.grpcAt = s.text("GRPC_UDS", s.address("GRPC_HOST", "GRPC_PORT", "8081"))
	root := path.Join(s.text("RUNTIME_ROOT", "/srv/runtime_data/current"), s.get("RUNTIME_SUBDIRECTORY"), s.text("RUNTIME_APPDIRECTORY", "config"))
	s.config, s.merge = s.text("CONFIG", root), s.yes("MERGE_DOMAIN_CONFIG")
	s.logLevel, s.logJSON = s.text("LOG_LEVEL", "info"), s.get("LOG_FORMAT") == "json"
	s.timeout = parsed(s, "DECISION_TIMEOUT", 50*time.Millisecond, positive)
	s.budget = parsed(s, "BUDGET", 0, func(t string) (int64, error) { return strconv.ParseInt(t, 10, 64) })
	s.prefix = s.get("CACHE_KEY_PREFIX")
	s.near = parsed(s, "NEAR_LIMIT_RATIO", 0.8, func(t string) (float64, error) { return strconv.ParseFloat(t, 64) })
	s.shadowMode, s.quotaMode, s.headers = s.yes("SHADOW_MODE"), s.yes("QUOTA_MODE"), s.yes("LIMIT_RESPONSE_HEADERS_ENABLED")
	s.limitHeader, s.remainingHeader = s.text("LIMIT_LIMIT_HEADER", "RateLimit-Limit"), s.text("LIMIT_REMAINING_HEADER", "RateLimit-Remaining")
	s.resetHeader = s.text("LIMIT_RESET_HEADER", "RateLimit-Reset")
	s.tracing = s.yes("TRACING_ENABLED")
	s.maxAge = parsed(s, "GRPC_MAX_CONNECTION_AGE", 24*time.Hour, positive)
	s.grace = parsed(s, "GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour, positive)
	if s.yes("GRPC_SERVER_USE_TLS") {
		s.grpcTLS = s.serverTLS()
	}
	s.redis = s.redisOptions()
	for name, only := range refusedSettings {
		if v := s.text(name, only); v != only {
			s.refuse(name+"="+v, errors.New("only "+only+" is supported"))
		}
	}
	return s, errors.Join(s.wrong...)
}

// unused returns the settings that are set and have no effect.
func unused(environment []string) (names []string) {
	for _, pair := range environment {
		name, v, _ := strings.Cut(pair, "=")
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if v != "" && (slices.Contains(ignored, name) || slices.ContainsFunc(ignoredPrefixes, begins)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// serverTLS reads the certificate of the gRPC server at each new connection, so a renewed one is used. With a CA for
// clients, a client needs a certificate of it, which has the name GRPC_CLIENT_TLS_SAN if that is set.
func (s *settings) serverTLS() *tls.Config {
	cert, key, san := s.get("GRPC_SERVER_TLS_CERT"), s.get("GRPC_SERVER_TLS_KEY"), s.get("GRPC_CLIENT_TLS_SAN")
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
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
	if s.get(name) == "" {
		return nil
	}
	text, err := os.ReadFile(s.get(name))
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("the file has no certificate")
	}
	s.refuse(name, err)
	return pool
}

// chainOnly verifies a certificate and not its name.
func chainOnly(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range state.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(o)
		return err
	}
}

// redisTLS returns nil unless REDIS_TLS is true.
func (s *settings) redisTLS() *tls.Config {
	if !s.yes("REDIS_TLS") {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.pool("REDIS_TLS_CACERT")}
	if cert := s.get("REDIS_TLS_CLIENT_CERT"); cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, s.get("REDIS_TLS_CLIENT_KEY"))
		s.refuse("REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY", err)
		c.Certificates = []tls.Certificate{pair}
	}
	if s.yes("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION") {
		c.InsecureSkipVerify, c.VerifyConnection = true, chainOnly(c.RootCAs)
	}
	return c
}

// redisOptions are those of a client of Redis or Valkey: REDIS_TYPE is SINGLE, SENTINEL or CLUSTER.
func (s *settings) redisOptions() *redis.UniversalOptions {
	user, password, found := strings.Cut(s.get("REDIS_AUTH"), ":")
	if !found {
		user, password = "", user
	}
	o := &redis.UniversalOptions{
		Addrs: strings.Split(s.text("REDIS_URL", "127.0.0.1:6379"), ","), Username: user, Password: password, TLSConfig: s.redisTLS(),
		ContextTimeoutEnabled: true, PoolSize: parsed(s, "REDIS_POOL_SIZE", 0, strconv.Atoi), SentinelPassword: s.get("REDIS_SENTINEL_AUTH"),
	}
	if strings.Contains(o.Addrs[0], "://") {
		url, err := redis.ParseURL(o.Addrs[0])
		if err != nil {
			s.refuse("REDIS_URL", err)
			return o
		}
		o.Addrs[0], o.DB, o.TLSConfig = url.Addr, url.DB, cmp.Or(o.TLSConfig, url.TLSConfig)
		o.Username, o.Password = cmp.Or(user, url.Username), cmp.Or(password, url.Password)
	}
	switch kind := strings.ToUpper(s.text("REDIS_TYPE", "SINGLE")); {
	case kind == "SINGLE":
		o.Addrs = o.Addrs[:1]
	case kind == "CLUSTER":
		o.IsClusterMode = true
	case kind != "SENTINEL":
		s.refuse("REDIS_TYPE", errors.New(kind+" is none of SINGLE, SENTINEL, CLUSTER"))
	case len(o.Addrs) < 2:
		s.refuse("REDIS_URL", errors.New("for SENTINEL write the master's name, then the Sentinels: name,host:port,host:port"))
	default:
		o.MasterName, o.Addrs = o.Addrs[0], o.Addrs[1:]
	}
	return o
}

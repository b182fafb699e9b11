package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// settings come from the environment. The names are those of envoyproxy/ratelimit, where the meaning is the same.
type settings struct {
	get     func(name string) string
	wrong   []error
	httpAt  string
	grpcNet string // tcp or unix
	grpcAt  string
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
	REDIS_SOCKET_TYPE REDIS_PERSECOND* REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT REDIS_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR
	REDIS_HEALTH_CHECK_ACTIVE_CONNECTION EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
	STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT USE_STATSD USE_DOG_STATSD* STATSD_* STATS_FLUSH_INTERVAL DISABLE_STATS
	USE_PROMETHEUS PROMETHEUS_* EXTRA_TAGS RESPONSE_DYNAMIC_METADATA RUNTIME_WATCH_ROOT RUNTIME_IGNOREDOTFILES
	FORCE_START_WITHOUT_INITIAL_CONFIG HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED TRACING_EXPORTER_PROTOCOL TRACING_SERVICE_*
	TRACING_SAMPLING_RATE MEMCACHE_* CONFIG_GRPC_XDS_* XDS_CLIENT_*`)

// refusedSettings would change what is decided, so the program does not start with them.
var refusedSettings = map[string]string{"BACKEND_TYPE": "redis", "CONFIG_TYPE": "FILE"}

func (s *settings) address(host, port, otherwise string) string {
	return net.JoinHostPort(cmp.Or(s.get(host), "0.0.0.0"), cmp.Or(s.get(port), otherwise))
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
	if s.grpcNet, s.grpcAt = "tcp", s.address("GRPC_HOST", "GRPC_PORT", "8081"); get("GRPC_UDS") != "" {
		s.grpcNet, s.grpcAt = "unix", get("GRPC_UDS")
	}
	s.config = cmp.Or(get("CONFIG"), path.Join(cmp.Or(get("RUNTIME_ROOT"), "/srv/runtime_data/current"), get("RUNTIME_SUBDIRECTORY"),
		cmp.Or(get("RUNTIME_APPDIRECTORY"), "config")))
	s.logJSON, s.prefix = get("LOG_FORMAT") == "json", get("CACHE_KEY_PREFIX")
	var grpcTLS, redisTLS, anyName bool
	var pool uint
	f := flag.NewFlagSet("settings", flag.ContinueOnError)
	f.BoolVar(&s.merge, "MERGE_DOMAIN_CONFIG", false, "")
	f.StringVar(&s.logLevel, "LOG_LEVEL", "info", "")
	f.DurationVar(&s.timeout, "DECISION_TIMEOUT", 50*time.Millisecond, "")
	f.Int64Var(&s.budget, "BUDGET", 0, "")
	f.Float64Var(&s.near, "NEAR_LIMIT_RATIO", 0.8, "")
	f.BoolVar(&s.shadowMode, "SHADOW_MODE", false, "")
	f.BoolVar(&s.quotaMode, "QUOTA_MODE", false, "")
	f.BoolVar(&s.headers, "LIMIT_RESPONSE_HEADERS_ENABLED", false, "")
	f.StringVar(&s.limitHeader, "LIMIT_LIMIT_HEADER", "RateLimit-Limit", "")
	f.StringVar(&s.remainingHeader, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "")
	f.StringVar(&s.resetHeader, "LIMIT_RESET_HEADER", "RateLimit-Reset", "")
	f.BoolVar(&s.tracing, "TRACING_ENABLED", false, "")
	f.DurationVar(&s.maxAge, "GRPC_MAX_CONNECTION_AGE", 24*time.Hour, "")
	f.DurationVar(&s.grace, "GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour, "")
	f.BoolVar(&grpcTLS, "GRPC_SERVER_USE_TLS", false, "")
	f.BoolVar(&redisTLS, "REDIS_TLS", false, "")
	f.BoolVar(&anyName, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false, "")
	f.UintVar(&pool, "REDIS_POOL_SIZE", 0, "")
	f.VisitAll(func(one *flag.Flag) {
		if text := get(one.Name); text != "" {
			s.refuse(one.Name+"="+text, one.Value.Set(text))
		}
	})
	if min(s.timeout, s.maxAge, s.grace) <= 0 {
		s.refuse("DECISION_TIMEOUT, GRPC_MAX_CONNECTION_AGE and GRPC_MAX_CONNECTION_AGE_GRACE", errors.New("a time must be more than 0"))
	}
	if grpcTLS {
		s.grpcTLS = s.serverTLS()
	}
	if s.redis = s.redisOptions(); redisTLS || s.redis.TLSConfig != nil {
		s.redis.TLSConfig = s.redisTLS(anyName)
	}
	s.redis.PoolSize = int(pool)
	for name, only := range refusedSettings {
		if v := cmp.Or(get(name), only); v != only {
			s.refuse(name+"="+v, errors.New("only "+only+" is supported"))
		}
	}
	return s, errors.Join(s.wrong...)
}

// unused returns the settings that are set and have no effect.
func unused(environment []string) (names []string) {
	for _, pair := range environment {
		name, v, _ := strings.Cut(pair, "=")
		if v != "" && slices.ContainsFunc(ignored, func(pattern string) bool { return matches(pattern, name) }) {
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

// redisTLS is for a server with a certificate. If it may have any name, its chain is verified.
func (s *settings) redisTLS(anyName bool) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.pool("REDIS_TLS_CACERT")}
	if cert := s.get("REDIS_TLS_CLIENT_CERT"); cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, s.get("REDIS_TLS_CLIENT_KEY"))
		s.refuse("REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY", err)
		c.Certificates = []tls.Certificate{pair}
	}
	if anyName {
		c.InsecureSkipVerify, c.VerifyConnection = true, func(state tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
			for _, one := range state.PeerCertificates[1:] {
				o.Intermediates.AddCert(one)
			}
			_, err := state.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c
}

// redisOptions are those of a client of Redis or Valkey: REDIS_TYPE is SINGLE, SENTINEL or CLUSTER.
func (s *settings) redisOptions() *redis.UniversalOptions {
	o := &redis.UniversalOptions{Addrs: strings.Split(cmp.Or(s.get("REDIS_URL"), "127.0.0.1:6379"), ","), ContextTimeoutEnabled: true}
	o.Username, o.Password = s.login("REDIS_AUTH")
	o.SentinelUsername, o.SentinelPassword = s.login("REDIS_SENTINEL_AUTH")
	user, password := &o.Username, &o.Password // of the addresses
	switch kind := strings.ToUpper(cmp.Or(s.get("REDIS_TYPE"), "SINGLE")); {
	case kind == "SINGLE":
		o.Addrs = o.Addrs[:1]
	case kind == "CLUSTER":
		o.IsClusterMode = true
	case kind != "SENTINEL":
		s.refuse("REDIS_TYPE", errors.New(kind+" must be SINGLE, SENTINEL or CLUSTER"))
	case len(o.Addrs) < 2:
		s.refuse("REDIS_URL", errors.New("for SENTINEL write the master's name, then the Sentinels: name,host:port,host:port"))
	default:
		o.MasterName, o.Addrs = o.Addrs[0], o.Addrs[1:]
		user, password = &o.SentinelUsername, &o.SentinelPassword
	}
	for i, address := range o.Addrs {
		if strings.Contains(address, "://") {
			url, err := redis.ParseURL(address)
			if err != nil {
				s.refuse("REDIS_URL", err)
				break
			}
			o.Addrs[i], o.DB, o.TLSConfig = url.Addr, url.DB, url.TLSConfig
			*user, *password = cmp.Or(*user, url.Username), cmp.Or(*password, url.Password)
		}
	}
	return o
}

// login reads a password, or a user and a password with a colon between them.
func (s *settings) login(name string) (user, password string) {
	user, password, found := strings.Cut(s.get(name), ":")
	if !found {
		user, password = "", user
	}
	return user, password
}

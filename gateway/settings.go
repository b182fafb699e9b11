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

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/serve"
)

// settings come from the environment. The names are those of envoyproxy/ratelimit, where the meaning is the same.
type settings struct {
	env                     map[string]string
	wrong                   []error
	grpcNet                 string // tcp or unix
	grpcAt, httpAt, debugAt string
	config                  string // a file or folder of rules
	logLevel                string
	merge, logJSON, tracing bool

	engine        engine.Options
	serve         serve.Options
	grpcTLS       *tls.Config
	redis         *redis.UniversalOptions
	maxAge, grace time.Duration
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
	return net.JoinHostPort(cmp.Or(s.env[host], "0.0.0.0"), cmp.Or(s.env[port], otherwise))
}

// refuse notes that a setting is wrong.
func (s *settings) refuse(name string, err error) {
	if err != nil {
		s.wrong = append(s.wrong, fmt.Errorf("%s: %w", name, err))
	}
}

// readSettings reads the environment. All that is wrong is in one error.
func readSettings(env map[string]string) (*settings, error) {
	s := &settings{env: env, logJSON: env["LOG_FORMAT"] == "json"}
	s.httpAt, s.debugAt = s.address("HOST", "PORT", "8080"), s.address("DEBUG_HOST", "DEBUG_PORT", "6070")
	if s.grpcNet, s.grpcAt = "tcp", s.address("GRPC_HOST", "GRPC_PORT", "8081"); env["GRPC_UDS"] != "" {
		s.grpcNet, s.grpcAt = "unix", env["GRPC_UDS"]
	}
	s.config = cmp.Or(env["CONFIG"], path.Join(cmp.Or(env["RUNTIME_ROOT"], "/srv/runtime_data/current"), env["RUNTIME_SUBDIRECTORY"],
		cmp.Or(env["RUNTIME_APPDIRECTORY"], "config")))
	s.redis = s.redisOptions()
	s.parse()
	if min(s.engine.Timeout, s.maxAge, s.grace) <= 0 {
		s.refuse("DECISION_TIMEOUT, GRPC_MAX_CONNECTION_AGE and GRPC_MAX_CONNECTION_AGE_GRACE", errors.New("a time must be more than 0"))
	}
	for name, only := range refusedSettings {
		if v := cmp.Or(env[name], only); v != only {
			s.refuse(name+"="+v, errors.New("only "+only+" is supported"))
		}
	}
	return s, errors.Join(s.wrong...)
}

// parse reads the settings that aren't text, or have a default.
func (s *settings) parse() {
	var grpcTLS, redisTLS, anyName bool
	var pool uint
	f := flag.NewFlagSet("settings", flag.ContinueOnError)
	f.BoolVar(&s.merge, "MERGE_DOMAIN_CONFIG", false, "")
	f.StringVar(&s.logLevel, "LOG_LEVEL", "info", "")
	f.BoolVar(&s.tracing, "TRACING_ENABLED", false, "")
	f.DurationVar(&s.engine.Timeout, "DECISION_TIMEOUT", 50*time.Millisecond, "")
	f.Int64Var(&s.engine.Budget, "BUDGET", 0, "")
	f.BoolVar(&s.engine.Script, "SCRIPT_MODE", false, "")
	f.StringVar(&s.engine.Prefix, "CACHE_KEY_PREFIX", "", "")
	f.Float64Var(&s.serve.Near, "NEAR_LIMIT_RATIO", 0.8, "")
	f.BoolVar(&s.serve.Shadow, "SHADOW_MODE", false, "")
	f.BoolVar(&s.serve.Quota, "QUOTA_MODE", false, "")
	f.BoolVar(&s.serve.Headers, "LIMIT_RESPONSE_HEADERS_ENABLED", false, "")
	f.StringVar(&s.serve.Limit, "LIMIT_LIMIT_HEADER", "RateLimit-Limit", "")
	f.StringVar(&s.serve.Remaining, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "")
	f.StringVar(&s.serve.Reset, "LIMIT_RESET_HEADER", "RateLimit-Reset", "")
	f.DurationVar(&s.maxAge, "GRPC_MAX_CONNECTION_AGE", 24*time.Hour, "")
	f.DurationVar(&s.grace, "GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour, "")
	f.BoolVar(&grpcTLS, "GRPC_SERVER_USE_TLS", false, "")
	f.BoolVar(&redisTLS, "REDIS_TLS", false, "")
	f.BoolVar(&anyName, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false, "")
	f.UintVar(&pool, "REDIS_POOL_SIZE", 0, "")
	f.VisitAll(func(one *flag.Flag) {
		if text := s.env[one.Name]; text != "" {
			s.refuse(one.Name+"="+text, one.Value.Set(text))
		}
	})
	s.redis.PoolSize = int(pool)
	if grpcTLS {
		s.grpcTLS = s.serverTLS()
	}
	if redisTLS || s.redis.TLSConfig != nil {
		s.redis.TLSConfig = s.redisTLS(anyName)
	}
}

// unused returns the settings that are set and have no effect.
func unused(env map[string]string) (names []string) {
	for name, v := range env {
		if v != "" && slices.ContainsFunc(ignored, func(pattern string) bool {
			begin, all := strings.CutSuffix(pattern, "*")
			return name == pattern || all && strings.HasPrefix(name, begin)
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// serverTLS reads the certificate of the gRPC server at each new connection, so a renewed one is used. With a CA for
// clients, a client needs a certificate of it, which has the name GRPC_CLIENT_TLS_SAN if that is set.
func (s *settings) serverTLS() *tls.Config {
	cert, key, san := s.env["GRPC_SERVER_TLS_CERT"], s.env["GRPC_SERVER_TLS_KEY"], s.env["GRPC_CLIENT_TLS_SAN"]
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

// redisTLS is for a server with a certificate. If it may have any name, its chain is verified.
func (s *settings) redisTLS(anyName bool) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.pool("REDIS_TLS_CACERT")}
	if cert := s.env["REDIS_TLS_CLIENT_CERT"]; cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, s.env["REDIS_TLS_CLIENT_KEY"])
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
	o := &redis.UniversalOptions{Addrs: strings.Split(cmp.Or(s.env["REDIS_URL"], "127.0.0.1:6379"), ","), ContextTimeoutEnabled: true}
	o.Username, o.Password = s.login("REDIS_AUTH")
	o.SentinelUsername, o.SentinelPassword = s.login("REDIS_SENTINEL_AUTH")
	user, password := &o.Username, &o.Password // of the addresses
	switch kind := strings.ToUpper(cmp.Or(s.env["REDIS_TYPE"], "SINGLE")); {
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
	user, password, found := strings.Cut(s.env[name], ":")
	if !found {
		user, password = "", user
	}
	return user, password
}

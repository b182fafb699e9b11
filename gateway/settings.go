package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
	"gothrottle/gateway/internal/serve"
	"gothrottle/gateway/internal/xds"
)

// settings come from the environment. The names are those of envoyproxy/ratelimit, where the meaning is the same.
type settings struct {
	env                     map[string]string
	wrong                   []error
	grpcNet                 string // tcp or unix
	grpcAt, httpAt, debugAt string
	config                  string // a file or folder of rules
	logLevel                slog.Level
	logJSON, tracing        bool
	force                   bool   // start without rules
	needsRules              bool   // not ready without rules
	metricsAt, metricsPath  string // where /metrics is, too; "": nowhere
	rules                   rules.Options
	xds                     *xds.Options // instead of files; nil: files

	engine        engine.Options
	serve         serve.Options
	grpcTLS       *tls.Config
	log           *slog.Logger
	redis         *redis.UniversalOptions
	maxAge, grace time.Duration
}

// ignored are settings of envoyproxy/ratelimit that have no effect here. The log names each one that is set, and
// docs/gateway.md says why.
var ignored = strings.Fields(`
	REDIS_SOCKET_TYPE REDIS_PERSECOND* REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT REDIS_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR
	REDIS_HEALTH_CHECK_ACTIVE_CONNECTION EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
	STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT USE_STATSD USE_DOG_STATSD* STATSD_* STATS_FLUSH_INTERVAL DISABLE_STATS
	PROMETHEUS_MAPPER_YAML PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS EXTRA_TAGS RUNTIME_WATCH_ROOT RUNTIME_IGNOREDOTFILES
	TRACING_EXPORTER_PROTOCOL TRACING_SERVICE_* TRACING_SAMPLING_RATE MEMCACHE_* REDIS_STARTUP_* REDIS_CLUSTER_PIPELINE_PARALLELISM
	CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_BACKOFF_JITTER`)

func (s *settings) address(host, port, otherwise string) string {
	return net.JoinHostPort(cmp.Or(s.env[host], "0.0.0.0"), cmp.Or(s.env[port], otherwise))
}

// refuse notes that a setting is wrong.
func (s *settings) refuse(name string, err error) {
	if err != nil {
		s.wrong = append(s.wrong, fmt.Errorf("%s: %w", name, err))
	}
}

// oneOf returns which of the words a setting is, in any case. The first is the default.
func (s *settings) oneOf(name string, words ...string) string {
	text := cmp.Or(s.env[name], words[0])
	i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, text) })
	if i < 0 {
		s.refuse(name, fmt.Errorf("%q is not one of %v", text, words))
		return words[0]
	}
	return words[i]
}

// readSettings reads the environment. All that is wrong is in one error.
func readSettings(env map[string]string) (*settings, error) {
	s := &settings{env: env, log: slog.New(slog.DiscardHandler)}
	s.httpAt, s.debugAt = s.address("HOST", "PORT", "8080"), s.address("DEBUG_HOST", "DEBUG_PORT", "6070")
	if s.grpcNet, s.grpcAt = "tcp", s.address("GRPC_HOST", "GRPC_PORT", "8081"); env["GRPC_UDS"] != "" {
		s.grpcNet, s.grpcAt = "unix", env["GRPC_UDS"]
	}
	s.config = cmp.Or(env["CONFIG"], path.Join(cmp.Or(env["RUNTIME_ROOT"], "/srv/runtime_data/current"), env["RUNTIME_SUBDIRECTORY"],
		cmp.Or(env["RUNTIME_APPDIRECTORY"], "config")))
	s.redis = s.redisOptions()
	s.parse()
	s.oneOf("BACKEND_TYPE", "redis")
	s.logJSON = s.oneOf("LOG_FORMAT", "text", "json") == "json"
	level := s.oneOf("LOG_LEVEL", "info", "trace", "debug", "warn", "warning", "error", "fatal", "panic")
	level = strings.NewReplacer("trace", "debug", "warning", "warn", "fatal", "error", "panic", "error").Replace(level)
	s.refuse("LOG_LEVEL", s.logLevel.UnmarshalText([]byte(level)))
	if min(s.engine.Timeout, s.maxAge, s.grace) <= 0 {
		s.refuse("DECISION_TIMEOUT, GRPC_MAX_CONNECTION_AGE and GRPC_MAX_CONNECTION_AGE_GRACE", errors.New("a time must be more than 0"))
	}
	return s, errors.Join(s.wrong...)
}

// parse reads the settings that aren't text, or have a default.
func (s *settings) parse() {
	var grpcTLS, redisTLS, anyName, prometheus bool
	var pool uint
	f := flag.NewFlagSet("settings", flag.ContinueOnError)
	f.BoolVar(&s.rules.Merge, "MERGE_DOMAIN_CONFIG", false, "")
	f.BoolVar(&s.force, "FORCE_START_WITHOUT_INITIAL_CONFIG", false, "")
	f.BoolVar(&s.needsRules, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", false, "")
	f.BoolVar(&prometheus, "USE_PROMETHEUS", false, "")
	f.StringVar(&s.metricsAt, "PROMETHEUS_ADDR", ":9090", "")
	f.StringVar(&s.metricsPath, "PROMETHEUS_PATH", "/metrics", "")
	f.BoolVar(&s.tracing, "TRACING_ENABLED", false, "")
	f.DurationVar(&s.engine.Timeout, "DECISION_TIMEOUT", 50*time.Millisecond, "")
	f.Int64Var(&s.engine.Budget, "BUDGET", 0, "")
	f.BoolVar(&s.engine.Script, "SCRIPT_MODE", false, "")
	f.StringVar(&s.engine.Prefix, "CACHE_KEY_PREFIX", "", "")
	f.Float64Var(&s.serve.Near, "NEAR_LIMIT_RATIO", 0.8, "")
	f.BoolVar(&s.serve.Shadow, "SHADOW_MODE", false, "")
	f.BoolVar(&s.serve.Quota, "QUOTA_MODE", false, "")
	f.BoolVar(&s.serve.Metadata, "RESPONSE_DYNAMIC_METADATA", false, "")
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
	s.readFlags(f)
	if near := s.serve.Near; !(near >= 0 && near <= 1) {
		s.refuse("NEAR_LIMIT_RATIO", errors.New("it must be from 0 to 1"))
	}
	if s.redis.PoolSize = int(pool); !prometheus {
		s.metricsAt = ""
	}
	if clean := path.Clean(s.metricsPath); clean[0] != '/' || clean != s.metricsPath || strings.ContainsAny(clean, "{} ") {
		s.refuse("PROMETHEUS_PATH", errors.New("it must be a path, such as /metrics"))
	}
	if begin := strings.Index(s.engine.Prefix, "{"); begin >= 0 && strings.Index(s.engine.Prefix[begin:], "}") < 2 {
		s.refuse("CACHE_KEY_PREFIX", errors.New("a { begins a hash tag, such as {t}: without a whole one, the keys of a cluster lose theirs"))
	}
	s.defaults()
	if s.oneOf("CONFIG_TYPE", "FILE", "GRPC_XDS_SOTW") == "GRPC_XDS_SOTW" {
		s.xds = s.xdsOptions()
	}
	if grpcTLS {
		s.grpcTLS = s.serverTLS()
	}
	if redisTLS || s.redis.TLSConfig != nil {
		s.redis.TLSConfig = s.redisTLS(anyName)
	}
}

func (s *settings) readFlags(f *flag.FlagSet) {
	f.VisitAll(func(one *flag.Flag) {
		if text := s.env[one.Name]; text != "" {
			s.refuse(one.Name+"="+text, one.Value.Set(text))
		}
	})
}

// defaults are for rules that don't say: those that come over xDS cannot.
func (s *settings) defaults() {
	s.rules.Algorithm = rules.Algorithm(s.oneOf("DEFAULT_ALGORITHM", "fixed_window", "sliding_window", "gcra"))
	for path := range strings.FieldsFuncSeq(s.env["DEFAULT_LATE"], func(r rune) bool { return r == ',' }) {
		s.rules.Late = append(s.rules.Late, rules.NewPattern(strings.TrimSpace(path)))
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
	var last atomic.Pointer[tls.Certificate]
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		before := last.Load()
		switch {
		case err != nil && before != nil:
			s.log.Error("the certificate cannot be read, and the last one is used", "file", cert, "error", err)
			return before, nil
		case err == nil && (before == nil || !slices.Equal(before.Certificate[0], pair.Certificate[0])):
			last.Store(&pair)
			s.log.Info("a certificate is in use", "file", cert, "until", pair.Leaf.NotAfter)
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

// xdsOptions are those of the server that sends rules. Its files are read at each connection.
func (s *settings) xdsOptions() *xds.Options {
	var useTLS bool
	o := &xds.Options{Headers: metadata.MD{}}
	f := flag.NewFlagSet("xds", flag.ContinueOnError)
	f.StringVar(&o.Server, "CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", "")
	f.BoolVar(&useTLS, "CONFIG_GRPC_XDS_SERVER_USE_TLS", false, "")
	f.IntVar(&o.MaxMessage, "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", 4<<20, "")
	f.DurationVar(&o.First, "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", time.Second, "")
	f.DurationVar(&o.Longest, "XDS_CLIENT_BACKOFF_MAX_INTERVAL", time.Minute, "")
	s.readFlags(f)
	if min(o.First, o.Longest) <= 0 || o.MaxMessage <= 0 {
		s.refuse("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL, XDS_CLIENT_BACKOFF_MAX_INTERVAL and XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", errors.New("a time and a size must be more than 0"))
	}
	fields := map[string]any{}
	s.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "=", func(k, v string) { fields[k] = v })
	s.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":", func(k, v string) { o.Headers.Append(k, v) })
	node, err := structpb.NewStruct(fields)
	s.refuse("CONFIG_GRPC_XDS_NODE_METADATA", err)
	o.Node = &core.Node{Id: cmp.Or(s.env["CONFIG_GRPC_XDS_NODE_ID"], "default"), Metadata: node}
	o.Credentials = func() (credentials.TransportCredentials, error) {
		if !useTLS {
			return insecure.NewCredentials(), nil
		}
		now := settings{env: s.env}
		c := now.clientTLS("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY")
		c.ServerName = s.env["CONFIG_GRPC_XDS_SERVER_TLS_SAN"]
		return credentials.NewTLS(c), errors.Join(now.wrong...)
	}
	_, err = o.Credentials()
	s.refuse("CONFIG_GRPC_XDS_SERVER_USE_TLS", err)
	return o
}

// pairs reads pairs with commas between them.
func (s *settings) pairs(name, between string, add func(k, v string)) {
	for pair := range strings.FieldsFuncSeq(s.env[name], func(r rune) bool { return r == ',' }) {
		k, v, found := strings.Cut(pair, between)
		if !found {
			s.refuse(name, fmt.Errorf("%q has no %q", pair, between))
		}
		add(strings.TrimSpace(k), strings.TrimSpace(v))
	}
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
	switch kind := s.oneOf("REDIS_TYPE", "SINGLE", "SENTINEL", "CLUSTER"); {
	case kind == "SINGLE":
		o.Addrs = o.Addrs[:1]
	case kind == "CLUSTER":
		o.IsClusterMode = true
	case len(o.Addrs) < 2:
		s.refuse("REDIS_URL", errors.New("for SENTINEL write the master's name, then the Sentinels: name,host:port,host:port"))
	default:
		o.MasterName, o.Addrs = o.Addrs[0], o.Addrs[1:]
		user, password = &o.SentinelUsername, &o.SentinelPassword
	}
	for i, address := range o.Addrs {
		if strings.Contains(address, "://") {
			parsed, err := redis.ParseURL(address)
			if err != nil || strings.Contains(address, "#") {
				s.refuse("REDIS_URL", urlMistake(err))
				break
			}
			o.Addrs[i], o.DB, o.TLSConfig = parsed.Addr, parsed.DB, parsed.TLSConfig
			*user, *password = cmp.Or(*user, parsed.Username), cmp.Or(*password, parsed.Password)
		}
	}
	return o
}

// urlMistake says what is wrong with an address, without any part of it: a password may be in each.
func urlMistake(err error) error {
	cause := "it has a #"
	if wrong := (*url.Error)(nil); errors.As(err, &wrong) {
		err = wrong.Err
	}
	if err != nil {
		cause = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redis: "), "net/url: ")
		cause = strings.TrimSpace(cause[:strings.IndexAny(cause+":", `:"`)])
	}
	return errors.New(cause + ": encode %, /, #, ? and a comma in a password, as %25, %2F, %23, %3F and %2C")
}

// login reads a password, or a user and a password with a colon between them.
func (s *settings) login(name string) (user, password string) {
	user, password, found := strings.Cut(s.env[name], ":")
	if !found {
		user, password = "", user
	}
	return user, password
}

package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"
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
	env                     map[string]string // the text of each row of the table, or its default
	wrong                   []error
	unused                  []string // the settings that are set and have no effect
	grpcAt, httpAt, debugAt string
	config                  string // a file or folder of rules
	logLevel                slog.Level
	tracing                 bool
	force                   bool // start without rules
	needsRules              bool // not ready without rules
	rules                   rules.Options
	xds                     *xds.Options // instead of files; nil: files

	engine        engine.Options
	serve         serve.Options
	grpcTLS       *tls.Config
	log           *slog.Logger
	redis         *redis.UniversalOptions
	poolSize      uint
	maxAge, grace time.Duration
}

// refuse notes that a setting is wrong.
func (s *settings) refuse(name string, err error) {
	if err != nil {
		s.wrong = append(s.wrong, fmt.Errorf("%s: %w", name, err))
	}
}

// table has each setting, with its type, default and meaning, for -help; docs/gateway.md has some rows. It begins with those that
// envoyproxy/ratelimit has and the gateway does not: the log names the ones that are set.
func (s *settings) table() *flag.FlagSet {
	const (
		runtime    = "without `CONFIG`, the rules are in ROOT/SUBDIRECTORY/APPDIRECTORY"
		listens    = "addresses and ports to listen at: for `/metrics`, `/rules` and `/explain`, for gRPC, for HTTP"
		ages       = "when a gRPC client must connect again, and how long its requests may then take"
		headers    = "`LIMIT_RESPONSE_HEADERS_ENABLED` adds headers to responses: the limit, what's left, the seconds until the window ends"
		prometheus = "`USE_PROMETHEUS` serves the metrics at `PROMETHEUS_ADDR`, too, at each path"
		node       = "the gateway's name for the management server, and more: name=value, separated by commas"
		pauses     = "the first and longest pause before the gateway reconnects to the management server: doubled each time, with jitter"
	)
	f := flag.NewFlagSet("settings", flag.ContinueOnError)
	alike := func(without, means string, names ...string) {
		for _, name := range names {
			f.String(name, without, means)
		}
	}
	alike("", "no effect", strings.Fields(`CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL DISABLE_STATS
		EXPIRATION_JITTER_MAX_SECONDS EXTRA_TAGS LOCAL_CACHE_SIZE_IN_BYTES MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS
		MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS MEMCACHE_TLS_CACERT MEMCACHE_TLS_CLIENT_CERT
		MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION PROMETHEUS_MAPPER_YAML PROMETHEUS_PATH
		PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_HEALTH_CHECK_ACTIVE_CONNECTION
		REDIS_PERSECOND REDIS_PERSECOND_AUTH REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND_PIPELINE_LIMIT
		REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_SIZE
		REDIS_PERSECOND_SENTINEL_AUTH REDIS_PERSECOND_SOCKET_TYPE REDIS_PERSECOND_TIMEOUT REDIS_PERSECOND_TLS
		REDIS_PERSECOND_TYPE REDIS_PERSECOND_URL REDIS_PIPELINE_LIMIT REDIS_PIPELINE_WINDOW REDIS_POOL_ON_EMPTY_BEHAVIOR
		REDIS_SOCKET_TYPE REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME REDIS_STARTUP_MAX_INTERVAL
		REDIS_TIMEOUT RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT STATSD_HOST STATSD_PORT STATS_FLUSH_INTERVAL
		STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE
		TRACING_SERVICE_INSTANCE_ID TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE USE_DOG_STATSD
		USE_DOG_STATSD_MOGRIFIERS USE_STATSD XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_BACKOFF_RANDOM_FACTOR`)...)

	f.String("CONFIG", "", "the rules: a file, or a folder")
	f.String("RUNTIME_ROOT", "/srv/runtime_data/current", runtime)
	f.String("RUNTIME_SUBDIRECTORY", "", runtime)
	f.String("RUNTIME_APPDIRECTORY", "config", runtime)
	f.BoolVar(&s.rules.Merge, "MERGE_DOMAIN_CONFIG", false, "several files may have one domain")
	f.Var(words{"FILE", "GRPC_XDS_SOTW"}, "CONFIG_TYPE", "files, or rules over xDS")
	f.BoolVar(&s.force, "FORCE_START_WITHOUT_INITIAL_CONFIG", false, "listen before there are valid rules: until then, gRPC requests get `UNAVAILABLE`")
	f.BoolVar(&s.needsRules, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", false, "the health check fails until a domain has rules")
	f.Var(words{"fixed_window", "sliding_window", "gcra"}, "DEFAULT_ALGORITHM", "the algorithm of rules that name none")
	f.String("DEFAULT_LATE", "", "paths whose rules are late, separated by commas")

	f.Var(words{"redis"}, "BACKEND_TYPE", "Redis or Valkey; there is no Memcached backend")
	f.String("REDIS_URL", "127.0.0.1:6379", "host:port, a URL (`rediss://` means TLS) or a Unix socket's path; nodes or Sentinels, separated by commas")
	f.Var(words{"SINGLE", "SENTINEL", "CLUSTER"}, "REDIS_TYPE", "for `SENTINEL`, `REDIS_URL` begins with the master's name and a comma")
	f.UintVar(&s.poolSize, "REDIS_POOL_SIZE", 0, "connections to each server; 0: 10 per processor")
	f.Bool("REDIS_TLS", false, "use TLS: to the management server, for gRPC, to Redis")
	f.Bool("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false, "the server's certificate may have any name")
	f.StringVar(&s.engine.Prefix, "CACHE_KEY_PREFIX", "", "the beginning of all keys")
	f.DurationVar(&s.engine.Timeout, "DECISION_TIMEOUT", 50*time.Millisecond, "how long a decision waits for the server")
	f.Int64Var(&s.engine.Budget, "BUDGET", 0, "units of a limit to take in advance")
	f.UintVar(&s.engine.LocalKeys, "LOCAL_KEYS", 100_000, "keys that `on_failure: local` counts at most; the least recently used start full again")
	f.BoolVar(&s.engine.Script, "SCRIPT_MODE", false, "run [the script](managed.md#without-the-module), on servers without the module: the same rules and keys")
	f.BoolVar(&s.engine.Shadow, "SHADOW_MODE", false, "refuse no request")
	f.BoolVar(&s.serve.Quota, "QUOTA_MODE", false, "all descriptors are quotas")
	f.String("QUOTA_GROUP_BY", "", "keys of descriptors, separated by commas, whose values group quotas")
	f.Float64Var(&s.serve.Near, "NEAR_LIMIT_RATIO", 0.8, "from this used share on, metrics call a limit near")

	f.String("PORT", "8080", listens)
	f.String("GRPC_PORT", "8081", listens)
	f.String("GRPC_UDS", "", "a Unix socket for gRPC instead")
	f.DurationVar(&s.maxAge, "GRPC_MAX_CONNECTION_AGE", 24*time.Hour, ages)
	f.DurationVar(&s.grace, "GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour, ages)
	f.Bool("GRPC_SERVER_USE_TLS", false, "use TLS: to the management server, for gRPC, to Redis")
	f.String("GRPC_CLIENT_TLS_CACERT", "", "gRPC clients need a certificate signed by one from this file")
	f.BoolVar(&s.serve.Metadata, "RESPONSE_DYNAMIC_METADATA", false, "add the request and its rules' `metadata` to responses")
	f.BoolVar(&s.serve.Headers, "LIMIT_RESPONSE_HEADERS_ENABLED", false, headers)
	f.StringVar(&s.serve.Limit, "LIMIT_LIMIT_HEADER", "RateLimit-Limit", headers)
	f.StringVar(&s.serve.Remaining, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining", headers)
	f.StringVar(&s.serve.Reset, "LIMIT_RESET_HEADER", "RateLimit-Reset", headers)

	f.String("DEBUG_PORT", "6070", listens)
	f.BoolVar(&s.serve.Top, "TOP_ENABLED", false, "serve [`/top`](#operating): the gateway's user needs `+go.top`, and the server `gothrottle.top-keys`")
	f.Bool("USE_PROMETHEUS", false, prometheus)
	f.String("PROMETHEUS_ADDR", ":9090", prometheus)
	f.BoolVar(&s.tracing, "TRACING_ENABLED", false, "send a span per call by OTLP over HTTP, under the caller's `traceparent`; `OTEL_*` set service, collector and sampler")
	f.Var(words{"info", "trace", "debug", "warn", "warning", "error", "fatal", "panic"}, "LOG_LEVEL", "the least important lines to log")
	f.Var(words{"text", "json"}, "LOG_FORMAT", "the form of log lines")

	f.StringVar(&s.xds.Server, "CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", "the management server: host:port")
	f.Bool("CONFIG_GRPC_XDS_SERVER_USE_TLS", false, "use TLS: to the management server, for gRPC, to Redis")
	f.String("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", "headers for the management server: name:value, separated by commas")
	f.String("CONFIG_GRPC_XDS_NODE_ID", "default", node)
	f.String("CONFIG_GRPC_XDS_NODE_METADATA", "", node)
	f.IntVar(&s.xds.MaxMessage, "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", 4<<20, "the largest message from the management server")
	f.DurationVar(&s.xds.First, "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", time.Second, pauses)
	f.DurationVar(&s.xds.Longest, "XDS_CLIENT_BACKOFF_MAX_INTERVAL", time.Minute, pauses)

	alike("0.0.0.0", listens, "DEBUG_HOST", "GRPC_HOST", "HOST")
	alike("", "a password, or user:password", "REDIS_AUTH", "REDIS_SENTINEL_AUTH")
	alike("", "trust this file's certificates instead of the system's", "REDIS_TLS_CACERT", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT")
	alike("", "the name that the other side's certificate must have", "GRPC_CLIENT_TLS_SAN", "CONFIG_GRPC_XDS_SERVER_TLS_SAN")
	alike("", "files of the gateway's certificate and key; new gRPC connections use renewed ones", "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY",
		"GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY")
	return f
}

// words are what a setting may be, in any case of letters. The first one is in force.
type words []string

func (w words) String() string { return w[0] }

func (w words) Set(text string) error {
	i := slices.IndexFunc(w, func(word string) bool { return strings.EqualFold(word, text) })
	if i < 0 {
		return fmt.Errorf("it is not one of %v", []string(w))
	}
	w[0], w[i] = w[i], w[0]
	return nil
}

// readSettings reads the environment. All that is wrong is in one error.
func readSettings(env func(name string) string) (*settings, error) {
	s := &settings{env: map[string]string{}, xds: &xds.Options{Headers: metadata.MD{}}, log: slog.New(slog.DiscardHandler)}
	s.table().VisitAll(func(one *flag.Flag) {
		if text := env(one.Name); text != "" {
			if s.refuse(one.Name+"="+text, one.Value.Set(text)); strings.HasPrefix(one.Usage, "no effect") {
				s.unused = append(s.unused, one.Name)
			}
		}
		s.env[one.Name] = one.Value.String()
	})
	s.check()
	s.httpAt = net.JoinHostPort(s.env["HOST"], s.env["PORT"])
	s.debugAt = net.JoinHostPort(s.env["DEBUG_HOST"], s.env["DEBUG_PORT"])
	s.grpcAt = cmp.Or(s.env["GRPC_UDS"], net.JoinHostPort(s.env["GRPC_HOST"], s.env["GRPC_PORT"]))
	s.config = cmp.Or(s.env["CONFIG"], path.Join(s.env["RUNTIME_ROOT"], s.env["RUNTIME_SUBDIRECTORY"], s.env["RUNTIME_APPDIRECTORY"]))
	level := strings.NewReplacer("trace", "debug", "warning", "warn", "fatal", "error", "panic", "error").Replace(s.env["LOG_LEVEL"])
	s.refuse("LOG_LEVEL", s.logLevel.UnmarshalText([]byte(level)))
	if s.redis = s.redisOptions(); s.on("REDIS_TLS") || s.redis.TLSConfig != nil {
		s.redis.TLSConfig = s.redisTLS(s.on("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"))
	}
	if s.on("GRPC_SERVER_USE_TLS") {
		s.grpcTLS = s.serverTLS()
	}
	s.rules.Algorithm = rules.Algorithm(s.env["DEFAULT_ALGORITHM"])
	for path := range strings.FieldsFuncSeq(s.env["DEFAULT_LATE"], func(r rune) bool { return r == ',' }) {
		s.rules.Late = append(s.rules.Late, rules.Pattern(strings.TrimSpace(path)))
	}
	s.serve.GroupBy = slices.Collect(strings.FieldsFuncSeq(s.env["QUOTA_GROUP_BY"], func(r rune) bool { return strings.ContainsRune(", ", r) }))
	if s.env["CONFIG_TYPE"] == "FILE" {
		s.xds = nil
	} else {
		s.xdsOptions(s.xds)
	}
	return s, errors.Join(s.wrong...)
}

// check refuses what its type permits.
func (s *settings) check() {
	if min(s.engine.Timeout, s.maxAge, s.grace, s.xds.First, s.xds.Longest, time.Duration(s.xds.MaxMessage)) <= 0 {
		s.refuse("DECISION_TIMEOUT, GRPC_MAX_CONNECTION_AGE*, XDS_CLIENT_BACKOFF_*_INTERVAL and XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
			errors.New("a time and a size must be more than 0"))
	}
	if near := s.serve.Near; !(near >= 0 && near <= 1) {
		s.refuse("NEAR_LIMIT_RATIO", errors.New("it must be from 0 to 1"))
	}
	if begin := strings.Index(s.engine.Prefix, "{"); begin >= 0 && strings.Index(s.engine.Prefix[begin:], "}") < 2 {
		s.refuse("CACHE_KEY_PREFIX", errors.New("a { must begin a whole hash tag, such as {t}: otherwise the cluster ignores the tags of keys"))
	}
}

// on reports whether a setting is true.
func (s *settings) on(name string) bool { return s.env[name] == "true" }

// xdsOptions completes those of the server that sends rules. Its files are read at each connection.
func (s *settings) xdsOptions(o *xds.Options) {
	fields := map[string]any{}
	s.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "=", func(k, v string) { fields[k] = v })
	s.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":", func(k, v string) { o.Headers.Append(k, v) })
	node, err := structpb.NewStruct(fields)
	s.refuse("CONFIG_GRPC_XDS_NODE_METADATA", err)
	o.Node = &core.Node{Id: s.env["CONFIG_GRPC_XDS_NODE_ID"], Metadata: node}
	o.Credentials = func() (credentials.TransportCredentials, error) {
		if !s.on("CONFIG_GRPC_XDS_SERVER_USE_TLS") {
			return insecure.NewCredentials(), nil
		}
		now := settings{env: s.env}
		c := now.clientTLS("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY")
		c.ServerName = s.env["CONFIG_GRPC_XDS_SERVER_TLS_SAN"]
		return credentials.NewTLS(c), errors.Join(now.wrong...)
	}
	_, err = o.Credentials()
	s.refuse("CONFIG_GRPC_XDS_SERVER_USE_TLS", err)
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

// redisOptions are those of a client of Redis or Valkey: REDIS_TYPE is SINGLE, SENTINEL or CLUSTER.
func (s *settings) redisOptions() *redis.UniversalOptions {
	o := &redis.UniversalOptions{Addrs: strings.Split(s.env["REDIS_URL"], ","), PoolSize: int(s.poolSize), ContextTimeoutEnabled: true}
	o.Username, o.Password = s.login("REDIS_AUTH")
	o.SentinelUsername, o.SentinelPassword = s.login("REDIS_SENTINEL_AUTH")
	user, password := &o.Username, &o.Password // of the addresses
	switch kind := s.env["REDIS_TYPE"]; {
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
				s.refuse("REDIS_URL", errors.New("it isn't a URL such as redis://user:password@server:6379/0: "+ // a password may be in each part
					"encode %, /, #, ? and a comma in a password, as %25, %2F, %23, %3F and %2C"))
				break
			}
			o.Addrs[i], o.DB, o.TLSConfig = parsed.Addr, parsed.DB, parsed.TLSConfig
			*user, *password = cmp.Or(*user, parsed.Username), cmp.Or(*password, parsed.Password)
		}
	}
	return o
}

// login reads a password, or a user and a password with a colon between them.
func (s *settings) login(name string) (user, password string) {
	text := s.env[name]
	colon := strings.Index(text, ":")
	return text[:max(colon, 0)], text[colon+1:]
}

package main

import (
	"flag"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/gateway/internal/serve"
	"gothrottle/gateway/internal/xds"
)

// upstreamSettings are those of envoyproxy/ratelimit, at the commit that the page names.
const upstreamSettings = `
	BACKEND_TYPE CACHE_KEY_PREFIX CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_CLIENT_TLS_CERT
	CONFIG_GRPC_XDS_CLIENT_TLS_KEY CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA
	CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
	CONFIG_GRPC_XDS_SERVER_URL CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_TYPE DEBUG_HOST DEBUG_PORT DISABLE_STATS
	EXPIRATION_JITTER_MAX_SECONDS EXTRA_TAGS FORCE_START_WITHOUT_INITIAL_CONFIG GRPC_CLIENT_TLS_CACERT
	GRPC_CLIENT_TLS_SAN GRPC_HOST GRPC_MAX_CONNECTION_AGE GRPC_MAX_CONNECTION_AGE_GRACE GRPC_PORT GRPC_SERVER_TLS_CERT
	GRPC_SERVER_TLS_KEY GRPC_SERVER_USE_TLS GRPC_UDS HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED HOST LIMIT_LIMIT_HEADER
	LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER LIMIT_RESPONSE_HEADERS_ENABLED LOCAL_CACHE_SIZE_IN_BYTES LOG_FORMAT
	LOG_LEVEL MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS
	MEMCACHE_TLS_CACERT MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION
	MERGE_DOMAIN_CONFIG NEAR_LIMIT_RATIO PORT PROMETHEUS_ADDR PROMETHEUS_MAPPER_YAML PROMETHEUS_PATH
	PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS QUOTA_MODE REDIS_AUTH REDIS_CLUSTER_PIPELINE_PARALLELISM
	REDIS_HEALTH_CHECK_ACTIVE_CONNECTION REDIS_PERSECOND REDIS_PERSECOND_AUTH
	REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND_PIPELINE_LIMIT REDIS_PERSECOND_PIPELINE_WINDOW
	REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_SIZE REDIS_PERSECOND_SENTINEL_AUTH
	REDIS_PERSECOND_SOCKET_TYPE REDIS_PERSECOND_TIMEOUT REDIS_PERSECOND_TLS REDIS_PERSECOND_TYPE REDIS_PERSECOND_URL
	REDIS_PIPELINE_LIMIT REDIS_PIPELINE_WINDOW REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_POOL_SIZE REDIS_SENTINEL_AUTH
	REDIS_SOCKET_TYPE REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME REDIS_STARTUP_MAX_INTERVAL
	REDIS_TIMEOUT REDIS_TLS REDIS_TLS_CACERT REDIS_TLS_CLIENT_CERT REDIS_TLS_CLIENT_KEY
	REDIS_TLS_SKIP_HOSTNAME_VERIFICATION REDIS_TYPE REDIS_URL RESPONSE_DYNAMIC_METADATA RUNTIME_APPDIRECTORY
	RUNTIME_IGNOREDOTFILES RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_WATCH_ROOT SHADOW_MODE STATSD_HOST STATSD_PORT
	STATS_FLUSH_INTERVAL STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT TRACING_ENABLED TRACING_EXPORTER_PROTOCOL
	TRACING_SAMPLING_RATE TRACING_SERVICE_INSTANCE_ID TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE USE_DOG_STATSD
	USE_DOG_STATSD_MOGRIFIERS USE_PROMETHEUS USE_STATSD XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_JITTER
	XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES`

// The page names each setting that envoyproxy/ratelimit lacks, and its table has the code's words. A test sets each setting. The
// code knows all of envoyproxy/ratelimit.
func TestSettings_page(t *testing.T) {
	text := readFile(t, "../docs/gateway.md")
	tests, err := exec.Command("sh", "-c", "cat *_test.go").Output()
	require.NoError(t, err)
	names := map[string][]string{} // settings with one meaning share a row
	all := (&settings{xds: &xds.Options{}}).table()
	all.VisitAll(func(one *flag.Flag) {
		name := "`" + strings.TrimSuffix(one.Name+"="+one.DefValue, "=") + "`"
		if w, ok := one.Value.(words); ok {
			name = "`" + one.Name + "=" + strings.Join(w, "`, `") + "`"
		}
		if one.Usage != "no effect" {
			names[one.Usage] = append(names[one.Usage], name)
			assert.Regexp(t, `"`+one.Name+`"|[ "]`+one.Name+`=`, string(tests), "no test sets %s", one.Name)
			known := slices.Contains(strings.Fields(upstreamSettings), one.Name)
			assert.True(t, known || regexp.MustCompile("`"+one.Name+"[=`]").MatchString(text), "the page doesn't name %s", one.Name)
		}
	})
	_, table, _ := strings.Cut(text, "\n| setting | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		assert.Equal(t, cells[0], strings.Join(names[cells[1]], ", "))
	}
	assert.NotEmpty(t, table)
	for name := range strings.FieldsSeq(upstreamSettings) {
		assert.NotNil(t, all.Lookup(name), "the table lacks %s", name)
	}
}

// Settings have an effect, in any case of letters. Wrong ones are refused together, before anything listens.
func TestSettings(t *testing.T) {
	s, err := readSettings(of(map[string]string{"RUNTIME_ROOT": "/r/", "RUNTIME_SUBDIRECTORY": "s", "RUNTIME_APPDIRECTORY": "a", "CACHE_KEY_PREFIX": "a}{t}{",
		"LOG_LEVEL": "Warning", "LOG_FORMAT": "JSON", "NEAR_LIMIT_RATIO": "1", "MERGE_DOMAIN_CONFIG": "1", "QUOTA_MODE": "T",
		"LIMIT_LIMIT_HEADER": "x", "LIMIT_REMAINING_HEADER": "y", "LIMIT_RESET_HEADER": "z", "REDIS_POOL_SIZE": "3",
		"GRPC_MAX_CONNECTION_AGE": "2s", "GRPC_MAX_CONNECTION_AGE_GRACE": "3s", "CONFIG_TYPE": "grpc_xds_sotw",
		"CONFIG_GRPC_XDS_NODE_METADATA": "k=v", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "7", "USE_STATSD": "true", "MEMCACHE_SRV": "a",
		"REDIS_URL": "redis://amy:pw@h:1/6", "REDIS_AUTH": "bob:x"}))
	require.NoError(t, err)
	require.Equal(t, serve.Options{Near: 1, Quota: true, Limit: "x", Remaining: "y", Reset: "z"}, s.serve)
	require.Equal(t, []any{"json", slog.LevelWarn, "/r/s/a", []string{"MEMCACHE_SRV", "USE_STATSD"}, true, 3, 2 * time.Second, 3 * time.Second, 7, "v", 6, "bob"},
		[]any{s.env["LOG_FORMAT"], s.logLevel, s.config, s.unused, s.rules.Merge, s.redis.PoolSize, s.maxAge, s.grace,
			s.xds.MaxMessage, s.xds.Node.Metadata.AsMap()["k"], s.redis.DB, s.redis.Username})
	wrong := map[string]string{"DECISION_TIMEOUT": "-1s", "BACKEND_TYPE": "memcache", "SHADOW_MODE": "maybe", "REDIS_POOL_SIZE": "-1", "GRPC_SERVER_USE_TLS": "true", "REDIS_TYPE": "odd",
		"CONFIG_TYPE": "files", "DEFAULT_ALGORITHM": "lucky", "LOG_LEVEL": "loud", "LOG_FORMAT": "xml", "NEAR_LIMIT_RATIO": "1.1"}
	_, err = readSettings(of(wrong))
	for name := range wrong {
		require.ErrorContains(t, err, strings.Replace(name, "USE_TLS", "TLS_CERT", 1))
	}
	for _, env := range []map[string]string{{"REDIS_TYPE": "sentinel"}, {"REDIS_URL": "redis://:x:y"}, {"REDIS_TLS": "true", "REDIS_TLS_CACERT": "none"},
		{"CACHE_KEY_PREFIX": "a{b"}, {"CACHE_KEY_PREFIX": "{}{t}"}, {"CACHE_KEY_PREFIX": "}{"}, {"NEAR_LIMIT_RATIO": "-0.1"}, {"NEAR_LIMIT_RATIO": "nan"}} {
		_, err := readSettings(of(env))
		require.Error(t, err, env)
	}
	for _, password := range []string{"secr%et", "secr/et", "1/secret", "1/sec/ret", "secr#et", "1#secret", "secr?et", "1?secret", "secr et", "secr,et"} {
		_, err := readSettings(of(map[string]string{"REDIS_URL": "redis://:" + password + "@h:1"}))
		require.ErrorContains(t, err, "encode %, /, #", password)
		require.NotRegexp(t, "sec|ret|et@|@h", err, password)
	}
}

package main

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/gateway/internal/serve"
	"gothrottle/gateway/internal/xds"
)

// The page has the table of the settings that have an effect, and a test sets each. The code knows all of envoyproxy/ratelimit.
func TestSettings_page(t *testing.T) {
	text := readFile(t, "../docs/gateway.md")
	tests, err := exec.Command("sh", "-c", "cat *_test.go").Output()
	require.NoError(t, err)
	var rows []string
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
		}
	})
	for means, some := range names {
		rows = append(rows, "| "+strings.Join(some, ", ")+" | "+means+" |\n")
	}
	slices.Sort(rows)
	table := "\n| setting | meaning |\n|---|---|\n" + strings.Join(rows, "") + "\n"
	assert.True(t, strings.Contains(text, table), "the page's table isn't\n%s", table)
	var upstream struct{ Settings []string } // of the commit that the page names
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "testdata/envoyproxy-ratelimit.json")), &upstream))
	for _, name := range upstream.Settings {
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

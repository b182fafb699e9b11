package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/gateway/internal/rules"
	"gothrottle/gateway/internal/serve"
	"gothrottle/gateway/internal/xds"
)

// The page has the table of the settings, a test sets each, and the page says what becomes of envoyproxy/ratelimit's.
func TestSettings_page(t *testing.T) {
	text := readFile(t, "../docs/gateway.md")
	tests, err := exec.Command("sh", "-c", "cat *_test.go").Output()
	require.NoError(t, err)
	kinds := strings.NewReplacer("*flag.", "", "Value", "", "bool", "true or false", "duration", "time", "float64", "number", "uint", "integer", "int64", "integer", "int", "integer", "string", "text")
	var rows []string // settings with one meaning share one
	(&settings{xds: &xds.Options{}}).table().VisitAll(func(one *flag.Flag) {
		kind := kinds.Replace(fmt.Sprintf("%T", one.Value))
		if all, ok := one.Value.(words); ok {
			kind = "`" + strings.Join(all, "`, `") + "`"
		}
		rest := fmt.Sprintf(" | %s |%s | %s |\n", kind, strings.ReplaceAll(" `"+one.DefValue+"`", " ``", ""), one.Usage)
		i := slices.IndexFunc(rows, func(row string) bool { return strings.HasSuffix(row, rest) })
		if i < 0 {
			rows = append(rows, "| `"+one.Name+"`"+rest)
		} else {
			rows[i] = strings.TrimSuffix(rows[i], rest) + ", `" + one.Name + "`" + rest
		}
		assert.True(t, regexp.MustCompile(`"`+one.Name+`"|[ "]`+one.Name+`=`).Match(tests), "no test sets %s", one.Name)
	})
	table := "\n| setting | type | default | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "") + "\n"
	assert.True(t, strings.Contains(text, table), "the page's table isn't\n%s", table)
	var upstream struct{ Settings []string } // of the commit that the page names
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "testdata/envoyproxy-ratelimit.json")), &upstream))
	patterns := regexp.MustCompile("`([A-Z_]+\\*?)`").FindAllStringSubmatch(text, -1)
	for _, name := range upstream.Settings {
		if !slices.ContainsFunc(patterns, func(m []string) bool { return rules.NewPattern(m[1]).Match(name) }) {
			t.Errorf("the page does not say what becomes of %s", name)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z].*?) \\| (.*?) \\|$").FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile("`([A-Z_]+)\\*?`").FindAllStringSubmatch(row[1], -1) {
			none := strings.HasPrefix(row[2], "no effect")
			if found := unused(map[string]string{m[1]: "1"}); none != (len(found) == 1) {
				t.Errorf("the page says %q of %s, the log names %q", row[2], m[1], found)
			}
		}
	}
}

// Settings have an effect, in any case of letters. Wrong ones are refused together, before anything listens.
func TestSettings(t *testing.T) {
	s, err := readSettings(map[string]string{"RUNTIME_ROOT": "/r/", "RUNTIME_SUBDIRECTORY": "s", "RUNTIME_APPDIRECTORY": "a", "CACHE_KEY_PREFIX": "a}{t}{",
		"LOG_LEVEL": "Warning", "LOG_FORMAT": "JSON", "NEAR_LIMIT_RATIO": "1", "MERGE_DOMAIN_CONFIG": "1", "QUOTA_MODE": "T",
		"LIMIT_LIMIT_HEADER": "x", "LIMIT_REMAINING_HEADER": "y", "LIMIT_RESET_HEADER": "z", "REDIS_POOL_SIZE": "3",
		"GRPC_MAX_CONNECTION_AGE": "2s", "GRPC_MAX_CONNECTION_AGE_GRACE": "3s", "CONFIG_TYPE": "grpc_xds_sotw",
		"CONFIG_GRPC_XDS_NODE_METADATA": "k=v", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "7"})
	require.NoError(t, err)
	require.True(t, s.logJSON)
	require.Equal(t, slog.LevelWarn, s.logLevel)
	require.Equal(t, "/r/s/a", s.config)
	require.Equal(t, serve.Options{Near: 1, Quota: true, Limit: "x", Remaining: "y", Reset: "z"}, s.serve)
	require.Equal(t, []any{true, 3, 2 * time.Second, 3 * time.Second, 7, "v"}, []any{s.rules.Merge, s.redis.PoolSize, s.maxAge, s.grace,
		s.xds.MaxMessage, s.xds.Node.Metadata.AsMap()["k"]})
	wrong := map[string]string{"DECISION_TIMEOUT": "-1s", "BACKEND_TYPE": "memcache", "SHADOW_MODE": "maybe", "REDIS_POOL_SIZE": "-1", "GRPC_SERVER_USE_TLS": "true", "REDIS_TYPE": "odd",
		"CONFIG_TYPE": "files", "DEFAULT_ALGORITHM": "lucky", "LOG_LEVEL": "loud", "LOG_FORMAT": "xml", "NEAR_LIMIT_RATIO": "1.1"}
	_, err = readSettings(wrong)
	for name := range wrong {
		require.ErrorContains(t, err, strings.Replace(name, "USE_TLS", "TLS_CERT", 1))
	}
	for _, env := range []map[string]string{{"REDIS_TYPE": "sentinel"}, {"REDIS_URL": "redis://:x:y"}, {"REDIS_TLS": "true", "REDIS_TLS_CACERT": "none"},
		{"PROMETHEUS_PATH": "/a//b"}, {"PROMETHEUS_PATH": "metrics"}, {"PROMETHEUS_PATH": "/{a}"},
		{"CACHE_KEY_PREFIX": "a{b"}, {"CACHE_KEY_PREFIX": "{}{t}"}, {"CACHE_KEY_PREFIX": "}{"}, {"NEAR_LIMIT_RATIO": "-0.1"}, {"NEAR_LIMIT_RATIO": "nan"}} {
		_, err := readSettings(env)
		require.Error(t, err, env)
	}
	for _, password := range []string{"secr%et", "secr/et", "1/secret", "1/sec/ret", "secr#et", "1#secret", "secr?et", "1?secret", "secr et", "secr,et"} {
		_, err := readSettings(map[string]string{"REDIS_URL": "redis://:" + password + "@h:1"})
		require.ErrorContains(t, err, "encode %, /, #", password)
		require.NotRegexp(t, "sec|ret|et@|@h", err, password)
	}
}

// Package monitoring holds what Prometheus, redis_exporter and Grafana load, and the tests that run it: a server with the
// module, an exporter and Prometheus, all on 127.0.0.1.
package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

var ctx = context.Background()

// until asks again until all is right.
func until(t *testing.T, right func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, right, servers.Patience, 50*time.Millisecond)
}

// startServer starts a server and returns its port and a client.
func startServer(t *testing.T, o servers.Options) (string, *redis.Client) {
	t.Helper()
	s := servers.New(t, o)
	client := s.Client(func(o *redis.Options) { o.Protocol = 2 })
	t.Cleanup(func() { client.Close() })
	return s.Port, client
}

// code returns the lines of code of docs/monitoring.md under a heading.
func code(t *testing.T, heading string) (lines []string) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, "../../docs/monitoring.md"), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if line, indented := strings.CutPrefix(line, "    "); indented {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// shell runs a line of the page in the repository's root. redis-cli asks the server at the port.
func shell(line, port string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", "redis-cli() { command redis-cli -p "+port+" \"$@\"; }; "+line)
	cmd.Dir = "../.."
	return cmd
}

// prints fails until the line succeeds and prints the text.
func prints(t *testing.T, line, port, text string) {
	t.Helper()
	until(t, func(c *assert.CollectT) {
		out, err := shell(line, port).CombinedOutput()
		assert.NoError(c, err, line)
		assert.Contains(c, string(out), text, line)
	})
}

// stack is a server with the module, an exporter and Prometheus, set up by the lines of the page. A second exporter asks a
// server without the module, and a third target answers nothing.
type stack struct {
	t                         *testing.T
	redis                     *redis.Client
	prometheus                string // host and port
	instance, notLoaded, down string // the targets
}

// startStack runs each line of the page's section "Set it up".
func startStack(t *testing.T) *stack {
	t.Helper()
	servers.Needed(t, "test-monitoring")
	port, client := startServer(t, servers.Options{Args: []string{"--gothrottle.policies", "p QUOTA 1 1000s; s SHADOW QUOTA 1 1000s"}})
	without, _ := startServer(t, servers.Options{Bare: true})
	address := func() string { return "127.0.0.1:" + servers.FreePort() }
	s := &stack{t: t, redis: client, prometheus: address(), instance: address(), notLoaded: address(), down: address()}
	folder, done := t.TempDir(), 0
	targets := fmt.Sprintf("- %s\n          - %s\n          - %s", s.instance, s.notLoaded, s.down)
	for name, text := range map[string]string{"alerts.yml": read(t, "alerts.yml"),
		"prometheus.yml": strings.NewReplacer("15s", "200ms", "- 127.0.0.1:9121", targets).Replace(read(t, "prometheus.yml"))} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	ours := strings.NewReplacer("127.0.0.1:9121", s.instance, "127.0.0.1:9090", s.prometheus, "127.0.0.1:6379", "127.0.0.1:"+port,
		"deploy/monitoring/prometheus.yml", folder+"/prometheus.yml", "/var/tmp/gothrottle-metrics", t.TempDir())
	for _, line := range code(t, "Set it up") {
		line, done = ours.Replace(line), done+1
		switch word, _, _ := strings.Cut(line, " "); word {
		case "apt-get": // build/test-monitoring.sh installs what this line names
		case "redis-cli":
			prints(t, line, port, "OK")
		case "prometheus-redis-exporter":
			servers.Background(t, shell("exec "+line, port))
			line = strings.NewReplacer("127.0.0.1:"+port, "127.0.0.1:"+without, s.instance, s.notLoaded, "-redis.user exporter -redis.password change-me ", "").Replace(line)
			servers.Background(t, shell("exec "+line, port))
		case "prometheus":
			servers.Background(t, shell("exec "+line+" --log.level=warn", port))
		case "curl":
			prints(t, line, port, `gothrottle_loaded"} 1`)
		case "promtool":
			prints(t, line, port, map[bool]string{true: "SUCCESS", false: `{command="throttle", outcome="admitted"} => 0 @`}[strings.Contains(line, " check ")])
		default:
			t.Errorf("nobody runs %s", line)
		}
	}
	assert.GreaterOrEqual(t, done, 9, "the lines of the page")
	return s
}

// sample is one result of a query.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (s sample) value() float64 {
	v, _ := strconv.ParseFloat(s.Value[1].(string), 64)
	return v
}

// query asks Prometheus for the results of an expression now.
func (s *stack) query(expr string) []sample {
	s.t.Helper()
	reply, err := http.Get("http://" + s.prometheus + "/api/v1/query?query=" + url.QueryEscape(expr))
	require.NoError(s.t, err)
	defer reply.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []sample }
	}
	require.NoError(s.t, json.NewDecoder(reply.Body).Decode(&answer), expr)
	require.Empty(s.t, answer.Error, expr)
	return answer.Data.Result
}

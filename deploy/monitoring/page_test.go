package monitoring

import (
	"strings"
	"testing"

	servers "gothrottle/tests/server"
)

// Each line under "Without Prometheus" of docs/monitoring.md tells of a call that was denied.
func TestPage_withoutPrometheus(t *testing.T) {
	port, client := startServer(t, servers.Options{Module: moduleFile(t), Args: []string{"--gothrottle.top-keys", "10"}})
	for range 2 {
		client.Do(ctx, "GO.THROTTLE", "api:bob", 0, 1, 60)
	}
	told := map[string]string{"INFO gothrottle": "gothrottle_throttle_limited:1\r\n", "GO.TOP": "0:api:bob\n1\n0\n", "GO.INFO": "in_use\n1\n",
		"INFO commandstats": "cmdstat_go.throttle:calls=2,", "INFO latencystats": "usec_go.throttle:p50="}
	sh, seen := newShell(t, port), 0
	for line := range strings.Lines(strings.Join(blocks(t, "Without Prometheus"), "")) {
		for asked, text := range told {
			if strings.HasPrefix(line, "redis-cli "+asked) {
				sh.run(line, text)
				seen++
			}
		}
	}
	if want := strings.Count(strings.Join(blocks(t, "Without Prometheus"), ""), "\n"); seen != want || seen != len(told) {
		t.Errorf("%d of %d lines were run", seen, want)
	}
}

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/commands/memory/resp"
	"gothrottle/gateway/internal/serve"
)

// Metrics have the names of the page, hits also those of envoyproxy/ratelimit, and values of requests make a bounded number
// of labels. /explain says why, and takes nothing. Responses have the metadata of their rules if asked.
func TestMetrics(t *testing.T) { bubble(t, testMetrics) }

func testMetrics(t *testing.T) {
	g := inside(t, inMemory(t), july+"http: {rules: [{name: all, match: {methods: [PUT], path: /x}, rate_limit: {unit: day, requests_per_unit: 5}}]}",
		"RESPONSE_DYNAMIC_METADATA=true")
	r, err := g.ShouldRateLimit(t.Context(), request("d", "path=/a/1/users/2*3", "q=a"))
	require.NoError(t, err)
	text, err := protojson.Marshal(r.DynamicMetadata)
	require.NoError(t, err)
	require.JSONEq(t, `{"domain": "d", "descriptors": [{"entries": ["path=/a/1/users/2"], "hitsAddend": 3}, {"entries": ["q=a"]}],
		"metadata": {"team": {"name": "web", "rank": 1.5}}}`, string(text))
	require.Equal(t, "OVER_LIMIT X0", g.ask(t, "d", "q=a"))
	for i := range 80 {
		var many []string
		for j := range 128 {
			many = append(many, fmt.Sprintf("m=%d-%d", i, j))
		}
		g.ask(t, "d", many...)
	}
	require.Equal(t, 200, g.get(t, g.web+"/check", "X-Forwarded-Method", "PUT").StatusCode)
	shown := g.page(t, g.debug+"/metrics")
	require.Equal(t, serve.MaxLabels, strings.Count(shown, "gothrottle_gateway_hits_total{")-1) // m without a value is beyond
	for _, line := range []string{`ratelimit_service_rate_limit_total_hits{domain="d",key1="path_/a/*/users/*",key2=""} 3`,
		`ratelimit_service_rate_limit_over_limit{domain="d",key1="q",key2=""} 1`, `gothrottle_gateway_hits_total{outcome="ok",rule="d.m"} `,
		"gothrottle_gateway_server_away 0", `gothrottle_gateway_request_seconds_count{protocol="http"} 1`} {
		require.Contains(t, shown, line)
	}
	page := readFile(t, "../docs/gateway.md")
	for _, m := range regexp.MustCompile(`(?m)^# TYPE ((?:gothrottle_gateway|ratelimit)_\w+)`).FindAllStringSubmatch(shown, -1) {
		require.Contains(t, page, "`"+m[1]+"`")
	}
	response, err := g.client.Post(g.debug+"/explain", "", strings.NewReader(`{"domain": "d", "descriptors": [
		{"entries": [{"key": "q", "value": "b"}]}, {"entries": [{"key": "path", "value": "/b"}]}]}`))
	require.NoError(t, err)
	require.Regexp(t, `^q=b: rule d.q\nlimit: d.q at \S+:4, key fixed_window\.24h0m0s:d\|q=b: 0 of 1 in use\npath=/b: no rule below d, which has 5: m, path_\*.png, .*\nno limit\n$`, body(t, response))
	require.Contains(t, g.page(t, g.debug+"/explain"), "all: no, because of its path")
	require.Equal(t, 404, g.get(t, g.web+"/explain").StatusCode)
	require.Equal(t, "OK o0", g.ask(t, "d", "q=b"))
}

// A header that is there twice refuses a request if a rule counts by it that may refuse requests.
func TestCheck_repeated(t *testing.T) { bubble(t, testRepeated) }

func testRepeated(t *testing.T) {
	const day, by = "unit: day, requests_per_unit: 9", "by: ['header:X-Key'], rate_limit: {"
	for rules, want := range map[string]int{
		"{name: a, " + by + day + "}}":                                                                         429,
		"{name: a, shadow_mode: true, " + by + day + "}}":                                                      200,
		"{name: a, " + by + "unlimited: true}}":                                                                200,
		"{name: a, " + by + day + "}}, {name: b, rate_limit: {unlimited: true, replaces: [{name: a}]}}":        200,
		"{name: a, " + by + day + ", replaces: [{name: b}]}}, {name: b, " + by + "unlimited: true}}":           429,
		"{name: a, shadow_mode: true, " + by + day + "}}, {name: b, " + by + day + ", replaces: [{name: a}]}}": 429,
	} {
		for settings, status := range map[string]int{"SHADOW_MODE=false": want, "SHADOW_MODE=true": 200} {
			g := inside(t, inMemory(t), "domain: d\nhttp: {rules: ["+rules+"]}", settings)
			assert.Equal(t, status, g.get(t, g.web+"/check", "X-Key", "k", "X-Key", "l").StatusCode, rules, settings)
			assert.Equal(t, status == 429, strings.Contains(g.page(t, g.debug+"/metrics"), `refused_requests_total{reason="invalid"} 1`), rules)
		}
	}
}

// The metrics and labels that the page, the dashboard and the alerts name are exported.
func TestDashboard(t *testing.T) { bubble(t, testDashboard) }

func testDashboard(t *testing.T) {
	s := inMemory(t)
	g := inside(t, s, july)
	g.ask(t, "d", "m=1*5")
	g.ask(t, "none", "m=1")
	s.Change(func(f *resp.Faults) { f.Silent = true })
	g.ask(t, "d", "m=1")
	shown := g.page(t, g.debug+"/metrics")
	asked := regexp.MustCompile(`"expr":"(?:[^"\\]|\\.)*"`).FindAllString(readFile(t, "../deploy/gateway/dashboard.json"), -1)
	asked = append(asked, regexp.MustCompile(`(?s)expr: .*?for:`).FindAllString(readFile(t, "../deploy/gateway/alerts.yml"), -1)...)
	rows := regexp.MustCompile("(?m)^\\| `gothrottle_gateway_.*").FindAllString(readFile(t, "../docs/gateway.md"), -1)
	require.True(t, len(asked) > 15 && len(rows) > 8)
	for _, row := range rows {
		name, labels, _ := strings.Cut(strings.Trim(strings.Split(row, "|")[1], " `"), "` `")
		asked = append(asked, name+" by ("+strings.ReplaceAll(labels, "` `", ", ")+")")
	}
	for _, expr := range asked {
		names := regexp.MustCompile(`\b(gothrottle_gateway|process)_\w+`).FindAllString(expr, -1)
		require.NotEmpty(t, names, expr)
		for _, name := range names {
			assert.Contains(t, shown, "# TYPE "+strings.TrimSuffix(name, "_bucket")+" ", expr)
		}
		for _, m := range regexp.MustCompile(`by \(([\w, ]*)\)`).FindAllStringSubmatch(expr, -1) {
			for _, label := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
				assert.Regexp(t, `(?m)^`+names[0]+`\w*{[^}]*\b`+label+`="`, shown+names[0]+`{instance=""`, expr)
			}
		}
	}
}

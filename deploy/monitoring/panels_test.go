package monitoring

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	servers "gothrottle/tests/server"
)

// calls has calls of each outcome, whatever was called before. Call n is sent n + 1 times, so no panel can show one number
// for another. % is a new key each time.
var calls = strings.Split(`GO.THROTTLE a% 0 1 1000, GO.THROTTLE d:throttle 0 1 1000 2, GO.THROTTLE e 0 1 0, GO.THROTTLE o 0 1 1000 0,
CL.THROTTLE b% 0 1 1000, CL.THROTTLE d:cl 0 1 1000 2, CL.THROTTLE e 0 1 0, GO.WINDOW w% 1 1000, GO.WINDOW d:window 1 1000 2,
GO.QUOTA q% 1 1000, GO.QUOTA e 1 0, GO.LEASE l% 1 1000 me, GO.RELEASE o me, GO.ALL m% QUOTA 1 1000, GO.ALL d:all QUOTA 1 1000 2,
GO.POLICY p:%, GO.POLICY s:d 2, GO.POLICY none:x, GO.POLICY_RO s:o 2, GO.THROTTLE_RO o 0 1 1000 2, GO.INFO o, GO.QUOTA`, ",")

// traffic sends the calls, and makes the server evict keys and refuse a call for want of memory.
func (s *stack) traffic() {
	s.t.Helper()
	for n, call := range calls {
		for i := range n + 1 {
			s.redis.Do(ctx, words(strings.ReplaceAll(call, "%", strconv.Itoa(i)))...)
		}
	}
	for i := range 30 {
		s.redis.Set(ctx, fmt.Sprint("evicted", i), "", 0)
	}
	s.redis.ConfigSet(ctx, "maxmemory-policy", "allkeys-random")
	s.redis.ConfigSet(ctx, "maxmemory", "1")
	until(s.t, func(c *assert.CollectT) {
		assert.ErrorContains(c, s.redis.Set(ctx, "refused", "", 0).Err(), "OOM", "with full memory")
	})
	s.redis.ConfigSet(ctx, "maxmemory", "0")
}

var counted = regexp.MustCompile(`(?:rate|increase)\(([^()]*)\[[$\w]+\]( offset \w+)?\)`)

// totals turns the rates of an expression into what was counted since the start, which is exact.
func (s *stack) totals(expr string) string {
	return counted.ReplaceAllString(strings.ReplaceAll(expr, "$here", `job="gothrottle",instance="`+s.instance+`"`), "($1$2)")
}

// shows returns what a panel shows, by legend. In tables the legend is all labels and a letter for the expression.
func (s *stack) shows(p tablePanel) map[string]float64 {
	shown := map[string]float64{}
	for i, show := range p.Shows {
		for _, r := range s.query(s.totals(show[1])) {
			legend := regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(show[0], func(name string) string { return r.Metric[strings.Trim(name, "{}")] })
			if legend == "" {
				legend = strings.TrimSpace(r.Metric["command"] + " " + r.Metric["outcome"] + r.Metric["limiter"])
				if len(p.Shows) > 1 {
					legend += fmt.Sprintf(" %c", 'A'+i)
				}
			}
			shown[legend] = r.value()
		}
	}
	maps.DeleteFunc(shown, func(name string, _ float64) bool { return strings.HasPrefix(name, "top ") }) // the scrapes' calls
	return shown
}

// A real Prometheus, which scrapes a real redis_exporter: both are started by the lines of docs/monitoring.md under "Set it
// up". Each panel of the dashboard shows something, and those that count calls show what panels.json wants. The alerts
// that should fire would: their expressions have results. Prometheus has the metrics of the page's table, and the exporter's
// user is denied only what the page says.
func TestStack_everyPanelShowsTheTraffic(t *testing.T) {
	s := startStack(t)
	s.traffic()
	for _, row := range readTable(t).Dashboards[0].Rows {
		for _, p := range row.Panels {
			until(t, func(c *assert.CollectT) {
				got := s.shows(p)
				maps.DeleteFunc(got, func(name string, n float64) bool {
					_, wanted := p.Wants[name]
					return math.IsNaN(n) || n == 0 && p.Wants != nil && !wanted
				})
				assert.NotEmpty(c, got, p.Title)
				assert.True(c, p.Wants == nil || maps.Equal(got, p.Wants), "%s shows %v, want %v", p.Title, got, p.Wants)
			})
		}
	}
	for name, instance := range map[string]string{"GothrottleDown": s.down, "GothrottleNotLoaded": s.notLoaded,
		"GothrottleErrors": s.instance, "GothrottleOOM": s.instance, "GothrottleEvictions": s.instance} {
		result := s.query(s.totals(rules(t)[name].Expr))
		assert.True(t, slices.ContainsFunc(result, func(r sample) bool { return r.Metric["instance"] == instance }), "%s does not fire for %s: %v", name, instance, result)
	}
	var got, page []string
	for _, r := range s.query(`count by (__name__) ({__name__=~"gothrottle_.+"})`) {
		got = append(got, r.Metric["__name__"])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(gothrottle_\\w+)` \\|").FindAllStringSubmatch(read(t, "../../docs/monitoring.md"), -1) {
		page = append(page, m[1])
	}
	assert.ElementsMatch(t, got, page, "what Prometheus has, and what the page names")
	for _, entry := range s.redis.Do(ctx, "ACL", "LOG").Val().([]any) {
		assert.Contains(t, fmt.Sprint(entry), "object config|get ", "what the exporter's user was denied")
	}
}

type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// rules returns the alerts by name.
func rules(t *testing.T) map[string]alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "alerts.yml")), &file))
	all := map[string]alert{}
	for _, rule := range file.Groups[0].Rules {
		all[rule.Alert] = rule
	}
	return all
}

// promtool accepts the configuration and the rules, and each alert fires when it should and not before.
func TestAlerts_promtool(t *testing.T) {
	servers.Needed(t, "test-monitoring")
	file, queries := t.TempDir()+"/queries.yml", "groups:\n- name: queries\n  rules:\n"
	for _, p := range readTable(t).Dashboards[1].Rows[0].Panels {
		for _, show := range p.Shows {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$here", `job="x"`).Replace(show[1])
			queries += fmt.Sprintf("  - {record: panel, expr: '%s'}\n", expr)
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(queries), 0o600))
	for _, args := range []string{"check config prometheus.yml", "check rules alerts.yml", "test rules alerts_test.yml", "test rules ../gateway/alerts_test.yml",
		"check rules ../gateway/alerts.yml", "check rules " + file} {
		out, err := exec.Command("promtool", strings.Fields(args)...).CombinedOutput()
		assert.NoError(t, err, "promtool %s: %s", args, out)
	}
}

// Each alert has a unit test, a row with its severity in docs/monitoring.md, and a heading in docs/operating.md, where
// runbook_url leads.
func TestAlerts_areDescribed(t *testing.T) {
	tests, page, operating := read(t, "alerts_test.yml"), read(t, "../../docs/monitoring.md"), read(t, "../../docs/operating.md")
	for name, rule := range rules(t) {
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*\\| " + rule.Labels["severity"] + " \\|$")
		heading := regexp.MustCompile(`(?m)^#+ ` + name + `$`)
		assert.True(t, strings.Contains(tests, `alertname="`+name+`"`) && row.MatchString(page) && heading.MatchString(operating), "%s has no unit test, row or heading", name)
		assert.NotEmpty(t, rule.Annotations["summary"], name)
		assert.NotEmpty(t, rule.Annotations["description"], name)
		assert.Equal(t, "{{ $externalLabels.runbooks }}/operating.md#"+strings.ToLower(name), rule.Annotations["runbook_url"])
	}
	assert.Len(t, rules(t), strings.Count(page, "\n| `Gothrottle"))
	assert.GreaterOrEqual(t, len(rules(t)), 8)
}

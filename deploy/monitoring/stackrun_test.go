package monitoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	servers "gothrottle/tests/server"
)

// stack is a server with the module, an exporter and Prometheus, set up by the lines of the page. A second exporter asks a
// server without the module, and a third target answers nothing.
type stack struct {
	t                              *testing.T
	redis                          *redis.Client
	prometheus                     string // host and port
	instance, notLoaded, noMetrics string // the targets
}

const scrapeInterval = "200ms"

// alertsFired are the alerts that must fire during the test.
func (s *stack) alertsFired() []string {
	return []string{"GothrottleEvictions " + s.instance, "GothrottleNoMetrics " + s.noMetrics, "GothrottleNotLoaded " + s.notLoaded, "GothrottleOOM " + s.instance}
}

// startStack runs each block of the page's section "Set it up".
func startStack(t *testing.T) *stack {
	t.Helper()
	port, client := startServer(t, servers.Options{Module: moduleFile(t), Args: []string{"--gothrottle.policies", policies}})
	prepare(t, client)
	without, _ := startServer(t, servers.Options{Bare: true})
	address := func() string { return "127.0.0.1:" + servers.FreePort() }
	s := &stack{t: t, redis: client, prometheus: address(), instance: address(), notLoaded: address(), noMetrics: address()}
	folder := s.writeConfig()
	sh := newShell(t, port, "127.0.0.1:9121", s.instance, "127.0.0.1:9090", s.prometheus,
		"deploy/monitoring/prometheus.yml", folder+"/prometheus.yml", "/var/tmp/gothrottle-metrics", t.TempDir())
	done := 0
	for _, block := range blocks(t, "Set it up") {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch word, _, _ := strings.Cut(line, " "); word {
			case "apt-get": // build/test-monitoring.sh installs what this line names
				if !strings.Contains(read(t, "../../build/test-monitoring.sh"), strings.TrimPrefix(line, "apt-get install ")) {
					t.Errorf("build/test-monitoring.sh does not install as %s", line)
				}
			case "redis-cli":
				sh.run(line, "OK")
			case "prometheus-redis-exporter":
				sh.start(line)
				plain := strings.NewReplacer("127.0.0.1:"+port, "127.0.0.1:"+without, s.instance, s.notLoaded, "-redis.user exporter -redis.password change-me ", "")
				sh.start(plain.Replace(sh.replaced.Replace(line)))
			case "prometheus":
				sh.start(line + " --log.level=warn")
			case "curl":
				sh.eventually(line, `gothrottle_loaded"} 1`)
			case "promtool":
				sh.eventually(line, map[bool]string{true: "SUCCESS", false: `{command="throttle", outcome="admitted"} => 0 @`}[strings.Contains(line, " check ")])
			default:
				t.Errorf("nobody runs %s", line)
			}
			done++
		}
	}
	if done < 9 {
		t.Errorf("the page has %d lines only", done)
	}
	return s
}

// writeConfig writes Prometheus' configuration with short times and the test's targets.
func (s *stack) writeConfig() (folder string) {
	s.t.Helper()
	folder = s.t.TempDir()
	config := strings.NewReplacer("15s", scrapeInterval, "- 127.0.0.1:9121", fmt.Sprintf("- %s\n          - %s\n          - %s", s.instance, s.notLoaded, s.noMetrics)).
		Replace(read(s.t, "prometheus.yml"))
	alerts := regexp.MustCompile(`(?m)^        for: .*`).ReplaceAllString(read(s.t, "alerts.yml"), "        for: 0s")
	for name, text := range map[string]string{"prometheus.yml": config, "alerts.yml": alerts} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	return folder
}

// sample is one result of a query: an instant's value, or values over time.
type sample struct {
	Metric map[string]string
	Value  point
	Values []point
}

type point struct{ time, value float64 }

func (p *point) UnmarshalJSON(text []byte) (err error) {
	var pair [2]any
	if err = json.Unmarshal(text, &pair); err == nil {
		p.time = pair[0].(float64)
		p.value, err = strconv.ParseFloat(pair[1].(string), 64)
	}
	return err
}

// ask asks Prometheus' API.
func (s *stack) ask(path string, parameters url.Values, data any) error {
	reply, err := http.Get("http://" + s.prometheus + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil || answer.Error != "" {
		return fmt.Errorf("%s %s: %v %s", path, parameters, err, answer.Error)
	}
	return nil
}

// query returns the results of an expression now.
func (s *stack) query(expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := s.ask("query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// number returns the one value of an expression, 0 if there is none.
func (s *stack) number(expr string) float64 {
	result, err := s.query(expr)
	if err != nil || len(result) != 1 {
		return 0
	}
	return result[0].Value.value
}

// firing returns the alerts that fire, each with its instance.
func (s *stack) firing() ([]string, error) {
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	err := s.ask("alerts", nil, &data)
	var names []string
	for _, a := range data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"]+" "+a.Labels["instance"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// scrapes tells how many scrapes of the server with the module there are.
func (s *stack) scrapes() float64 {
	return s.number(fmt.Sprintf(`count_over_time(gothrottle_panics{instance=%q}[%s])`, s.instance, window))
}

// traffic sends the traffic in rounds of some scrapes each.
func (s *stack) traffic() {
	s.t.Helper()
	fillMemory(s.t, s.redis)
	s.redis.Do(ctx, "GO.LEASE", "slots", 1, 100000, "holder")
	for round := range waves {
		send(s.redis, round)
		want := float64(4 * (round + 2))
		until(s.t, func() error {
			if n := s.scrapes(); n < want {
				return fmt.Errorf("%v scrapes, want %v", n, want)
			}
			return nil
		})
	}
}

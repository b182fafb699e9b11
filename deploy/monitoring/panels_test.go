package monitoring

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// window is the time over which the panels' rates are asked. It is longer than the test, so a rate times the window is
// what was counted since the first scrape, when every counter was 0.
const (
	window        = "5m"
	windowSeconds = 300
)

// want is what a panel shows, by legend. A rate is given as what was counted in the window. NaN stands for any number.
type want struct {
	isRate bool
	values map[string]float64
}

// wanted returns what each panel must show, by its title.
func (s *stack) wanted() map[string]want {
	all, usec, p99 := map[string]want{}, s.infoField("commandstats", "usec="), s.infoField("latencystats", "p99=")
	decisions, denials, errs := 0.0, 0.0, 0.0
	panels := map[string]string{"Admitted": "admitted", "Denied": "limited", "Shadowed": "shadowed", "Errors by command": "errors", "Refused by the server": "refused"}
	for title, outcome := range panels {
		all[title] = want{true, map[string]float64{}}
		for command, n := range counts() {
			name := command
			if outcome == "refused" {
				name = wireName(command)
			}
			if n[outcome] > 0 {
				all[title].values[name] = float64(n[outcome])
			}
		}
	}
	all["Admitted"].values["lease"]++ // the holder's
	all["Refused by the server"].values["go.top"], all["Refused by the server"].values["cl.throttle"] = 0, 0
	ratios, cpu, mean, since := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for command, n := range counts() {
		made := float64(all["Admitted"].values[command]) + float64(n["limited"]+n["shadowed"])
		if made > 0 {
			ratios[command] = float64(n["limited"]) / made
		}
		decisions, denials, errs = decisions+made, denials+float64(n["limited"]), errs+float64(n["errors"])
		name := wireName(command)
		cpu[name], mean[name] = usec[name]/1e6, usec[name]/1e6/(made+float64(n["errors"]+n["other"]))
		for _, outcome := range []string{"admitted", "limited", "shadowed", "errors", "other"} {
			if n[outcome] > 0 {
				since[command+" "+outcome] = float64(n[outcome])
			}
		}
	}
	since["lease admitted"]++
	since["top other"] = math.NaN() // the scrapes'
	cpu["go.top"] = math.NaN()
	delete(p99, "go.top")
	one := func(legend string, value float64) want { return want{values: map[string]float64{legend: value}} }
	tops := map[string]float64{}
	for key, command := range denied {
		tops[key+" A"], tops[key+" B"] = float64(counts()[command]["limited"]), 0
	}
	all["Module"] = one("loaded", 1)
	all["Decisions"] = want{true, map[string]float64{"decisions": decisions}}
	all["Deny rate"] = one("denied", denials/decisions)
	all["Errors"] = want{true, map[string]float64{"errors": errs}}
	all["Panics"], all["Panics by server"] = one("panics", 0), one(s.instance, 0)
	all["Clock lead"], all["Clock lead by server"] = one("lead", 0), one(s.instance, 0)
	all["Deny rate by command"] = want{values: ratios}
	all["CPU share"] = want{true, cpu}
	all["Time per call"] = want{values: mean}
	all["p99 since the start"] = want{values: p99}
	all["Evicted keys"] = want{true, map[string]float64{s.instance: s.infoField("stats", "")["evicted_keys"] - 30}}
	all["Keys denied most"] = want{values: tops}
	all["Calls since the start"] = want{values: since}
	return all
}

// infoField returns a number of each line of INFO of the module's commands: the one after the name.
func (s *stack) infoField(section, name string) map[string]float64 {
	numbers := map[string]float64{}
	line := regexp.MustCompile(`(?m)^(?:cmdstat_|latency_percentiles_usec_)?([a-z_.]+):(?:.*[:,])?` + name + `([0-9.]+)`)
	for _, m := range line.FindAllStringSubmatch(s.redis.Info(ctx, section).Val(), -1) {
		if section == "stats" || strings.HasPrefix(m[1], "go.") || m[1] == "cl.throttle" {
			numbers[m[1]], _ = strconv.ParseFloat(m[2], 64)
		}
	}
	return numbers
}

var label = regexp.MustCompile(`\{\{(\w+)\}\}`)

// legend is how Grafana names a result. In tables it is all labels and the target.
func legend(p panel, q target, metric map[string]string) string {
	if p.Type != "table" {
		return label.ReplaceAllStringFunc(q.LegendFormat, func(name string) string { return metric[strings.Trim(name, "{}")] })
	}
	var words []string
	for _, name := range []string{"limiter", "command", "outcome"} {
		if metric[name] != "" {
			words = append(words, metric[name])
		}
	}
	if len(p.Targets) > 1 {
		words = append(words, q.RefID)
	}
	return strings.Join(words, " ")
}

// compare tells how what a panel shows differs from what it must show.
//
// Prometheus extrapolates a rate at both ends of the window by at most 1.1 mean intervals between scrapes. So with n
// scrapes a rate is never too low, and too high by at most 2.2 / (n - 1).
func (s *stack) compare(p panel, w want, scrapes float64) error {
	shown, high := map[string]float64{}, 1.0
	for _, q := range p.Targets {
		result, err := s.query(substitute(q.Expr, s.instance, window))
		if err != nil {
			return err
		}
		for _, one := range result {
			shown[legend(p, q, one.Metric)] = one.Value.value
		}
	}
	if w.isRate {
		high = 1 + 2.2/(scrapes-1)
	}
	var wrong []error
	for name, value := range w.values {
		got, found := shown[name]
		if w.isRate {
			got *= windowSeconds
		}
		if !found || !math.IsNaN(value) && (got < value*(1-1e-9) || got > value*high*(1+1e-9)) {
			wrong = append(wrong, fmt.Errorf("%s: %s shows %v (%t), want %v", p.Title, name, got, found, value))
		}
		delete(shown, name)
	}
	if len(shown) > 0 {
		wrong = append(wrong, fmt.Errorf("%s: nobody sent %v", p.Title, shown))
	}
	return errors.Join(wrong...)
}

// Each panel of the dashboard shows the numbers of the traffic that was sent, and the alerts fire that should: in a real
// Prometheus, which scrapes a real redis_exporter. Both are started by the lines of docs/monitoring.md under "Set it up". The
// picture shows that run.
func TestStack_everyPanelShowsTheTraffic(t *testing.T) {
	s := startStack(t)
	from := time.Now()
	s.traffic()
	wanted, d := s.wanted(), readDashboard(t)
	for _, p := range d.Panels {
		w, known := wanted[p.Title]
		if !known {
			t.Errorf("nobody knows what %s must show", p.Title)
		}
		delete(wanted, p.Title)
		until(t, func() error { return s.compare(p, w, s.scrapes()) })
	}
	if len(wanted) > 0 {
		t.Errorf("no panel shows %v", wanted)
	}
	until(t, s.alerts)
	s.metricsOfThePage()
	s.denialsOfTheUser()
	s.draw(d, from)
}

// alerts tells whether the alerts that fire are those that should. GothrottleErrors fires, too: many calls are errors.
// GothrottleSlow may fire on a slow machine.
func (s *stack) alerts() error {
	firing, err := s.firing()
	firing = slices.DeleteFunc(firing, func(name string) bool { return strings.HasPrefix(name, "GothrottleSlow ") })
	wanted := append(s.alertsFired(), "GothrottleErrors "+s.instance)
	slices.Sort(wanted)
	if err == nil && !slices.Equal(firing, wanted) {
		err = fmt.Errorf("the alerts %q fire, want %q", firing, wanted)
	}
	return err
}

// metricsOfThePage compares the page's table of metrics with those that Prometheus has.
func (s *stack) metricsOfThePage() {
	s.t.Helper()
	result, err := s.query(`count by (__name__) ({__name__=~"gothrottle_.+"})`)
	var got, page []string
	for _, one := range result {
		got = append(got, one.Metric["__name__"])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(gothrottle_\\w+)` \\|").FindAllStringSubmatch(read(s.t, "../../docs/monitoring.md"), -1) {
		page = append(page, m[1])
	}
	slices.Sort(got)
	slices.Sort(page)
	if err != nil || !slices.Equal(got, page) {
		s.t.Errorf("Prometheus has the metrics %q, the page names %q, %v", got, page, err)
	}
}

// denialsOfTheUser checks that the page's user may do all that the exporter does, but for what the page says.
func (s *stack) denialsOfTheUser() {
	s.t.Helper()
	for _, entry := range s.redis.Do(ctx, "ACL", "LOG").Val().([]any) {
		if text := fmt.Sprint(entry); !strings.Contains(text, "object config|get ") {
			s.t.Errorf("the exporter's user was denied %s", text)
		}
	}
}

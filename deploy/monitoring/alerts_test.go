package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promtool accepts the configuration and the rules, and each alert fires when it should and not before.
func TestAlerts_promtool(t *testing.T) {
	moduleFile(t)
	for _, args := range []string{"check config prometheus.yml", "check rules alerts.yml", "test rules alerts_test.yml"} {
		if out, err := exec.Command("promtool", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}

// Each alert has a summary, a description, a severity and a unit test, and its name and severity stand in the page's
// table. runbook_url is the alert's heading in docs/operating.md.
func TestAlerts_areDescribed(t *testing.T) {
	var alerts, page []string
	tests := read(t, "alerts_test.yml")
	for _, rule := range strings.Split(read(t, "alerts.yml"), "\n      - alert: ")[1:] {
		name, _, _ := strings.Cut(rule, "\n")
		for _, want := range []string{"\n          summary: ", "\n          description: ", "\n          runbook_url: docs/operating.md#" + strings.ToLower(name) + "\n"} {
			if !strings.Contains(rule+"\n", want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
		if n := strings.Count(tests, `alertname="`+name+`"`); n < 3 {
			t.Errorf("%s is in %d places of alerts_test.yml", name, n)
		}
		alerts = append(alerts, name+" "+regexp.MustCompile(`severity: (\w+)`).FindString(rule)[len("severity: "):])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Gothrottle\\w+)` \\|.*\\| (\\w+) \\|$").FindAllStringSubmatch(read(t, "../../docs/monitoring.md"), -1) {
		page = append(page, m[1]+" "+m[2])
	}
	if len(alerts) < 8 || !slices.Equal(alerts, page) {
		t.Errorf("the alerts are %q, the page has %q", alerts, page)
	}
	operating, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, " ")
		if !regexp.MustCompile(`(?m)^#+ ` + name + `$`).Match(operating) {
			t.Errorf("docs/operating.md has no heading %s", name)
		}
	}
}

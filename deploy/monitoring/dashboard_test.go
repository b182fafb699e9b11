package monitoring

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// dashboard has every field of dashboard.json. A field that is not here is an error, as a field of the wrong type is. The
// names are those of Grafana's schema of a dashboard.
type dashboard struct {
	Title         string   `json:"title"`
	UID           string   `json:"uid"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	GraphTooltip  int      `json:"graphTooltip"`
	Refresh       string   `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Timezone    string                        `json:"timezone"`
	Annotations struct{ List []struct{} }     `json:"annotations"`
	Links       []struct{}                    `json:"links"`
	Templating  struct{ List []dashboardVar } `json:"templating"`
	Panels      []panel                       `json:"panels"`
}

type dashboardVar struct {
	Name       string          `json:"name"`
	Label      string          `json:"label"`
	Type       string          `json:"type"`
	Datasource *datasource     `json:"datasource"`
	Query      json.RawMessage `json:"query"`
	Refresh    int             `json:"refresh"`
	Sort       int             `json:"sort"`
	Hide       int             `json:"hide"`
	Multi      bool            `json:"multi"`
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Current    json.RawMessage `json:"current"`
}

type datasource struct{ Type, UID string }

type panel struct {
	ID              int                      `json:"id"`
	Type            string                   `json:"type"`
	Title           string                   `json:"title"`
	Description     string                   `json:"description"`
	Datasource      datasource               `json:"datasource"`
	GridPos         struct{ H, W, X, Y int } `json:"gridPos"`
	Targets         []target                 `json:"targets"`
	FieldConfig     fieldConfig              `json:"fieldConfig"`
	Options         json.RawMessage          `json:"options"`
	Transformations []json.RawMessage        `json:"transformations"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Range        *bool      `json:"range"`
}

type fieldConfig struct {
	Defaults struct {
		Unit       string          `json:"unit"`
		Min        *float64        `json:"min"`
		Max        *float64        `json:"max"`
		Decimals   *int            `json:"decimals"`
		Color      json.RawMessage `json:"color"`
		Thresholds json.RawMessage `json:"thresholds"`
		Mappings   json.RawMessage `json:"mappings"`
		Custom     json.RawMessage `json:"custom"`
	} `json:"defaults"`
	Overrides []struct{} `json:"overrides"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(read(t, "dashboard.json"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// substitute puts values in the place of the dashboard's variables.
func substitute(expr, instance, interval string) string {
	return strings.NewReplacer("$job", "gothrottle", "$instance", strings.ReplaceAll(instance, ".", "[.]"),
		"$__rate_interval", interval).Replace(expr)
}

// Each panel says what it shows, in which unit, and asks for what the variables choose. Titles and ids tell panels apart.
// Panels do not overlap and fit into Grafana's 24 columns.
func TestDashboard_panels(t *testing.T) {
	d := readDashboard(t)
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.ID < 1 || p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d, %q: something is missing or not unique", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("%s does not fit: %v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s is on top of %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.RefID == "" || q.Datasource != p.Datasource || p.Datasource != (datasource{"prometheus", "${datasource}"}) {
				t.Errorf("%s: target %q: %v", p.Title, q.RefID, q.Datasource)
			}
			refs[q.RefID] = true
			if !strings.Contains(q.Expr, `job=~"$job",instance=~"$instance"`) || p.Type != "table" && q.LegendFormat == "" {
				t.Errorf("%s: the target %q has no variables or no legend", p.Title, q.Expr)
			}
			if left := regexp.MustCompile(`\$\w+`).FindString(substitute(q.Expr, "i", "5m")); left != "" {
				t.Errorf("%s: nothing is known of %s", p.Title, left)
			}
		}
	}
	if d.UID != "gothrottle" || d.SchemaVersion < 36 || len(d.Panels) < 15 {
		t.Errorf("uid %q, schema %d, %d panels", d.UID, d.SchemaVersion, len(d.Panels))
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name+":"+v.Type)
		if v.Type == "query" && (v.Datasource == nil || *v.Datasource != (datasource{"prometheus", "${datasource}"})) {
			t.Errorf("the variable %s has the data source %v", v.Name, v.Datasource)
		}
	}
	if got := strings.Join(names, " "); got != "datasource:datasource job:query instance:query" {
		t.Errorf("variables %s", got)
	}
}

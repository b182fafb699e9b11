package monitoring

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the dashboards")

type object = map[string]any

// table is panels.json, of which both dashboards are made: what they share, what all graphs share, and the rest.
type table struct {
	Frame, Graph json.RawMessage
	Dashboards   []struct {
		File, Metric string // the variables job and instance are labels of Metric
		Frame        object
		Rows         []struct { // the first one has no title; the others are folded
			Title  string
			Panels []tablePanel
		}
	}
}

// A tablePanel is a graph, unless More has a type. There are three to a line.
type tablePanel struct {
	Title, Unit, Description string
	Shows                    [][2]string // legends and expressions; $here is what the variables choose
	More                     object      // what else Grafana reads
	Wants                    map[string]float64
}

func readTable(t *testing.T) (all table) {
	require.NoError(t, json.Unmarshal([]byte(read(t, "panels.json")), &all))
	return all
}

// merge puts more into o, objects within objects.
func merge(o, more object) {
	for name, value := range more {
		old, _ := o[name].(object)
		if inner, ok := value.(object); ok && old != nil {
			merge(old, inner)
		} else {
			o[name] = value
		}
	}
}

// made is the n-th panel of a row whose panels begin at the line y. It says what it shows and in which unit, and asks for what
// the variables choose.
func (p *tablePanel) made(t *testing.T, graph []byte, id, n, y int) object {
	made, targets := object{}, []object{}
	require.NoError(t, json.Unmarshal(graph, &made))
	if p.More["type"] != nil {
		made = object{"datasource": made["datasource"], "gridPos": made["gridPos"]}
	}
	for i, show := range p.Shows {
		target := object{"refId": string(rune('A' + i)), "datasource": made["datasource"], "legendFormat": show[0],
			"expr": strings.ReplaceAll(show[1], "$here", `job=~"$job",instance=~"$instance"`)}
		if p.More["type"] == "table" {
			merge(target, object{"instant": true, "range": false, "format": "table"})
		}
		assert.Equal(t, p.More["type"] != "table", show[0] != "", "%s: a legend", p.Title)
		assert.Contains(t, show[1], "{$here", p.Title)
		targets = append(targets, target)
	}
	assert.True(t, p.Title != "" && p.Description != "" && p.Unit != "" && p.Shows != nil, p.Title)
	merge(made, object{"id": id, "title": p.Title, "description": p.Description, "targets": targets,
		"gridPos": object{"x": n % 3 * 8, "y": y + n/3*8}, "fieldConfig": object{"overrides": []any{}, "defaults": object{"unit": p.Unit}}})
	merge(made, p.More)
	return made
}

// The dashboards are what panels.json says: go test ./monitoring -run Dashboards -rewrite.
func TestDashboards(t *testing.T) {
	all := readTable(t)
	for _, d := range all.Dashboards {
		made, panels, id, y := object{}, []object{}, 0, 0
		require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(all.Frame), "$metric", d.Metric)), &made))
		for i, row := range d.Rows {
			inner := []object{}
			for n, p := range row.Panels {
				id++
				inner = append(inner, p.made(t, all.Graph, id, n, y+min(i, 1)))
			}
			if i == 0 {
				panels, y = inner, (len(inner)+2)/3*8
				continue
			}
			panels = append(panels, object{"id": 100 + i, "type": "row", "title": row.Title, "collapsed": true, "panels": inner,
				"gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
			y++
		}
		merge(made, d.Frame)
		lines := []string{}
		for _, panel := range append(panels, made) {
			line, err := json.Marshal(panel)
			require.NoError(t, err)
			lines = append(lines, string(line))
		}
		frame, ours := strings.TrimSuffix(lines[len(panels)], "}"), strings.Join(lines[:len(panels)], ",\n")
		text := frame + ",\"panels\":[\n" + ours + "\n]}\n" // a panel or a folded row on each line
		if *rewrite {
			require.NoError(t, os.WriteFile(d.File, []byte(text), 0o644))
		}
		assert.Equal(t, text, read(t, d.File), "-rewrite writes it")
	}
}

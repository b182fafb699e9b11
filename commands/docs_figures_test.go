package commands

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The README's figures are those of docs/benchmarks.md, of the server that stands first there.
func TestReadme_figures(t *testing.T) {
	rowOf := map[string]string{
		"`GO.THROTTLE`, admitted":        "GO.THROTTLE",
		"`GO.THROTTLE`, denied, one key": "GO.THROTTLE denied",
		"`GO.WINDOW`, limit 100":         "GO.WINDOW 100",
		"`GO.QUOTA`":                     "GO.QUOTA",
		"GCRA in Lua":                    "GCRA in Lua",
		"redis-cell 0.5.0, admitted":     "CL.THROTTLE of redis-cell",
		"sliding window in Lua":          "zset window in Lua",
		"INCR + EXPIRE in Lua":           "INCR + EXPIRE in Lua",
	}
	cpu := readPage(t, "../docs/benchmarks.md").section(t, "CPU")
	measured := map[string]string{}
	for _, row := range cpu.tables("") {
		measured[row[0]] = row[1]
	}
	_, server, _ := strings.Cut(string(cpu), "\n|  | ")
	server, _, _ = strings.Cut(server, " |")
	costs := readPage(t, "../README.md").section(t, "What it costs")
	if version := strings.Fields(server); len(version) != 2 ||
		!strings.Contains(string(costs), version[0]+" "+version[1][:strings.LastIndex(version[1], ".")]+" on a small virtual machine") {
		t.Errorf("the README does not name the server %q", server)
	}
	rows := costs.tables("gothrottle")
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		for i := 0; i < len(row); i += 2 {
			n, err := strconv.ParseFloat(measured[rowOf[row[i]]], 64)
			if err != nil {
				t.Errorf("%s: not measured: %v", row[i], err)
				continue
			}
			if want := fmt.Sprintf("%.1f", n); row[i+1] != want {
				t.Errorf("%s: %s, the bench says %s", row[i], row[i+1], want)
			}
		}
	}
}

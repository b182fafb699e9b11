package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// head begins a picture that follows the reader's light or dark scheme. Its colours differ for people who are colour-blind, too.
const head = `<svg xmlns="http://www.w3.org/2000/svg" width="1040" height="%[1]d" viewBox="0 0 1040 %[1]d">
<style>text{font:13px 'Liberation Sans',Arial,Helvetica,sans-serif;fill:#24292f}.title{font-size:16px;font-weight:bold}
.back{fill:#fff}.ours{fill:#0072b2}.others{fill:#d55e00}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.ours{fill:#4aa3df}.others{fill:#f0883e}}</style>
<rect class="back" width="100%%" height="100%%"/>
<text class="title" x="16" y="28">%s</text>
`

// chart draws what a few calls cost on the first server: a bar for each, and the number.
func chart(f *figures, docs string) error {
	rows := []string{"GO.THROTTLE", "GO.THROTTLE denied", "GO.WINDOW 100", "GO.QUOTA",
		"GCRA in Lua", "zset window in Lua", "zset window by MULTI", "CL.THROTTLE of redis-cell"}
	longest := 0.0
	cost := func(row string) float64 { return f.of(f.servers[0], line{"CPU", row, "cpu-ns/op"}).median / 1000 }
	for _, row := range rows {
		longest = max(longest, cost(row)) // NaN if one wasn't measured: no chart
	}
	if !(longest > 0) {
		return nil
	}
	svg := fmt.Sprintf(head, 26*len(rows)+60, "Server CPU per call, µs, "+f.servers[0])
	for i, row := range rows {
		kind, y, width := "others", 26*i+48, cost(row)/longest*720
		if strings.HasPrefix(row, "GO.") {
			kind = "ours"
		}
		svg += fmt.Sprintf("<text x=\"16\" y=\"%d\">%s</text><rect class=\"%s\" x=\"230\" y=\"%d\" width=\"%.1f\" height=\"16\"/>"+
			"<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", y+13, row, kind, y, width, 237+width, y+13, cost(row))
	}
	return os.WriteFile(filepath.Join(docs, "bench-cpu.svg"), []byte(svg+"</svg>\n"), 0o644)
}

package monitoring

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

var pictureFile = flag.String("picture", "", "also write the picture of docs/monitoring.md to this file")

// All in pixels: one of Grafana's columns and rows, and the size of text.
const (
	column, row = 48, 27
	small       = 10
)

// One colour for each command, which reads on both backgrounds.
var colours = strings.Fields("#3274d9 #e02f44 #37872d #e0a30c #a352cc #ff780a #0aa5a5 #b877d9 #8f3bb8 #56a64b #c4162a #6794e0 #8a6d3b #cc6699 #7d8590 #2f9ec4")

const style = `<style>text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;fill:#24292f}.pale{fill:#656d76}.grid{stroke:#d8dee4}.back{fill:#f4f5f5}.card{fill:#fff;stroke:#d8dee4}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.pale{fill:#9198a1}.grid{stroke:#343b44}.back{fill:#0d1117}.card{fill:#161b22;stroke:#343b44}}</style>
`

// picture draws a dashboard as SVG.
type picture struct {
	s    *stack
	out  strings.Builder
	from time.Time
	to   time.Time
}

// draw draws the dashboard of the run until now.
func (s *stack) draw(d dashboard, from time.Time) {
	s.t.Helper()
	p, bottom := &picture{s: s, from: from, to: time.Now()}, 0
	for _, one := range d.Panels {
		bottom = max(bottom, one.GridPos.Y+one.GridPos.H)
	}
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">`+"\n"+style+`<rect class="back" width="100%%" height="100%%"/>`+"\n", 24*column+4, bottom*row+4)
	for _, one := range d.Panels {
		p.panel(one)
	}
	p.out.WriteString("</svg>\n")
	decoder := xml.NewDecoder(strings.NewReader(p.out.String()))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			s.t.Fatalf("the picture is no XML: %v", err)
		}
	}
	for _, one := range d.Panels {
		if !strings.Contains(p.out.String(), ">"+one.Title+"<") {
			s.t.Errorf("the picture has no panel %s", one.Title)
		}
	}
	if *pictureFile != "" {
		if err := os.WriteFile(*pictureFile, []byte(p.out.String()), 0o644); err != nil {
			s.t.Error(err)
		}
	}
}

func (p *picture) text(x, y float64, size int, class, anchor, text string) {
	fmt.Fprintf(&p.out, `<text x="%.1f" y="%.1f" font-size="%d" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, class, anchor, html.EscapeString(text))
}

func (p *picture) panel(one panel) {
	g := one.GridPos
	x, y, w, h := float64(g.X*column+4), float64(g.Y*row+4), float64(g.W*column-4), float64(g.H*row-4)
	fmt.Fprintf(&p.out, `<rect class="card" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="2"/>`+"\n", x, y, w, h)
	p.text(x+8, y+16, 12, "ink", "start", one.Title)
	switch one.Type {
	case "stat":
		result, err := p.s.query(substitute(one.Targets[0].Expr, p.s.instance, window))
		if err != nil || len(result) != 1 {
			p.s.t.Fatalf("%s: %v, %v", one.Title, result, err)
		}
		p.text(x+w/2, y+h/2+16, 24, "ink", "middle", one.shown(result[0].Value.value))
	case "timeseries":
		p.lines(one, x+8, y+26, w-16, h-32)
	case "table":
		p.table(one, x+8, y+34, w-16)
	}
}

// shown is a value as text, in the panel's unit.
func (p panel) shown(value float64) string {
	var mappings []struct {
		Options map[string]struct{ Text string }
	}
	if json.Unmarshal(p.FieldConfig.Defaults.Mappings, &mappings) == nil && len(mappings) > 0 {
		return mappings[0].Options[strconv.FormatFloat(value, 'g', -1, 64)].Text
	}
	short := func(v float64) string {
		if v > 0 && v < 0.01 {
			return "<0.01"
		}
		if v == 0 {
			return "0"
		}
		return strconv.FormatFloat(v, 'f', max(0, 1-int(math.Floor(math.Log10(v)))), 64)
	}
	switch unit := p.FieldConfig.Defaults.Unit; unit {
	case "percentunit":
		return short(value*100) + " %"
	case "s":
		return short(value*1e6) + " µs"
	case "none":
		return short(value)
	default:
		return short(value) + " " + map[string]string{"reqps": "/s", "ops": "/s", "µs": "µs"}[unit]
	}
}

// lines draws the results of a panel's query over time, and below them the legend with the last values.
func (p *picture) lines(one panel, x, y, w, h float64) {
	q := one.Targets[0]
	var data struct{ Result []sample }
	stamp := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	err := p.s.ask("query_range", url.Values{"query": {substitute(q.Expr, p.s.instance, "2s")}, "start": {stamp(p.from)}, "end": {stamp(p.to)}, "step": {"0.2"}}, &data)
	if err != nil || len(data.Result) == 0 {
		p.s.t.Fatalf("%s: %v, %v", one.Title, data, err)
	}
	most := 0.0
	for _, line := range data.Result {
		for _, v := range line.Values {
			if !math.IsNaN(v.value) {
				most = max(most, v.value)
			}
		}
	}
	rows := (len(data.Result) + 2) / 3
	plot := h - float64(rows*(small+2)) - 18
	for i, share := range []float64{0, 0.5, 1} {
		at := y + plot*(1-share)
		fmt.Fprintf(&p.out, `<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", x+46, at, x+w)
		if i == 0 || most > 0 {
			p.text(x+42, at+3, small, "pale", "end", one.shown(most*share))
		}
	}
	begin, span := float64(p.from.UnixMilli())/1000, p.to.Sub(p.from).Seconds()
	for second := 0.0; second <= span; second += 5 {
		p.text(x+46+(w-46)*second/span, y+plot+12, small, "pale", "middle", strconv.Itoa(int(second))+" s")
	}
	for i, line := range data.Result {
		colour, path, last := colours[i%len(colours)], "", 0.0
		for _, v := range line.Values {
			if !math.IsNaN(v.value) {
				last = v.value
				path += fmt.Sprintf("%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[path == ""], x+46+(w-46)*(v.time-begin)/span, y+plot*(1-v.value/max(most, 1e-12)))
			}
		}
		fmt.Fprintf(&p.out, `<path fill="none" stroke="%s" stroke-width="1.3" d="%s"/>`+"\n", colour, path)
		lx, ly := x+float64(i%3)*w/3, y+plot+26+float64(i/3*(small+2))
		fmt.Fprintf(&p.out, `<rect x="%.1f" y="%.1f" width="8" height="3" fill="%s"/>`+"\n", lx, ly-4, colour)
		name := strings.ReplaceAll(legend(one, q, line.Metric), p.s.instance, "127.0.0.1:9121")
		p.text(lx+12, ly, small, "ink", "start", name+"  "+one.shown(last))
	}
}

// table draws the results of a panel's queries: a line for each first word of the legend, a column for each second.
func (p *picture) table(one panel, x, y, w float64) {
	cells, columns := map[string]map[string]float64{}, map[string]bool{}
	names := map[string]string{"A": "denied", "B": "error"}
	for _, q := range one.Targets {
		result, err := p.s.query(substitute(q.Expr, p.s.instance, window))
		if err != nil || len(result) == 0 {
			p.s.t.Fatalf("%s: %v, %v", one.Title, result, err)
		}
		for _, r := range result {
			name, heading, _ := strings.Cut(legend(one, q, r.Metric), " ")
			if renamed := names[heading]; renamed != "" {
				heading = renamed
			}
			if cells[name] == nil {
				cells[name] = map[string]float64{}
			}
			cells[name][heading], columns[heading] = r.Value.value, true
		}
	}
	headings := slices.Sorted(maps.Keys(columns))
	lines := slices.SortedFunc(maps.Keys(cells), func(a, b string) int {
		if d := cells[b][headings[0]] - cells[a][headings[0]]; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
	at := func(i int) float64 { return x + w*0.3 + w*0.7*float64(i+1)/float64(len(headings)) }
	for i, heading := range headings {
		p.text(at(i), y, small+1, "pale", "end", heading)
	}
	for n, name := range lines {
		p.text(x, y+float64((n+1)*14), small+1, "ink", "start", name)
		for i, heading := range headings {
			p.text(at(i), y+float64((n+1)*14), small+1, "ink", "end", strconv.FormatFloat(cells[name][heading], 'f', 0, 64))
		}
	}
}

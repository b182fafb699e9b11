package main

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

//go:embed report.md
var reportText string

// report shows the tables in the terminal and writes benchmarks.md and the plots.
func (b *bench) report(r *results) error {
	ratios, absolutes := r.ratioTable(), r.absoluteTable()
	fmt.Printf("\n%s\n%s", plain(ratios), plain(absolutes))
	note := b.quietness(r)
	if b.disturbed > 0 {
		note += fmt.Sprintf(" %d slices of windows were repeated, because the load generator was held up.", b.disturbed)
	}
	if note != "" {
		fmt.Println("\n" + note)
	}

	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	text := strings.NewReplacer(
		"{date}", r.machine.date.UTC().Format("2006-01-02"),
		"{machine}", strings.ToUpper(r.machine.line()[:1])+r.machine.line()[1:],
		"{load}", r.machine.load,
		"{command}", b.command,
		"{minutes}", fmt.Sprintf("%.0f", math.Ceil(r.took.Minutes())),
		"{rounds}", fmt.Sprint(b.options.rounds),
		"{keys}", fmt.Sprint(b.keys),
		"{windows}", fmt.Sprint(b.windowKeys),
		"{period}", fmt.Sprint(b.period.Milliseconds()),
		"{calls}", fmt.Sprint(int(float64(b.windowKeys*95)/b.period.Seconds())),
		"{fewercalls}", fmt.Sprint(int(float64(b.windowKeys*95/latencyPart)/b.period.Seconds())),
		"{memorykeys}", fmt.Sprint(b.memoryKeys),
		"{note}", note,
		"{peer}", b.peerNote(),
		"{ratios}", markdown(ratios),
		"{absolutes}", markdown(absolutes),
	).Replace(reportText)
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	file := filepath.Join(b.out, "benchmarks.md")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := r.plots(b.out); err != nil {
		return err
	}
	fmt.Printf("\n%.0f s; written: %s and the plots beside it\n", r.took.Seconds(), file)
	return nil
}

// quietness warns if the machine had other things to do.
func (b *bench) quietness(r *results) string {
	s := r.spread("SET PX", cpuOf)
	if s.max/s.min < 1.15 {
		return ""
	}
	return fmt.Sprintf("The machine was not quiet: SET took %.2f to %.2f µs. Ratios suffer less than absolutes.", s.min, s.max)
}

func (b *bench) peerNote() string {
	if b.peer == "" {
		return ""
	}
	return fmt.Sprintf("The other module is `%s`, called with `%s` and `%s`.", filepath.Base(b.peer), b.peerCmd, b.peerDenied)
}

// A table has a line of headings first.
type table [][]string

func (r *results) ratioTable() table {
	t := table{{"", "target", "median", "min..max", "met"}}
	for _, w := range r.rows() {
		median, ends := "-", "-"
		format := "%.2f"
		if w.unit != "" {
			format = "%.1f"
		}
		number := func(v float64) string { return fmt.Sprintf(format, v) + w.unit }
		if !math.IsNaN(w.is.median) {
			median = number(w.is.median)
			if w.unit == "" {
				ends = number(w.is.min) + ".." + number(w.is.max)
			}
		}
		t = append(t, []string{w.what, "<= " + number(w.target), median, ends, w.met()})
	}
	return t
}

func (r *results) absoluteTable() table {
	t := table{{"", "CPU µs per op", "min..max", "ops/s", "min..max", "p50 µs", "min..max", "p99 µs", "min..max",
		"p99.9 µs", "min..max", "bytes per key", "AOF bytes per op"}}
	for _, c := range r.list {
		line := []string{c.name}
		for _, column := range []struct {
			of     func(figure) float64
			format string
		}{{cpuOf, "%.2f"}, {rateOf, "%.0f"}, {p50Of, "%.0f"}, {p99Of, "%.0f"}, {p999Of, "%.0f"}} {
			s := r.spread(c.name, column.of)
			if s.median == 0 {
				line = append(line, "-", "-")
				continue
			}
			line = append(line, fmt.Sprintf(column.format, s.median),
				fmt.Sprintf(column.format+".."+column.format, s.min, s.max))
		}
		for _, values := range []map[string]float64{r.memory, r.aof} {
			if v, ok := values[c.name]; ok {
				line = append(line, fmt.Sprintf("%.0f", v))
			} else {
				line = append(line, "-")
			}
		}
		t = append(t, line)
	}
	return t
}

// plain lays a table out for a terminal.
func plain(t table) string {
	widths := make([]int, len(t[0]))
	for _, line := range t {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range t {
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + space)
			} else {
				b.WriteString("  " + space + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// markdown lays a table out for a file. Numbers are to the right.
func markdown(t table) string {
	var b strings.Builder
	for i, line := range t {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(line)-1) + "\n")
		}
	}
	return b.String()
}

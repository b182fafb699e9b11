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

// report prints the tables and writes benchmarks.md and the plots.
func (b *bench) report(r *results) error {
	names := r.names()
	ratios, cpu, worst := r.ratioTable(), r.cpuTable(), r.worstTable()
	fmt.Printf("\n%s\n%s\n%s", plain(ratios), plain(cpu), plain(worst))
	details := ""
	for _, on := range r.on {
		t := on.detailTable(r.list)
		fmt.Printf("\n%s\n%s", on.name, plain(t))
		details += fmt.Sprintf("### %s\n\n%s\n", on.name, markdown(t))
	}
	note := b.notes(r)
	if note != "" {
		fmt.Println("\n" + note)
	}

	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	text := strings.NewReplacer(
		"{date}", r.machine.date.UTC().Format("2006-01-02"),
		"{machine}", strings.ToUpper(r.machine.line()[:1])+r.machine.line()[1:],
		"{servers}", r.serverNames(),
		"{first}", names[0],
		"{load}", r.machine.load,
		"{command}", b.command,
		"{minutes}", fmt.Sprintf("%.0f", math.Ceil(r.took.Minutes())),
		"{rounds}", fmt.Sprint(b.rounds),
		"{keys}", thousands(b.keys),
		"{windows}", fmt.Sprint(b.windowKeys),
		"{period}", fmt.Sprint(b.period.Milliseconds()),
		"{calls}", thousands(int64(float64(b.windowKeys*95)/b.period.Seconds())),
		"{fewercalls}", thousands(int64(float64(b.windowKeys*95/latencyPart)/b.period.Seconds())),
		"{memorykeys}", thousands(b.memoryKeys),
		"{note}", note,
		"{peer}", b.peerNote(),
		"{ratios}", markdown(ratios),
		"{cpu}", markdown(cpu),
		"{worst}", markdown(worst),
		"{details}", details,
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

// thousands writes n with a comma between groups of three digits.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// notes says whether something disturbed the run.
func (b *bench) notes(r *results) string {
	var notes []string
	for _, on := range r.on {
		if s := on.spread("SET PX", cpuOf); s.max/s.min >= 1.15 {
			notes = append(notes, fmt.Sprintf("The machine was not quiet: on %s, SET took %.2f to %.2f µs.", on.name, s.min, s.max))
		}
	}
	if len(notes) > 0 {
		notes = append(notes, "Ratios suffer less than absolute figures.")
	}
	if b.disturbed > 0 {
		notes = append(notes, fmt.Sprintf("%d slices were repeated, because the load generator was late.", b.disturbed))
	}
	return strings.Join(notes, "\n")
}

func (b *bench) peerNote() string {
	if b.peer == "" {
		return ""
	}
	return fmt.Sprintf("The other module is `%s`, called with `%s` and `%s`.", filepath.Base(b.peer), b.peerCmd, b.peerDenied)
}

// A table has a line of headings first.
type table [][]string

// newTable returns a table with the given headings around those of each server: its name
// and the spread of its rounds.
func (r *results) newTable(before, after []string) table {
	headings := before
	for _, name := range r.names() {
		headings = append(headings, name, "min..max")
	}
	return table{append(headings, after...)}
}

// cells writes a median and a spread. A figure that was not measured becomes "-".
func cells(s spread, format string) []string {
	if math.IsNaN(s.median) {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf(format, s.median), fmt.Sprintf(format+".."+format, s.min, s.max)}
}

func (r *results) ratioTable() table {
	t := r.newTable([]string{"", "target"}, []string{"met"})
	for _, w := range r.rows() {
		format := "%.2f"
		if w.unit != "" {
			format = "%.0f" + w.unit
		}
		target := ""
		if !math.IsNaN(w.target) {
			target = strings.TrimSpace("<= " + fmt.Sprintf(format, w.target))
		}
		line := []string{w.what, target}
		for _, s := range w.is {
			pair := cells(s, format)
			if w.unit != "" {
				pair[1] = "-" // measured once
			}
			line = append(line, strings.TrimSpace(pair[0]), pair[1])
		}
		t = append(t, append(line, w.met(r.names())))
	}
	return t
}

func (r *results) cpuTable() table {
	t := r.newTable([]string{""}, nil)
	for _, c := range r.list {
		line := []string{c.name}
		for _, on := range r.on {
			line = append(line, cells(on.spread(c.name, cpuOf), "%.2f")...)
		}
		t = append(t, line)
	}
	return t
}

func (r *results) worstTable() table {
	t := r.newTable([]string{""}, nil)
	for _, w := range r.worst {
		line := []string{w.name}
		for _, on := range r.on {
			line = append(line, cells(spreadOf(on.worst[w.name]), "%.1f")...)
		}
		t = append(t, line)
	}
	return t
}

// detailTable has the medians of what the other tables leave out.
func (on *figures) detailTable(list []*contender) table {
	t := table{{"", "ops/s", "p50 µs", "p99 µs", "p99.9 µs", "bytes per key", "AOF bytes per op"}}
	for _, c := range list {
		line := []string{c.name}
		for _, of := range []func(figure) float64{rateOf, p50Of, p99Of, p999Of} {
			cell := "-"
			if v := on.spread(c.name, of).median; v > 0 {
				cell = fmt.Sprintf("%.0f", v)
			}
			line = append(line, cell)
		}
		for _, values := range []map[string]float64{on.memory, on.aof} {
			cell := "-"
			if v, ok := values[c.name]; ok {
				cell = fmt.Sprintf("%.0f", v)
			}
			line = append(line, cell)
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

// markdown lays a table out for a file, with numbers aligned to the right.
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

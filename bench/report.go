// Program bench sums up the samples of some runs, and writes the figures of docs/benchmarks.md and docs/go.md, and the
// chart. build/bench.sh measures the samples, by the benchmarks beside this file.
//
//	bench folder-of-samples folder-of-figures folder-of-docs run ...
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A page has the figures of some files.
type page struct {
	name   string
	files  []string
	blocks func(*figures) map[string]string
}

var pages = []page{{"benchmarks.md", []string{"instructions.txt", "costs.txt"}, costs}, {"benchmarks.md", []string{"latency.txt"}, latency},
	{"benchmarks.md", []string{"holds.txt"}, holds}, {"benchmarks.md", []string{"node.txt"}, others("Node")},
	{"benchmarks.md", []string{"python.txt"}, others("Python")}, {"go.md", []string{"client.txt"}, clients}}

func main() {
	if err := report(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report sums up the runs, and then writes the pages from all files of figures that there are.
func report(samples, results, docs string, runs []string) error {
	for _, run := range runs {
		f, err := summarise(filepath.Join(samples, run+".txt"))
		if err == nil && run == "quick" {
			fmt.Print(few(f))
			return nil
		}
		if err = errors.Join(err, f.write(filepath.Join(results, run+".txt"))); err != nil {
			return err
		}
	}
	for _, p := range pages {
		text, f, err := p.fill(results, docs)
		if err == nil && f != nil {
			err = errors.Join(os.WriteFile(filepath.Join(docs, p.name), []byte(text), 0o644), chart(f, docs))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill returns the page with the figures that there are in a folder, and these figures: nil if there are none.
func (p page) fill(folder, docs string) (string, *figures, error) {
	var files []string
	for _, name := range p.files {
		file := filepath.Join(folder, name)
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	if files == nil {
		return "", nil, nil
	}
	f, err := readFigures(files...)
	text, unread := os.ReadFile(filepath.Join(docs, p.name))
	if err = errors.Join(err, unread); err != nil {
		return "", nil, err
	}
	filled, err := insert(string(text), p.blocks(f))
	return filled, f, err
}

// insert puts each block between the two comments of its name. A place without a block keeps its text.
func insert(page string, blocks map[string]string) (string, error) {
	for name, block := range blocks {
		begin, end := "<!-- figures: "+name+" -->\n", "<!-- end of figures -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			return "", fmt.Errorf("the page has no place for the block %q, or no end of it", name)
		}
		page = before + begin + block + end + after
	}
	return page, nil
}

func origin(f *figures) string {
	return fmt.Sprintf("Written by `%s` on %s.\n%s. Load average of the minute before: %s.\nServers: %s.\n",
		f.about["command"], f.about["date"], f.about["machine"], f.about["load"], strings.Join(f.servers, ", "))
}

// brief is an origin without what hardly differs between runs.
func brief(f *figures) string {
	machine, _, _ := strings.Cut(f.about["machine"], ", ")
	return fmt.Sprintf("\nWritten by `%s` on %s: %s, load average %s, %s.\n", f.about["command"], f.about["date"], machine, f.about["load"], strings.Join(f.servers, ", "))
}

// A column is a figure of each row. $ in its heading is the server.
type column struct {
	heading, kind, unit, format string
	per                         float64
	spread                      bool // has one beside the median
	first                       bool // is of the first server alone
}

// table returns a table in Markdown. All columns but the first hold numbers.
func table(f *figures, first string, servers, rows []string, columns ...column) string {
	lines := []string{"| " + first + " |", "|---|"}
	for _, row := range rows {
		lines = append(lines, "| "+row+" |")
	}
	for _, c := range columns {
		for i, server := range servers {
			if c.first && i > 0 {
				break
			}
			lines[0] += " " + strings.ReplaceAll(c.heading, "$", server) + " |"
			lines[1] += "---:|"
			if c.spread {
				lines[0] += " spread |"
				lines[1] += "---:|"
			}
			for i, row := range rows {
				s := f.of(server, line{c.kind, row, c.unit}).in(c.per)
				median, interval := s.cells(c.format)
				if _, target, found := strings.Cut(row, " <= "); found && s.misses(target) {
					median += " ✗"
				}
				lines[i+2] += " " + median + " |"
				if c.spread {
					lines[i+2] += " " + interval + " |"
				}
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// costs returns the figures of docs/benchmarks.md. Figures that were not measured stay in the page.
func costs(f *figures) map[string]string {
	blocks := map[string]string{}
	if rows := f.rows("CPU"); rows != nil {
		blocks["run"] = origin(f)
		blocks["ratios"] = table(f, "", f.servers, f.rows("Ratio"), column{"$", "Ratio", "ratio", "%#.3g", 1, false, false})
		blocks["cpu"] = table(f, "", f.servers[:1], rows, column{heading: "$", kind: "CPU", unit: "cpu-ns/op", format: "%.2f", per: 1000},
			column{"instructions", "Cachegrind", "instructions/op", "%.0f", 1, false, true},
			column{"bytes per key", "Memory", "B/key", "%.0f", 1, false, true}, column{"AOF bytes", "File", "file-B/op", "%.0f", 1, false, true})
		for _, server := range f.servers {
			if set := f.of(server, line{"CPU", "SET PX", "cpu-ns/op"}).in(1000); set.hi > 1.15*set.lo {
				blocks["run"] += fmt.Sprintf("The machine was not quiet: on %s, SET took %.2f to %.2f µs.\n", server, set.lo, set.hi)
			}
		}
	}
	return blocks
}

// misses says whether the figure is above a target.
func (s spread) misses(target string) bool {
	most, err := strconv.ParseFloat(target, 64)
	return err != nil || s.median > most
}

// latencies are the columns of a table of latencies.
func latencies(spread bool) []column {
	return []column{{"median µs, $", "Latency", "p50-ns", "%.0f", 1000, spread, false}, {"p99 µs, $", "Latency", "p99-ns", "%.0f", 1000, true, true}}
}

// latency returns the latencies in docs/benchmarks.md.
func latency(f *figures) map[string]string {
	return map[string]string{"latency": table(f, "one connection", f.servers, f.rows("Latency"), latencies(false)...) + brief(f)}
}

// few returns what QUICK=1 prints.
func few(f *figures) string {
	return "\n" + origin(f) + "\n" + table(f, "", f.servers, f.rows("CPU"), append([]column{
		{"server CPU, µs", "CPU", "cpu-ns/op", "%.2f", 1000, true, false}}, latencies(true)...)...) + "\n" + table(f, "ratios of CPU", f.servers, f.rows("Ratio"),
		column{"$", "Ratio", "ratio", "%#.3g", 1, true, false})
}

// holds returns the figures of holds in docs/benchmarks.md.
func holds(f *figures) map[string]string {
	column := func(heading, unit, format string, per float64) column {
		return column{heading, "Holds", unit, format, per, true, false}
	}
	return map[string]string{"holds": table(f, "50 callers", f.servers[:1], f.rows("Holds"), column("holds/s", "holds/s", "%.0f", 1),
		column("median, ms", "p50-ns", "%.2f", 1e6), column("p99, ms", "p99-ns", "%.2f", 1e6)) + brief(f)}
}

// others returns the figures of a language's clients in docs/benchmarks.md.
func others(kind string) func(f *figures) map[string]string {
	return func(f *figures) map[string]string {
		var columns []column
		for _, load := range [][2]string{{"1", "1 key"}, {"10000", "10,000 keys"}} {
			of := func(heading, unit, format string, per float64) column {
				return column{heading + ", " + load[1], kind + "/keys=" + load[0], unit, format, per, false, false}
			}
			columns = append(columns, of("calls/s", "ops/s", "%.0f", 1), of("server µs", "server-ns/op", "%.2f", 1000), of("p99 ms", "p99-ms", "%.1f", 1))
		}
		return map[string]string{kind: table(f, kind, f.servers, f.rows(columns[0].kind), columns...) + brief(f)}
	}
}

// clients returns the figures of docs/go.md.
func clients(f *figures) map[string]string {
	var columns []column
	for _, keys := range []string{"one", "Zipf"} {
		for _, goroutines := range []string{"1", "16", "256"} {
			kind := "Client/keys=" + keys + "/goroutines=" + goroutines
			columns = append(columns, column{keys + ": " + goroutines, kind, "server-ns/op", "%.2f", 1000, false, false})
		}
	}
	return map[string]string{
		"client": table(f, "server CPU, µs", f.servers[:1], f.rows(columns[0].kind), columns...) + brief(f),
	}
}

// costRatios are what addRatios reads.
const costRatios = `
|CPU|cpu-ns/op|GO.THROTTLE / any module: and write <= 1.15; GO.THROTTLE denied / any module: and read, hot key <= 1.25
|CPU|cpu-ns/op|GO.THROTTLE / GCRA in Lua <= 0.33; GO.THROTTLE / CL.THROTTLE of redis-cell <= 0.78
|CPU|cpu-ns/op|GO.THROTTLE denied / CL.THROTTLE of redis-cell denied <= 0.92; GO.ALL 3 cells / 3 x GO.THROTTLE pipelined <= 0.63
|CPU|cpu-ns/op|GO.WINDOW 10^6 / GO.WINDOW 100 <= 1.20; GO.THROTTLE denied, counted / GO.THROTTLE denied <= 1.03
|CPU|cpu-ns/op|GO.THROTTLE denied, all keys, counted / GO.THROTTLE denied, all keys <= 1.03
one CPU|OneCPU|tied/free|GO.THROTTLE / SET PX <= 1.15; GO.WINDOW 100 / SET PX <= 1.15; GO.ALL 3 keys / SET PX <= 1.15
|CPU|cpu-ns/op|GO.THROTTLE / SET PX; GO.THROTTLE denied / INCR hot key; GO.QUOTA / INCR + EXPIRE in Lua
|CPU|cpu-ns/op|GO.WINDOW 100 / zset window by MULTI; GO.WINDOW 100 / zset window in Lua; GO.ALL 3 keys / 3 x GO.THROTTLE pipelined
|CPU|cpu-ns/op|script: GO.THROTTLE / GO.THROTTLE; script: GO.THROTTLE / GCRA in Lua; script: GO.QUOTA / INCR + EXPIRE in Lua
`

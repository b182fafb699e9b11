package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// figures are the medians and spreads in the files of bench/results.
type figures struct {
	about   map[string]string // the command, date, load and machine of the last file
	servers []string
	lines   []line
	spreads map[figure]spread
}

// A line of a file is one figure of a row, on each server.
type line struct{ kind, row, unit string }

type figure struct {
	server string
	line
}

const separator = " | "

// write writes a file: what the run was, a heading with the servers, and the lines. A cell is a median and its interval, or
// the median alone if all rounds gave that.
func (f *figures) write(file string) error {
	var s strings.Builder
	for _, key := range []string{"command", "date", "load", "machine"} {
		fmt.Fprintf(&s, "%s: %s\n", key, f.about[key])
	}
	fmt.Fprintln(&s, strings.Join(append([]string{"kind", "row", "unit"}, f.servers...), separator))
	for _, l := range f.lines {
		cells := []string{l.kind, l.row, l.unit}
		for _, server := range f.servers {
			cells = append(cells, f.of(server, l).String())
		}
		fmt.Fprintln(&s, strings.Join(cells, separator))
	}
	return os.WriteFile(file, []byte(s.String()), 0o644)
}

func (s spread) String() string {
	if s.lo == s.hi || math.IsNaN(s.median) {
		return number(s.median)
	}
	return number(s.median) + " " + number(s.lo) + " " + number(s.hi)
}

// number writes an integer as it is, and six digits of another number.
func number(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.6g", v)
}

// readFigures reads files that write has written.
func readFigures(files ...string) (*figures, error) {
	f := &figures{about: map[string]string{}, spreads: map[figure]spread{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var servers []string
		for words := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(words), separator)
			switch key, value, _ := strings.Cut(cells[0], ": "); {
			case len(cells) < 4:
				f.about[key] = value
			case servers == nil:
				servers = cells[3:]
				f.servers = append(f.servers, slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return slices.Contains(f.servers, s) })...)
			default:
				f.add(line{cells[0], cells[1], cells[2]}, servers, cells[3:])
			}
		}
	}
	return f, nil
}

func (f *figures) add(l line, servers, cells []string) {
	f.lines = append(f.lines, l)
	for i, server := range servers {
		var s spread
		if n, _ := fmt.Sscan(cells[i], &s.median, &s.lo, &s.hi); n == 1 {
			s.lo, s.hi = s.median, s.median
		}
		f.spreads[figure{server, l}] = s
	}
}

// of returns a figure of a row: NaN if it was not measured.
func (f *figures) of(server string, l line) spread {
	if s, found := f.spreads[figure{server, l}]; found {
		return s
	}
	return spread{math.NaN(), math.NaN(), math.NaN()}
}

// rows returns the rows of a kind, in the order in which they were measured.
func (f *figures) rows(kind string) (rows []string) {
	for _, l := range f.lines {
		if l.kind == kind && !slices.Contains(rows, l.row) {
			rows = append(rows, l.row)
		}
	}
	return rows
}

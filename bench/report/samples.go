// Package report turns raw samples, kept in the Go benchmark format, into tables, charts and pages.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// Log writes samples as they are measured. A name is a kind and a row, as in "CPU/INCR hot key".
type Log struct {
	w     *benchfmt.Writer
	about []benchfmt.Config
}

// NewLog returns a Log whose samples share what about says: pairs of a key and a text.
func NewLog(w io.Writer, about ...string) *Log {
	l := &Log{w: benchfmt.NewWriter(w)}
	for pair := range slices.Chunk(about, 2) {
		l.about = append(l.about, benchfmt.Config{Key: pair[0], Value: []byte(pair[1]), File: true})
	}
	return l
}

// Value is a figure and its unit, such as cpu-ns/op.
type Value = benchfmt.Value

// Add writes one sample: the means over n ops on a server.
func (l *Log) Add(server, name string, n int, values ...Value) error {
	for i := range values {
		values[i].Value = round(values[i].Value)
	}
	config := append(slices.Clone(l.about), benchfmt.Config{Key: "server", Value: []byte(server), File: true})
	return l.w.Write(&benchfmt.Result{Config: config, Name: benchfmt.Name(encode(name)), Iters: n, Values: values})
}

// encode makes a name one word, as the format wants it.
func encode(name string) string { return strings.ReplaceAll(name, " ", "~") }

// round keeps six digits.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Samples are those of one file. The i-th samples of two names are of the same round.
type Samples struct {
	About   map[string]string
	Servers []string // in the order of the file
	names   []string
	values  map[[3]string][]float64 // by server, name, unit
}

// Read reads files that a Log, or go test -bench, has written.
func Read(files ...string) (*Samples, error) {
	s := &Samples{About: map[string]string{}, values: map[[3]string][]float64{}}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r := benchfmt.NewReader(file, name)
		for r.Scan() {
			switch result := r.Result().(type) {
			case *benchfmt.SyntaxError:
				return nil, result
			case *benchfmt.Result:
				s.add(result)
			}
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	return s, nil
}

func (s *Samples) add(r *benchfmt.Result) {
	for _, c := range r.Config {
		s.About[c.Key] = string(c.Value)
	}
	server, name := r.GetConfig("server"), strings.ReplaceAll(string(r.Name), "~", " ")
	if server != "" && !slices.Contains(s.Servers, server) {
		s.Servers = append(s.Servers, server)
	}
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
	for _, v := range r.Values {
		key := [3]string{server, name, cmp.Or(v.OrigUnit, v.Unit)}
		if v.OrigUnit != "" {
			v.Value = v.OrigValue
		}
		s.values[key] = append(s.values[key], v.Value)
	}
}

// Rows returns the rows of a kind, in the order of the file.
func (s *Samples) Rows(kind string) (rows []string) {
	for _, name := range s.names {
		if row, ok := strings.CutPrefix(name, kind+"/"); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// Of returns the values of a name, one for each round.
func (s *Samples) Of(server, name, unit string) []float64 {
	return s.values[[3]string{server, name, unit}]
}

// A Spread is a median and the interval that holds the true one with at least 90 % confidence. That of five rounds is from
// the least to the greatest. Fewer rounds have no such interval, so theirs is the same.
type Spread struct{ Median, Lo, Hi float64 }

// Sum sums up values: NaN if there are none.
func Sum(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, 0.9)
	return Spread{s.Center, max(s.Lo, sample.Values[0]), min(s.Hi, sample.Values[len(values)-1])}
}

// Ratios returns the ratio of each round.
func Ratios(a, b []float64) (ratios []float64) {
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return ratios
}

// Cells writes a median and its interval, divided by per; "-" if nothing was measured.
func (s Spread) Cells(format string, per float64) []string {
	if math.IsNaN(s.Median) {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf(format, s.Median/per), fmt.Sprintf(format+".."+format, s.Lo/per, s.Hi/per)}
}

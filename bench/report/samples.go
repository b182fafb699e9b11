// Package report turns raw samples in the Go benchmark format into tables, pages and charts.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// Samples are those of some files. The i-th samples of two rows are of the same round.
type Samples struct {
	About   map[string]string
	Servers []string
	rows    map[string][]string     // by kind; in the order of the files, as the servers are
	values  map[[4]string][]float64 // by server, kind, row, unit
}

// Read reads what go test -bench has printed for names like
// BenchmarkCPU/row=INCR_hot_key/server=Redis_8.6.3. A kind is CPU, or Client/keys=1 of BenchmarkClient/keys=1/row=x.
// About is that of the last file.
func Read(files ...string) (*Samples, error) {
	s := &Samples{About: map[string]string{}, rows: map[string][]string{}, values: map[[4]string][]float64{}}
	all := benchfmt.Files{Paths: files}
	for all.Scan() {
		if result, ok := all.Result().(*benchfmt.Result); ok {
			s.add(result)
		}
	}
	return s, all.Err()
}

func (s *Samples) add(r *benchfmt.Result) {
	for _, c := range r.Config {
		s.About[c.Key] = string(c.Value)
	}
	base, parts := r.Name.Parts()
	kind, row, server := string(base), "", ""
	for _, part := range parts {
		name := strings.NewReplacer("_RO", "_RO", "redis_rate", "redis_rate", "_", " ").Replace(string(part))
		if value, ok := strings.CutPrefix(name, "/row="); ok {
			row = value
		} else if value, ok := strings.CutPrefix(name, "/server="); ok {
			server = value
		} else if strings.HasPrefix(name, "/") { // not the number of processors, as in -2
			kind += name
		}
	}
	if !slices.Contains(s.Servers, server) {
		s.Servers = append(s.Servers, server)
	}
	if !slices.Contains(s.rows[kind], row) {
		s.rows[kind] = append(s.rows[kind], row)
	}
	for _, v := range r.Values {
		key := [4]string{server, kind, row, cmp.Or(v.OrigUnit, v.Unit)} // the reader has converted ns
		s.values[key] = append(s.values[key], cmp.Or(v.OrigValue, v.Value))
	}
}

// Rows returns the rows of a kind.
func (s *Samples) Rows(kind string) []string { return s.rows[kind] }

// Of returns the values of a row, one for each round.
func (s *Samples) Of(server, kind, row, unit string) []float64 {
	return s.values[[4]string{server, kind, row, unit}]
}

// Set adds values that were computed.
func (s *Samples) Set(server, kind, row, unit string, values []float64) {
	s.values[[4]string{server, kind, row, unit}] = values
}

// A Spread is a median and the interval that holds the true one with 90 % confidence: of five rounds, and of fewer, from the
// least to the greatest.
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

// Over returns the spread in a unit that is n times as large.
func (s Spread) Over(n float64) Spread { return Spread{s.Median / n, s.Lo / n, s.Hi / n} }

// Cells writes a median and its interval; "-" if nothing was measured.
func (s Spread) Cells(format string) []string {
	if math.IsNaN(s.Median) {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf(format, s.Median), fmt.Sprintf(format+".."+format, s.Lo, s.Hi)}
}

// Table is a table in Markdown, its headings first. All columns but the first hold numbers.
func Table(lines ...[]string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(line)-1) + "\n")
		}
	}
	return b.String()
}

// Fill puts each block between the two comments of its name. A place without a block keeps its text.
func Fill(page string, blocks map[string]string) (string, error) {
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

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// samples are those of some files. The i-th samples of two rows are of the same round.
type samples struct {
	about   map[string]string // of the last file
	servers []string
	rows    map[string][]string     // by kind; in the order of the files, as the servers are
	values  map[[4]string][]float64 // by server, kind, row, unit
}

// readSamples reads what go test -bench has printed for names like
// BenchmarkCPU/row=INCR_hot_key/server=Redis_8.6.3. A kind is CPU, or Client/keys=1 of BenchmarkClient/keys=1/row=x.
func readSamples(files ...string) (*samples, error) {
	s := &samples{about: map[string]string{}, rows: map[string][]string{}, values: map[[4]string][]float64{}}
	all := benchfmt.Files{Paths: files}
	for all.Scan() {
		if result, ok := all.Result().(*benchfmt.Result); ok {
			s.add(result)
		}
	}
	return s, all.Err()
}

func (s *samples) add(r *benchfmt.Result) {
	for _, c := range r.Config {
		s.about[c.Key] = string(c.Value)
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
	if !slices.Contains(s.servers, server) {
		s.servers = append(s.servers, server)
	}
	if !slices.Contains(s.rows[kind], row) {
		s.rows[kind] = append(s.rows[kind], row)
	}
	for _, v := range r.Values {
		key := [4]string{server, kind, row, cmp.Or(v.OrigUnit, v.Unit)} // the reader has converted ns
		s.values[key] = append(s.values[key], cmp.Or(v.OrigValue, v.Value))
	}
}

// of returns the values of a row, one for each round.
func (s *samples) of(server, kind, row, unit string) []float64 {
	return s.values[[4]string{server, kind, row, unit}]
}

// A spread is a median and the interval that holds the true one with 90 % confidence: of five rounds, and of fewer, from the
// least to the greatest.
type spread struct{ median, lo, hi float64 }

// sum sums up values in a unit that is per times as large: NaN if there are none.
func sum(values []float64, per float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, 0.9)
	least, greatest := sample.Values[0], sample.Values[len(values)-1]
	return spread{s.Center / per, max(s.Lo, least) / per, min(s.Hi, greatest) / per}
}

// cells writes a median and its interval; "-" if nothing was measured.
func (s spread) cells(format string) (median, interval string) {
	if math.IsNaN(s.median) {
		return "-", "-"
	}
	return fmt.Sprintf(format, s.median), fmt.Sprintf(format+".."+format, s.lo, s.hi)
}

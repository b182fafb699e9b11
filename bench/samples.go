package main

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// samples are what a run has measured. The i-th samples of two rows are of the same round.
type samples struct {
	figures
	values map[figure][]float64
}

// missing are the rows of which a summary keeps cache misses: those that have bounds, and what they are compared with.
var missing = regexp.MustCompile(`^(GO\.|script: |any module: )`)

// kept says whether the pages and the bounds on instructions need a figure.
func (l line) kept() bool {
	return l.kind != "OneCPU" && (l.unit != "I1-misses/op" || missing.MatchString(l.row))
}

// summarise reads what go test -bench has printed, and returns the medians and spreads that are kept. The name of a row is
// like BenchmarkCPU/row=INCR_hot_key/server=Redis_8.6.3. A kind is CPU, or Client/keys=1 of BenchmarkClient/keys=1/row=x.
func summarise(file string) (*figures, error) {
	s := &samples{figures{about: map[string]string{}, spreads: map[figure]spread{}}, map[figure][]float64{}}
	all := benchfmt.Files{Paths: []string{file}}
	for all.Scan() {
		if result, ok := all.Result().(*benchfmt.Result); ok {
			s.add(result)
		}
	}
	s.addRatios(costRatios)
	s.lines = slices.DeleteFunc(s.lines, func(l line) bool { return !l.kept() })
	for f, values := range s.values {
		s.spreads[f] = sum(values)
	}
	return &s.figures, all.Err()
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
	for _, v := range r.Values { // the reader has converted ns
		s.put(figure{server, line{kind, row, cmp.Or(v.OrigUnit, v.Unit)}}, cmp.Or(v.OrigValue, v.Value))
	}
}

func (s *samples) put(f figure, value float64) {
	if !slices.Contains(s.servers, f.server) {
		s.servers = append(s.servers, f.server)
	}
	if !slices.Contains(s.lines, f.line) {
		s.lines = append(s.lines, f.line)
	}
	s.values[f] = append(s.values[f], value)
}

// addRatios adds ratios, round by round. A line of list is "what|kind|unit|row / row <= target; row / row; ...", without
// what for the usual figure.
func (s *samples) addRatios(list string) {
	for words := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		f := strings.Split(words, "|")
		for pair := range strings.SplitSeq(f[3], "; ") {
			row := strings.TrimPrefix(f[0]+", "+pair, ", ")
			pair, _, _ = strings.Cut(pair, " <= ")
			a, b, _ := strings.Cut(pair, " / ")
			for _, server := range s.servers {
				over, under := s.values[figure{server, line{f[1], a, f[2]}}], s.values[figure{server, line{f[1], b, f[2]}}]
				for i := range min(len(over), len(under)) {
					s.put(figure{server, line{"Ratio", row, "ratio"}}, over[i]/under[i])
				}
			}
		}
	}
}

// A spread is a median and the interval that holds the true one with 90 % confidence: over five rounds or fewer, from the
// least to the greatest. NaN was not measured.
type spread struct{ median, lo, hi float64 }

func sum(values []float64) spread {
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, 0.9)
	least, greatest := sample.Values[0], sample.Values[len(values)-1]
	return spread{s.Center, max(s.Lo, least), min(s.Hi, greatest)}
}

// in converts the spread to a unit that is per times as large.
func (s spread) in(per float64) spread { return spread{s.median / per, s.lo / per, s.hi / per} }

// cells writes a median and its interval: nothing if that was not measured.
func (s spread) cells(format string) (median, interval string) {
	if math.IsNaN(s.median) {
		return "", ""
	}
	return fmt.Sprintf(format, s.median), fmt.Sprintf(format+".."+format, s.lo, s.hi)
}

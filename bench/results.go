package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// results are all figures of a run, by the contenders' names.
type results struct {
	list    []*contender
	of      map[string][]figure  // one per round
	tied    map[string][]float64 // per round: cost tied to one CPU / cost without
	memory  map[string]float64   // bytes per key
	aof     map[string]float64   // bytes per op
	machine machine
	took    time.Duration

	allocs   float64 // Go allocations of a command, the most of any; NaN if not measured
	allocsOf int     // of so many benchmarks
}

func newResults(list []*contender) *results {
	return &results{list: list, of: map[string][]figure{}, tied: map[string][]float64{},
		memory: map[string]float64{}, aof: map[string]float64{}}
}

// A spread is the median of some values, the least and the greatest.
type spread struct{ median, min, max float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

func cpuOf(f figure) float64  { return f.cpu }
func rateOf(f figure) float64 { return f.rate }
func p50Of(f figure) float64  { return f.p50 }
func p99Of(f figure) float64  { return f.p99 }
func p999Of(f figure) float64 { return f.p999 }

func (r *results) spread(name string, of func(figure) float64) spread {
	var values []float64
	for _, f := range r.of[name] {
		values = append(values, of(f))
	}
	return spreadOf(values)
}

// ratio compares two contenders within each round, and only then over the rounds.
func (r *results) ratio(a, b string, of func(figure) float64) spread {
	var ratios []float64
	for i := range min(len(r.of[a]), len(r.of[b])) {
		ratios = append(ratios, of(r.of[a][i])/of(r.of[b][i]))
	}
	return spreadOf(ratios)
}

// extra is how much more the server takes on one CPU, relative to SET.
func (r *results) extra(name string) spread {
	var ratios []float64
	set := r.tied["SET PX"]
	for i := range min(len(r.tied[name]), len(set)) {
		ratios = append(ratios, r.tied[name][i]/set[i])
	}
	return spreadOf(ratios)
}

// A row of the table of targets.
type row struct {
	what   string
	target float64
	is     spread
	unit   string
}

func (w row) met() string {
	switch {
	case math.IsNaN(w.is.median):
		return "not measured"
	case w.is.median <= w.target:
		return "yes"
	}
	return "no"
}

var allocsPerOp = regexp.MustCompile(`(?m)^Benchmark.* ([0-9]+) allocs/op$`)

// readAllocs returns the greatest figure of a file of Go benchmarks, and how many it has.
func readAllocs(file string) (most float64, n int, err error) {
	if file == "" {
		return math.NaN(), 0, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	for _, match := range allocsPerOp.FindAllSubmatch(text, -1) {
		allocs, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			return 0, 0, err
		}
		most, n = max(most, allocs), n+1
	}
	if n == 0 {
		return 0, 0, fmt.Errorf("no benchmarks in %s", file)
	}
	return most, n, nil
}

// rows are the ratios, and the few absolutes that have targets.
func (r *results) rows() []row {
	peerName, deniedName := "", ""
	for _, c := range r.list {
		switch {
		case c.by == peer && c.expect == denied:
			deniedName = c.name
		case c.by == peer:
			peerName = c.name
		}
	}
	or := func(name string) string {
		if name == "" {
			return "another module (PEER)"
		}
		return name
	}
	var rows []row
	cpu := func(target float64, a, b string) {
		rows = append(rows, row{"CPU, " + a + " / " + or(b), target, r.ratio(a, b, cpuOf), ""})
	}
	cpu(0.27, "GO.THROTTLE", "GCRA in Lua")
	cpu(0.75, "GO.THROTTLE", peerName)
	cpu(1.00, "GO.THROTTLE", "plain C module")
	cpu(1.30, "GO.THROTTLE", "SET PX")
	cpu(2.00, "GO.THROTTLE denied", "INCR hot key")
	cpu(0.70, "GO.THROTTLE denied", deniedName)
	cpu(0.30, "GO.WINDOW 100", "zset window by MULTI")
	cpu(0.30, "GO.WINDOW 100", "zset window in Lua")
	cpu(1.20, "GO.WINDOW 10^6", "GO.WINDOW 100")
	cpu(0.60, "GO.QUOTA", "INCR + EXPIRE in Lua")
	cpu(1.10, "GO.QUOTA", "SET PX")
	cpu(0.60, "GO.MTHROTTLE 3 cells", "3 x GO.THROTTLE pipelined")
	cpu(0.90, "GO.MTHROTTLE 3 keys", "3 x GO.THROTTLE pipelined")
	rows = append(rows, row{"p99, GO.THROTTLE / SET PX", 1.15, r.ratio("GO.THROTTLE", "SET PX", p99Of), ""})
	for _, c := range r.list {
		if c.pinned && c.by == ours {
			rows = append(rows, row{"extra CPU on one CPU, " + c.name + " / SET PX", 1.15, r.extra(c.name), ""})
		}
	}
	one := func(values map[string]float64, name string) spread {
		if v, ok := values[name]; ok {
			return spread{v, v, v}
		}
		return spreadOf(nil)
	}
	rows = append(rows, row{fmt.Sprintf("Go allocations per call, the most of %d benchmarks", r.allocsOf), 0,
		spread{r.allocs, r.allocs, r.allocs}, " "})
	return append(rows,
		row{"memory per limiter, GO.THROTTLE", 145, one(r.memory, "GO.THROTTLE"), " B"},
		row{"memory per limiter, GO.THROTTLE with a rest", 160, one(r.memory, "GO.THROTTLE with a rest"), " B"},
		row{"append-only file per admitted GO.THROTTLE", 90, one(r.aof, "GO.THROTTLE"), " B"})
}

package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// results are all results of a run.
type results struct {
	list    []*contender
	worst   []*worstCase
	on      []*figures // one for each server, in the order of the options
	machine machine
	took    time.Duration

	allocs   float64 // the most Go allocations of any command; NaN if not measured
	allocsOf int     // the number of commands whose allocations were counted
}

// figures are the results of one server. The keys are names of contenders and worst cases.
type figures struct {
	product
	of     map[string][]figure  // one per round
	tied   map[string][]float64 // one per round: cost on one CPU / cost on all CPUs
	memory map[string]float64   // bytes per key
	aof    map[string]float64   // bytes per op
	worst  map[string][]float64 // one per round: µs per call
}

func newResults(list []*contender, worst []*worstCase, products []product) *results {
	r := &results{list: list, worst: worst, allocs: math.NaN()}
	for _, p := range products {
		r.on = append(r.on, &figures{product: p, of: map[string][]figure{}, tied: map[string][]float64{},
			memory: map[string]float64{}, aof: map[string]float64{}, worst: map[string][]float64{}})
	}
	return r
}

// names returns the names of the servers, such as Redis 8.6.3.
func (r *results) names() []string {
	var names []string
	for _, on := range r.on {
		names = append(names, on.name)
	}
	return names
}

func (r *results) serverNames() string { return strings.Join(r.names(), ", ") }

// rounds returns the number of rounds measured.
func (r *results) rounds() int {
	n := 0
	for _, figures := range r.on[0].of {
		n = max(n, len(figures))
	}
	return n
}

// A spread is the median, the least and the greatest of some values.
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

func (on *figures) spread(name string, of func(figure) float64) spread {
	var values []float64
	for _, f := range on.of[name] {
		values = append(values, of(f))
	}
	return spreadOf(values)
}

// ratio returns the spread of the rounds' ratios. A ratio compares two contenders of the
// same round.
func (on *figures) ratio(a, b string, of func(figure) float64) spread {
	var ratios []float64
	for i := range min(len(on.of[a]), len(on.of[b])) {
		ratios = append(ratios, of(on.of[a][i])/of(on.of[b][i]))
	}
	return spreadOf(ratios)
}

// extra returns the extra cost of one CPU divided by the extra cost of SET on one CPU.
func (on *figures) extra(name string) spread {
	var ratios []float64
	set := on.tied["SET PX"]
	for i := range min(len(on.tied[name]), len(set)) {
		ratios = append(ratios, on.tied[name][i]/set[i])
	}
	return spreadOf(ratios)
}

// A row is a line of the table of ratios.
type row struct {
	what   string
	target float64  // NaN for none
	is     []spread // one for each server
	unit   string   // "" for a ratio
}

// met says whether a row meets its target, and where it does not.
func (w row) met(names []string) string {
	var measured, missed []string
	for i, s := range w.is {
		if !math.IsNaN(s.median) {
			measured = append(measured, names[i])
			if s.median > w.target {
				missed = append(missed, names[i])
			}
		}
	}
	switch {
	case math.IsNaN(w.target):
		return ""
	case len(measured) == 0:
		return "not measured"
	case len(missed) == 0:
		return "yes"
	case len(w.is) == 1:
		return "no"
	}
	return "no: " + strings.Join(missed, ", ")
}

var allocsPerOp = regexp.MustCompile(`(?m)^Benchmark.* ([0-9]+) allocs/op$`)

// readAllocs returns the greatest number of allocations in a file of Go benchmarks, and the
// number of its benchmarks.
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

// peers returns the names of the other module's contenders.
func (r *results) peers() (admittedName, deniedName string) {
	admittedName, deniedName = "another module (PEER)", "another module (PEER) denied"
	for _, c := range r.list {
		switch {
		case c.by == peer && c.expect == denied:
			deniedName = c.name
		case c.by == peer:
			admittedName = c.name
		}
	}
	return admittedName, deniedName
}

// rows returns the rows with a target, then the rows without.
func (r *results) rows() []row {
	var rows []row
	add := func(what string, target float64, unit string, of func(*figures) spread) {
		w := row{what: what, target: target, unit: unit}
		for _, on := range r.on {
			w.is = append(w.is, of(on))
		}
		rows = append(rows, w)
	}
	cpu := func(target float64, a, b string) {
		add("CPU, "+a+" / "+b, target, "", func(on *figures) spread { return on.ratio(a, b, cpuOf) })
	}
	peerName, peerDenied := r.peers()
	cpu(1.15, "GO.THROTTLE", "any module: and write")
	cpu(1.25, "GO.THROTTLE denied", "any module: and read, hot key")
	cpu(0.33, "GO.THROTTLE", "GCRA in Lua")
	cpu(0.78, "GO.THROTTLE", peerName)
	cpu(0.92, "GO.THROTTLE denied", peerDenied)
	cpu(0.63, "GO.ALL 3 cells", "3 x GO.THROTTLE pipelined")
	cpu(1.20, "GO.WINDOW 10^6", "GO.WINDOW 100")
	cpu(1.03, "GO.THROTTLE denied, counted", "GO.THROTTLE denied")
	cpu(1.03, "GO.THROTTLE denied, all keys, counted", "GO.THROTTLE denied, all keys")
	for _, c := range r.list {
		if c.pinned && c.by == ours {
			add("extra CPU on one CPU, "+c.name+" / SET PX", 1.15, "", func(on *figures) spread { return on.extra(c.name) })
		}
	}
	add(fmt.Sprintf("Go allocations per call, the most of %d benchmarks", r.allocsOf), 0, " ",
		func(*figures) spread { return spread{r.allocs, r.allocs, r.allocs} })

	none := math.NaN()
	cpu(none, "GO.THROTTLE", "plain C module")
	cpu(none, "GO.THROTTLE", "SET PX")
	cpu(none, "GO.THROTTLE denied", "INCR hot key")
	cpu(none, "GO.WINDOW 100", "zset window by MULTI")
	cpu(none, "GO.WINDOW 100", "zset window in Lua")
	cpu(none, "GO.QUOTA", "INCR + EXPIRE in Lua")
	cpu(none, "GO.QUOTA", "SET PX")
	cpu(none, "GO.THROTTLE with LOCKOUT", "GO.THROTTLE")
	cpu(none, "GO.THROTTLE locked out", "GO.THROTTLE denied")
	cpu(none, "GO.THROTTLE with RESERVE", "GO.THROTTLE")
	cpu(none, "GO.POLICY", "GO.THROTTLE")
	cpu(none, "GO.ALL 3 keys", "3 x GO.THROTTLE pipelined")
	add("p99, GO.THROTTLE / SET PX", none, "", func(on *figures) spread { return on.ratio("GO.THROTTLE", "SET PX", p99Of) })
	bytes := func(what, name string, of func(*figures) map[string]float64) {
		add(what+", "+name, none, " B", func(on *figures) spread {
			if v, ok := of(on)[name]; ok {
				return spread{v, v, v}
			}
			return spreadOf(nil)
		})
	}
	memory := func(on *figures) map[string]float64 { return on.memory }
	bytes("memory per limiter", "GO.THROTTLE", memory)
	bytes("memory per limiter", "GO.THROTTLE with a rest", memory)
	bytes("append-only file per admitted call", "GO.THROTTLE", func(on *figures) map[string]float64 { return on.aof })
	return rows
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Names of what stats counts, beside faults and what happens in a cluster.
const (
	numRuns     = "runs"
	numSteps    = "steps"
	numCalls    = "calls"
	numChecks   = "replies that were checked"
	numForeign  = "foreign commands"
	numCompared = "keys that were compared"
)

// stats is what a program did.
type stats struct {
	began, shown time.Time // shown: when the last line was printed; zero if none is wanted
	version      string
	tally        map[string]int
	times        []time.Duration // of calls that were sent alone
	first, last  memoryUse       // of masters
}

// memoryUse is what INFO says, in bytes.
type memoryUse struct{ rss, used int64 }

func newStats(l *lab) *stats {
	return &stats{began: time.Now(), version: l.version, tally: map[string]int{}}
}

func (s *stats) sample(master *server) {
	s.last = memoryUse{master.number("memory", "used_memory_rss"), master.number("memory", "used_memory")}
	if s.first.rss == 0 {
		s.first = s.last
	}
}

// quantile returns the time that the share q of the calls did not exceed.
func (s *stats) quantile(q float64) time.Duration {
	all := slices.Sorted(slices.Values(s.times))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// progress prints a line now and then.
func (s *stats) progress() {
	if s.shown.IsZero() || time.Since(s.shown) < 10*time.Second {
		return
	}
	s.shown = time.Now()
	fmt.Printf("%4.0f s: %d runs, %d calls\n", s.shown.Sub(s.began).Seconds(), s.tally[numRuns], s.tally[numCalls])
}

// table sums up.
func (s *stats) table() string {
	b := &strings.Builder{}
	row := func(name string, value any) { fmt.Fprintf(b, "  %-28s %v\n", name, value) }
	row("server", s.version)
	row("time", time.Since(s.began).Round(time.Second))
	for _, name := range slices.Sorted(maps.Keys(s.tally)) {
		row(name, s.tally[name])
	}
	if len(s.times) > 0 { // of a cluster they are not measured
		row("p50, p99 of a call", fmt.Sprint(s.quantile(0.5), ", ", s.quantile(0.99)))
		row("RSS, begin and end", fmt.Sprintf("%.1f, %.1f MB", float64(s.first.rss)/1e6, float64(s.last.rss)/1e6))
		row("used_memory, begin and end", fmt.Sprintf("%.1f, %.1f MB", float64(s.first.used)/1e6, float64(s.last.used)/1e6))
	}
	return b.String()
}

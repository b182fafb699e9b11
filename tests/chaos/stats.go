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
	numExact    = "replies by the exact models"
	numForeign  = "foreign commands"
	numNotBegun = "runs that did not begin"
	numCompared = "keys that were compared"
)

// stats is what a program did.
type stats struct {
	began, shown time.Time // shown: when the last line was printed; zero if none is wanted
	version      string
	tally        map[string]int
}

func newStats(l *lab) *stats {
	return &stats{began: time.Now(), version: l.version, tally: map[string]int{}}
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
	return b.String()
}

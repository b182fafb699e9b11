package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// stats is what a program did.
type stats struct {
	began, shown           time.Time // shown: when the last line was printed; zero if none is wanted
	version                string
	runs, steps            int
	calls, checks, foreign int
	compared               int // keys
	differences            int
	tally                  map[string]int  // of faults, and of what happens in a cluster
	times                  []time.Duration // of calls that were sent alone
	firstRSS, lastRSS      int64           // bytes, of the master
	firstUsed, lastUsed    int64
	defrag                 string // whether there was active defragmentation
}

func newStats() *stats { return &stats{began: time.Now(), tally: map[string]int{}} }

func (s *stats) servers(master *server) {
	s.version = master.info("server", "valkey_version")
	if s.version == "" {
		s.version = master.info("server", "redis_version")
	}
	if s.firstRSS == 0 {
		s.firstRSS, s.firstUsed = master.number("memory", "used_memory_rss"), master.number("memory", "used_memory")
	}
}

func (s *stats) sample(master *server) {
	s.lastRSS, s.lastUsed = master.number("memory", "used_memory_rss"), master.number("memory", "used_memory")
}

// quantile returns the time that the share q of the calls did not exceed.
func (s *stats) quantile(q float64) time.Duration {
	all := slices.Sorted(slices.Values(s.times))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// progress prints a line now and then.
func (s *stats) progress(seed uint64) {
	if s.shown.IsZero() || time.Since(s.shown) < 10*time.Second {
		return
	}
	s.shown = time.Now()
	took := s.shown.Sub(s.began).Seconds()
	fmt.Printf("%4.0f s: seed %d, %d runs, %d calls (%.0f/s), %d checked, %d keys compared\n",
		took, seed, s.runs, s.calls, float64(s.calls)/took, s.checks, s.compared)
}

// table sums up.
func (s *stats) table() string {
	b := &strings.Builder{}
	row := func(name string, value any) { fmt.Fprintf(b, "  %-28s %v\n", name, value) }
	row("server", s.version)
	row("time", time.Since(s.began).Round(time.Second))
	row("runs", s.runs)
	row("steps", s.steps)
	row("calls", s.calls)
	row("replies that were checked", s.checks)
	row("foreign commands", s.foreign)
	row("keys that were compared", s.compared)
	for _, name := range slices.Sorted(maps.Keys(s.tally)) {
		row(name, s.tally[name])
	}
	if len(s.times) > 0 { // of a cluster they are not measured
		row("p50, p99 of a call", fmt.Sprint(s.quantile(0.5), ", ", s.quantile(0.99)))
		row("RSS, begin and end", fmt.Sprintf("%.1f, %.1f MB", float64(s.firstRSS)/1e6, float64(s.lastRSS)/1e6))
		row("used_memory, begin and end", fmt.Sprintf("%.1f, %.1f MB", float64(s.firstUsed)/1e6, float64(s.lastUsed)/1e6))
	}
	if s.defrag != "" {
		row("active defragmentation", s.defrag)
	}
	row("differences", s.differences)
	return b.String()
}

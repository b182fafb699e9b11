package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlots(t *testing.T) {
	r := newResults([]*contender{
		{name: "PING"},
		{name: "GO.THROTTLE, of some length or other", by: ours},
		{name: "GCRA in Lua", by: rival},
		{name: "window", by: rival, calls: 95},
	})
	for i, c := range r.list {
		f := float64(i + 1)
		r.of[c.name] = []figure{{cpu: f, p50: 400 * f, p99: 500 * f, p999: 700 * f}, {cpu: f * 1.1, p50: 400 * f, p99: 500 * f, p999: 700 * f}}
		r.memory[c.name] = 100 * f
	}
	folder := t.TempDir()
	if keep := os.Getenv("KEEP_PLOTS"); keep != "" {
		folder = keep
	}
	if err := r.plots(folder); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"bench-cpu.svg":     {"Server CPU per op", "PING", "GO.THROTTLE, of some length or other", "GCRA in Lua", "window", "2.10", "gothrottle"},
		"bench-latency.svg": {"800 · 1000 · 1400"},
		"bench-memory.svg":  {"300"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), ">"+w+"<") {
				t.Errorf("%s does not show %q", file, w)
			}
		}
		if file == "bench-latency.svg" && strings.Contains(string(text), ">window<") {
			t.Errorf("%s shows the latency of a paced contender beside that of others", file)
		}
	}
}

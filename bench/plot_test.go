package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// measured returns results of two servers. Contender i takes i + 1 µs on the first server.
func measured(list []*contender) *results {
	r := newResults(list, worstCases(), []product{{"a", "Redis 8.6.3"}, {"b", "Valkey 9.1.2"}})
	for s, on := range r.on {
		for i, c := range list {
			f := float64(i+1) * float64(s+1)
			slow := figure{cpu: f * 1.1, rate: 1e6 / f, p50: 400 * f, p99: 500 * f, p999: 700 * f}
			fast := slow
			fast.cpu = f
			on.of[c.name] = []figure{fast, slow}
			on.memory[c.name] = 100 * f
		}
		for i, w := range r.worst {
			on.worst[w.name] = []float64{float64(10*i + s)}
		}
	}
	return r
}

// drawn returns the texts of a plot. KEEP_PLOTS names a folder in which the plots stay.
func drawn(t *testing.T, r *results) func(file string) []string {
	folder := t.TempDir()
	if keep := os.Getenv("KEEP_PLOTS"); keep != "" {
		folder = keep
	}
	if err := r.plots(folder); err != nil {
		t.Fatal(err)
	}
	return func(file string) []string {
		svg, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, match := range regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`).FindAllSubmatch(svg, -1) {
			texts = append(texts, string(match[1]))
		}
		return texts
	}
}

func has(texts []string, want string) bool {
	for _, text := range texts {
		if text == want {
			return true
		}
	}
	return false
}

func TestPlots(t *testing.T) {
	texts := drawn(t, measured([]*contender{
		{name: "PING"},
		{name: "GO.THROTTLE, with a long name", by: ours},
		{name: "GCRA in Lua", by: rival},
		{name: "window", by: rival, calls: 95},
	}))
	for file, want := range map[string][]string{
		"bench-cpu-all.svg": {"Server CPU per op, Redis 8.6.3", "PING", "GO.THROTTLE, with a long name", "GCRA in Lua", "window", "2.10", "gothrottle"},
		"bench-latency.svg": {"800 · 1000 · 1400"},
		"bench-memory.svg":  {"300"},
	} {
		for _, w := range want {
			if !has(texts(file), w) {
				t.Errorf("%s does not show %q", file, w)
			}
		}
	}
	if has(texts("bench-latency.svg"), "window") {
		t.Error("bench-latency.svg shows the latency of a paced contender beside the others")
	}
}

// The small plot has eight rows, with and without another module.
func TestPlots_few(t *testing.T) {
	for peer, last := range map[string]string{"": "fixed window as a Lua script", "x/libredis_cell.so": "P of redis-cell"} {
		r := measured(contenders(&options{peer: peer, peerCmd: "P {key}", peerDenied: "P {hot}"}))
		_, labels := r.few()
		if len(labels) != 8 || labels[7] != last {
			t.Errorf("the rows are %q", labels)
		}
		texts := drawn(t, r)("bench-cpu.svg")
		for _, label := range append(labels, "Server CPU per call, Redis 8.6.3") {
			if !has(texts, label) {
				t.Errorf("the small plot does not show %q", label)
			}
		}
		numbers := 0
		for _, text := range texts {
			if strings.Contains(text, ".") && regexp.MustCompile(`^[0-9]+\.[0-9]{2}$`).MatchString(text) {
				numbers++
			}
		}
		if numbers != 8 {
			t.Errorf("the small plot shows the figures of %d rows", numbers)
		}
	}
}

// The plots read well on dark pages, because the whole area below them is white.
func TestPlots_background(t *testing.T) {
	folder := t.TempDir()
	if err := measured(contenders(&options{})).plots(folder); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := regexp.MustCompile(`<(path|text|rect)[^>]*>`).FindString(string(svg))
		if !strings.Contains(first, "fill:#FFFFFF") || !strings.Contains(first, fmt.Sprintf(`"M0,0L%d,0L`, width)) {
			t.Errorf("%s begins with %s", filepath.Base(file), first)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The pages show the figures in results.
func TestPages(t *testing.T) {
	for _, p := range pages {
		filled, _, err := p.fill("results", "../docs")
		text, unread := os.ReadFile("../docs/" + p.name)
		if err != nil || unread != nil || filled != string(text) {
			t.Errorf("docs/%s does not show results/%v (%v, %v): run build/bench.sh", p.name, p.files, err, unread)
		}
		if strings.Contains(filled, "NaN") {
			t.Errorf("docs/%s has NaN", p.name)
		}
	}
}

// The samples of two rounds become a file of figures, and that file the same figures again.
func TestSummarise(t *testing.T) {
	raw, file := filepath.Join(t.TempDir(), "raw"), filepath.Join(t.TempDir(), "figures")
	bench := "BenchmarkCPU/row=%s/server=Redis_7.0-2 1 %d cpu-ns/op\n"
	text := "command: x\ndate: y\nload: z\nmachine: m\n"
	for _, round := range []int{1, 2} {
		text += fmt.Sprintf(bench, "GO.THROTTLE", 300*round) + fmt.Sprintf(bench, "SET_PX", 100)
	}
	if err := os.WriteFile(raw, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := summarise(raw)
	if err = errors.Join(err, f.write(file)); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if want := "command: x\ndate: y\nload: z\nmachine: m\nkind | row | unit | Redis 7.0\n" +
		"CPU | GO.THROTTLE | cpu-ns/op | 450 300 600\nCPU | SET PX | cpu-ns/op | 100\nRatio | GO.THROTTLE / SET PX | ratio | 4.5 3 6\n"; string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	again, err := readFigures(file)
	if err != nil || !slices.Equal(again.lines, f.lines) || again.of("Redis 7.0", f.lines[0]) != f.of("Redis 7.0", f.lines[0]) {
		t.Errorf("%v, want %v (%v)", again, f, err)
	}
}

func TestSum(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{5, 1, 3, 2, 4}, spread{3, 1, 5}},
		{[]float64{7}, spread{7, 7, 7}},
		{[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 10}, spread{5.5, 2, 8}}, // the least and the greatest of ten say little
	} {
		if got := sum(test.values); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.values, got, test.want)
		}
	}
	if median, interval := new(figures).of("", line{}).cells("%.0f"); median != "" || interval != "" {
		t.Error("a figure that was not measured is", median, interval)
	}
}

// A block needs a place with an end. TestPages fills pages.
func TestInsert_wrongPage(t *testing.T) {
	for _, page := range []string{"<!-- figures: x -->\n<!-- end of figures -->\n", "<!-- figures: z -->\n"} {
		if _, err := insert(page, map[string]string{"z": "3\n"}); err == nil {
			t.Errorf("no error for %q", page)
		}
	}
}

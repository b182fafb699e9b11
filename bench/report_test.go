package main

import (
	"os"
	"strings"
	"testing"

	"gothrottle/bench/report"
)

// The pages show the samples in results.
func TestPages(t *testing.T) {
	for page, names := range map[string][]string{"benchmarks": {"instructions.txt", "costs.txt"}, "go": {"client.txt"}} {
		s, err := report.Read(present("results", names...)...)
		text, err2 := os.ReadFile("../docs/" + page + ".md")
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		blocks := map[string]func(*report.Samples) map[string]string{"benchmarks": costs, "go": clients}[page](s)
		filled, err := report.Fill(string(text), blocks)
		if err != nil || filled != string(text) {
			t.Errorf("docs/%s.md does not show results/%v (%v): run build/bench.sh", page, names, err)
		}
		if strings.Contains(filled, "NaN") {
			t.Errorf("docs/%s.md has NaN", page)
		}
	}
}

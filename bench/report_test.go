package main

import (
	"os"
	"strings"
	"testing"
)

// The pages show the samples in results.
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

func TestSum(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{5, 1, 3, 2, 4}, spread{3, 1, 5}},
		{[]float64{7}, spread{7, 7, 7}},
		{[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 10}, spread{5.5, 2, 8}}, // the least and the greatest of ten say little
	} {
		if got := sum(test.values, 1); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.values, got, test.want)
		}
	}
	if median, interval := sum(nil, 1).cells("%.0f"); median != "-" || interval != "-" {
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

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

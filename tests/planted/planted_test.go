package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Each defect can be planted: its old text occurs once in its file. No two have one name, and each has lanes.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("defects.txt")
	if err != nil {
		t.Fatal(err)
	}
	defects, err := readTable(string(text))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, d := range defects {
		code, err := os.ReadFile(filepath.Join("../..", d.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.plant(string(code)); err != nil {
			t.Error(err)
		}
		steps := 0
		for _, l := range lanes {
			steps += len(l.of(filepath.Dir(d.file)))
		}
		if ids[d.id()] || steps == 0 {
			t.Errorf("%s: a second one of this name, or no tests of its folder", d.id())
		}
		ids[d.id()] = true
	}
	if len(defects) < 220 {
		t.Errorf("%d defects, want 220", len(defects))
	}
}

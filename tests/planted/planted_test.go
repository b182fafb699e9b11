package main

import (
	"os"
	"path/filepath"
	"slices"
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

func TestReadTable(t *testing.T) {
	const head = "// how it is made\n\na/b.go\n"
	defects, err := readTable(head + "one | old[- - text-]{+.+}\ntwo | [-gone-]\n\nc.go\nthree | a[-x-]b{+y+}\n")
	want := []defect{{"a/b.go", "one", "old - text", "old."}, {"a/b.go", "two", "gone", ""}, {"c.go", "three", "axb", "aby"}}
	if err != nil || !slices.Equal(defects, want) {
		t.Errorf("%q, %v, want %q", defects, err, want)
	}
	for _, wrong := range []string{"one", "[-x-]", "one | x", "one | [-x-]\ntwo"} {
		if defects, err := readTable(head + wrong); err == nil {
			t.Errorf("%q was read as %q", wrong, defects)
		}
	}
	for _, code := range []string{"", "gone gone"} {
		if text, err := want[1].plant(code); err == nil {
			t.Errorf("planted in %q: %q", code, text)
		}
	}
	if text, err := want[0].plant("an old - text"); text != "an old." {
		t.Errorf("planted: %q, %v", text, err)
	}
}

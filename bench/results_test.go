package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestReadAllocs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "allocs.txt")
	for text, want := range map[string][2]float64{
		"goos: linux\nBenchmarkCall/a-2   \t    1000\t       807.4 ns/op\t       0 B/op\t       0 allocs/op\nok\n":                          {0, 1},
		"BenchmarkCall/a\t1000\t9 ns/op\t       0 B/op\t       3 allocs/op\nBenchmarkB-2\t10\t9 ns/op\t      16 B/op\t       1 allocs/op\n": {3, 2},
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if most, n, err := readAllocs(file); err != nil || most != want[0] || float64(n) != want[1] {
			t.Errorf("%q: %v of %d, %v", text, most, n, err)
		}
	}
	if err := os.WriteFile(file, []byte("BenchmarkCall/a-2 1000 9 ns/op\nPASS\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readAllocs(file); err == nil {
		t.Error("no error where nothing was measured")
	}
	if most, n, err := readAllocs(""); !math.IsNaN(most) || n != 0 || err != nil {
		t.Error("no file is not measured", most, n, err)
	}
}

package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a Log writes is read again: in its order, with names of several words, in the units that it was written in.
func TestSamples(t *testing.T) {
	var b bytes.Buffer
	l := NewLog(&b, "date", "2026-11-22", "command", "make bench ROUNDS=2")
	for _, server := range []string{"Redis 8.6.3", "Valkey 9.1.2", "Redis 8.6.3"} {
		if err := l.Add(server, "CPU/INCR hot key", 10, Value{Value: 1234.56789, Unit: "cpu-ns/op"}, Value{Value: 5, Unit: "ops/s"}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "samples")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Servers, []string{"Redis 8.6.3", "Valkey 9.1.2"}) || !slices.Equal(s.Rows("CPU"), []string{"INCR hot key"}) ||
		s.About["command"] != "make bench ROUNDS=2" || !slices.Equal(s.Of("Redis 8.6.3", "CPU/INCR hot key", "cpu-ns/op"), []float64{1234.57, 1234.57}) {
		t.Errorf("%+v of\n%s", s, &b)
	}
}

func TestSum(t *testing.T) {
	for _, test := range []struct{ values, want []float64 }{
		{[]float64{5, 1, 3, 2, 4}, []float64{3, 1, 5}},
		{[]float64{7}, []float64{7, 7, 7}},
		{[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 10}, []float64{5.5, 2, 8}}, // the least and the greatest of ten say little
	} {
		if s := Sum(test.values); !slices.Equal([]float64{s.Median, s.Lo, s.Hi}, test.want) {
			t.Errorf("%v: %+v, want %v", test.values, s, test.want)
		}
	}
	if c := Sum(nil).Cells("%.0f", 1); !math.IsNaN(Sum(nil).Median) || !slices.Equal(c, []string{"-", "-"}) {
		t.Error("a figure that was not measured is", c)
	}
}

func TestFill(t *testing.T) {
	page := "a\n<!-- figures: x -->\nold\n<!-- end of figures -->\nb\n<!-- figures: y -->\n<!-- end of figures -->\n"
	want := "a\n<!-- figures: x -->\n1\n<!-- end of figures -->\nb\n<!-- figures: y -->\n2\n<!-- end of figures -->\n"
	if got, err := Fill(page, map[string]string{"x": "1\n", "y": "2\n"}); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	for _, blocks := range []map[string]string{{"x": "1\n"}, {"x": "1\n", "y": "2\n", "z": "3\n"}} {
		if _, err := Fill(page, blocks); err == nil {
			t.Errorf("%v: no error for a page with x and y", blocks)
		}
	}
}

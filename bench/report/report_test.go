package report

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A name of a sample holds its kind, its row and its server, and the number of processors at its end.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples")
	text := "command: make bench\ngoos: linux\nBenchmarkCPU/row=GO.QUOTA_RO,_foreign/server=Redis_8.6.3-2 \t 1\t 1200 cpu-ns/op\t 5 ops/s\n" +
		"BenchmarkClient/keys=1/row=redis_rate_v10/server=Valkey_9.1.2-2 1 7 ops/s\nBenchmarkCPU/row=GO.QUOTA_RO,_foreign/server=Redis_8.6.3-2 1 1300 cpu-ns/op\nok\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Servers, []string{"Redis 8.6.3", "Valkey 9.1.2"}) || !slices.Equal(s.Rows("CPU"), []string{"GO.QUOTA_RO, foreign"}) ||
		s.About["command"] != "make bench" || !slices.Equal(s.Of("Redis 8.6.3", "CPU", "GO.QUOTA_RO, foreign", "cpu-ns/op"), []float64{1200, 1300}) ||
		!slices.Equal(s.Of("Valkey 9.1.2", "Client/keys=1", "redis_rate v10", "ops/s"), []float64{7}) {
		t.Errorf("%+v", s)
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
	if c := Sum(nil).Cells("%.0f"); !math.IsNaN(Sum(nil).Median) || !slices.Equal(c, []string{"-", "-"}) {
		t.Error("a figure that was not measured is", c)
	}
}

func TestFill(t *testing.T) {
	page := "a\n<!-- figures: x -->\nold\n<!-- end of figures -->\nb\n<!-- figures: y -->\nkept\n<!-- end of figures -->\n"
	want := "a\n<!-- figures: x -->\n1\n<!-- end of figures -->\nb\n<!-- figures: y -->\nkept\n<!-- end of figures -->\n"
	if got, err := Fill(page, map[string]string{"x": "1\n"}); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	for _, page := range []string{page, "<!-- figures: z -->\n"} {
		if _, err := Fill(page, map[string]string{"z": "3\n"}); err == nil {
			t.Errorf("no error for a block without a place or without its end in %q", page)
		}
	}
}

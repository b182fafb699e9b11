package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		t.Error("a file without figures gives no error")
	}
	if most, n, err := readAllocs(""); !math.IsNaN(most) || n != 0 || err != nil {
		t.Error("without a file nothing is measured", most, n, err)
	}
}

func TestResults(t *testing.T) {
	if s := spreadOf([]float64{5, 1, 2, 4}); s != (spread{3, 1, 5}) {
		t.Error(s)
	}
	on := newResults(nil, nil, []product{{"a", "A"}}).on[0]
	on.of["a"] = []figure{{cpu: 1}, {cpu: 9}, {cpu: 8}}
	on.of["b"] = []figure{{cpu: 2}, {cpu: 3}, {cpu: 4}}
	// The rounds' ratios are 0.5, 3, 2. The ratio of the medians is 8/3.
	if s := on.ratio("a", "b", cpuOf); s != (spread{2, 0.5, 3}) {
		t.Error(s)
	}
}

func TestRow_met(t *testing.T) {
	fast, slow, none := spread{1, 1, 1}, spread{2, 2, 2}, spreadOf(nil)
	for _, test := range []struct {
		target float64
		is     []spread
		want   string
	}{
		{1, []spread{fast}, "yes"},
		{1, []spread{slow}, "no"},
		{1, []spread{none}, "not measured"},
		{1, []spread{fast, fast}, "yes"},
		{1, []spread{fast, none}, "yes"},
		{1, []spread{slow, fast, slow}, "no: A, C"},
		{math.NaN(), []spread{fast}, ""},
	} {
		if got := (row{target: test.target, is: test.is}).met([]string{"A", "B", "C"}); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// The rows with targets are these, and no others.
func TestRows_targets(t *testing.T) {
	want := map[string]float64{
		"CPU, GO.THROTTLE / any module: and write":                                  1.15,
		"CPU, GO.THROTTLE denied / any module: and read, hot key":                   1.25,
		"CPU, GO.THROTTLE / GCRA in Lua":                                            0.33,
		"CPU, GO.THROTTLE / P of redis-cell":                                        0.78,
		"CPU, GO.THROTTLE denied / P of redis-cell denied":                          0.92,
		"CPU, GO.ALL 3 cells / 3 x GO.THROTTLE pipelined":                           0.63,
		"CPU, GO.WINDOW 10^6 / GO.WINDOW 100":                                       1.20,
		"CPU, GO.THROTTLE denied, counted / GO.THROTTLE denied":                     1.03,
		"CPU, GO.THROTTLE denied, all keys, counted / GO.THROTTLE denied, all keys": 1.03,
		"extra CPU on one CPU, GO.THROTTLE / SET PX":                                1.15,
		"extra CPU on one CPU, GO.THROTTLE denied / SET PX":                         1.15,
		"extra CPU on one CPU, GO.WINDOW 100 / SET PX":                              1.15,
		"extra CPU on one CPU, GO.QUOTA / SET PX":                                   1.15,
		"extra CPU on one CPU, GO.ALL 3 keys / SET PX":                              1.15,
		"Go allocations per call, the most of 0 benchmarks":                         0,
	}
	for _, row := range measured(contenders(&options{peer: "libredis_cell.so", peerCmd: "P {key}", peerDenied: "P {hot}"})).rows() {
		if math.IsNaN(row.target) {
			continue
		}
		if target, ok := want[row.what]; !ok || target != row.target {
			t.Errorf("%s has the target %v", row.what, row.target)
		}
		delete(want, row.what)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// Within a round each row goes through all servers in the order given.
func TestSchedule(t *testing.T) {
	var got []string
	for _, s := range schedule(2, 3, []string{"a", "b"}) {
		got = append(got, fmt.Sprintf("%d%s%d", s.round, s.row, s.server))
	}
	want := "0a0 0a1 0a2 0b0 0b1 0b2 1a0 1a1 1a2 1b0 1b1 1b2"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// Each figure is kept with the server on which it was measured. A slice that was disturbed
// is measured again, and another error names the row and the server.
func TestMeasureAll(t *testing.T) {
	r := newResults(nil, nil, []product{{"a", "A"}, {"b", "B"}})
	b := &bench{options: &options{}, ctx: context.Background()}
	name := func(row string) string { return row }
	failures := 0
	err := measureAll(b, r, "test", 2, []string{"x", "y"}, name, func(row string, on *figures) error {
		if failures == 0 {
			failures++
			return errDisturbed
		}
		on.tied[row] = append(on.tied[row], float64(on.name[0]))
		return nil
	})
	if err != nil || b.disturbed != 1 {
		t.Error(err, b.disturbed)
	}
	for i, on := range r.on {
		if v := float64('A' + i); !slices.Equal(on.tied["x"], []float64{v, v}) || !slices.Equal(on.tied["y"], []float64{v, v}) {
			t.Errorf("%s: %v", on.name, on.tied)
		}
	}
	err = measureAll(b, r, "test", 1, []string{"x"}, name, func(_ string, on *figures) error {
		if on.name == "B" {
			return errors.New("no")
		}
		return nil
	})
	if err == nil || err.Error() != "x on B: no" {
		t.Error(err)
	}
}

func TestProductName(t *testing.T) {
	for want, info := range map[string]map[string]string{
		"Redis 8.6.3":  {"redis_version": "8.6.3"},
		"Valkey 9.1.2": {"redis_version": "7.2.4", "valkey_version": "9.1.2"},
	} {
		if got := productName(info); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The report has a column for each server, in order, and leaves no placeholder behind.
func TestReport(t *testing.T) {
	o := newOptions()
	o.out, o.command = t.TempDir(), "make bench SERVER='a b'"
	r := measured(contenders(o))
	b := &bench{options: o}
	if err := b.report(r); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(o.out, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	for _, want := range []string{
		"Servers: Redis 8.6.3, Valkey 9.1.2.",
		"|  | target | Redis 8.6.3 | min..max | Valkey 9.1.2 | min..max | met |\n|---|---:|",
		"|  | Redis 8.6.3 | min..max | Valkey 9.1.2 | min..max |\n",
		"| PING | 1.05 | 1.00..1.10 | 2.10 | 2.00..2.20 |\n",
		"| GO.LEASE denied, 1 lease | 10.0 | 10.0..10.0 | 11.0 | 11.0..11.0 |\n",
		"### Redis 8.6.3\n\n|  | ops/s |",
		"### Valkey 9.1.2\n\n|  | ops/s |",
		"Plots of Redis 8.6.3:",
		"## Where the time goes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, name := range []string{"date", "machine", "servers", "first", "load", "command", "minutes", "rounds", "keys", "windows",
		"period", "calls", "fewercalls", "memorykeys", "note", "peer", "ratios", "cpu", "worst", "details"} {
		if strings.Contains(text, "{"+name+"}") {
			t.Errorf("the report still has {%s}", name)
		}
	}
}

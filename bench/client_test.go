package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The page shows the figures of the data beside this test.
func TestClient_pageShowsTheData(t *testing.T) {
	c, err := readClient(clientData)
	if err != nil {
		t.Fatal(err)
	}
	rows := len(c.rows)
	page, err := os.ReadFile("../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fillPage(string(page), c.blocks())
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(page) {
		t.Error("docs/go.md does not show bench/client.jsonl: run make bench-client")
	}
	if strings.Contains(filled, "NaN") {
		t.Error("a figure was not measured")
	}
	if len(c.rows) != rows {
		t.Errorf("the report looks for %v, which was not measured", *c.rows[rows])
	}
}

// The excess is that of the worst span of time, which need not be the whole time.
func TestExcessOf(t *testing.T) {
	p := pace{count: 10, period: time.Second, burst: 5}
	at := func(ms int64, units int64) admission { return admission{time.Duration(ms) * time.Millisecond, units} }
	for name, test := range map[string]struct {
		list []admission
		want float64
	}{
		"nothing":                  {nil, 0},
		"the burst":                {[]admission{at(0, 5)}, 0},
		"one above the burst":      {[]admission{at(0, 6)}, 1},
		"burst and rate":           {[]admission{at(0, 5), at(100, 1), at(200, 1)}, 0},
		"too early":                {[]admission{at(0, 5), at(50, 1)}, 0.5},
		"idle time is not saved":   {[]admission{at(0, 1), at(10_000, 7)}, 2},
		"the end of a long span":   {[]admission{at(0, 5), at(1000, 5), at(1000, 8)}, 8},
		"the order does not count": {[]admission{at(200, 1), at(0, 5), at(100, 1)}, 0},
	} {
		if got := excessOf(test.list, p); rounded(got) != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestTarget_met(t *testing.T) {
	for _, test := range []struct {
		median, bound float64
		atLeast       bool
		want          string
	}{
		{31, 30, true, "met"}, {30, 30, true, "met"}, {29.9, 30, true, "missed"},
		{0.02, 0.03, false, "met"}, {0.03, 0.03, false, "met"}, {0.031, 0.03, false, "missed"},
	} {
		target := target{bound: test.bound, atLeast: test.atLeast, is: spread{median: test.median}}
		if got := target.met(); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	if got := (target{bound: 1, is: spreadOf(nil)}).met(); got != "missed" {
		t.Errorf("a ratio that was not measured is %s", got)
	}
}

// Each goroutine asks for as many keys as the limiter's depth, and all answers are counted.
func TestAsks(t *testing.T) {
	b := &bench{ctx: context.Background()}
	l := limiter{ask: func(_ context.Context, keys []string) answer {
		time.Sleep(time.Millisecond)
		return answer{admitted: int64(len(keys)), failed: 1}
	}}
	told := make([]answer, 3)
	sum, took := b.asks(l, 2, 3, []string{"a", "b", "c"}, 10*time.Millisecond, func(g int, a answer) { told[g].add(a) })
	var want answer
	for g, a := range told {
		if a.failed == 0 || a.admitted != 2*a.failed {
			t.Errorf("goroutine %d: %+v", g, a)
		}
		want.add(a)
	}
	if sum != want || took < 10*time.Millisecond {
		t.Errorf("%+v in %s, want %+v", sum, took, want)
	}
}

// The first key of Zipf's law is the one that is asked for most.
func TestZipf(t *testing.T) {
	counts := map[string]int{}
	list := zipf(100)
	for _, key := range list {
		counts[key]++
	}
	if counts["k0"] < 2*counts["k2"] || counts["k99"] == 0 || len(counts) != 100 {
		t.Error(counts)
	}
	if !slices.Equal(list, zipf(100)) {
		t.Error("another order")
	}
}

package cgo_test

import (
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// deny fills k and denies a call, which begins a lockout of these seconds.
func deny(seconds string, pause int64) func(*fakehost.Host) {
	return run(pause, "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60 1 LOCKOUT "+seconds)
}

// lockedCells makes k a hash of n cells, each with a lockout of one more second.
func lockedCells(n int) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		cells(n)(h)
		for i := range n {
			h.PutField("k", strconv.Itoa(128+i), tat(h, 1_000_000_000))
		}
	}
}

// A transcript shows no API calls: a limiter without a lockout costs no look-up for one. A locked one costs a look-up for each lockout
// more, and few to find out that there is nothing else.
func TestLockout_cost(t *testing.T) {
	hash := func(make func(*fakehost.Host)) func(*fakehost.Host) {
		return func(h *fakehost.Host) { make(h); h.Expire("k", h.Now()/1000+2000) }
	}
	all32 := "GO.ALL k" + strings.Repeat(" THROTTLE 15 30 60", 32)
	for _, row := range []struct {
		name    string
		before  func(*fakehost.Host)
		line    string
		lookUps int
	}{
		{"new", nil, "GO.THROTTLE k 15 30 60", 0},
		{"admitted", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60", 1},
		{"denied", run(0, "GO.THROTTLE k 15 30 60 16"), "GO.THROTTLE k 15 30 60", 1},
		{"read-only", run(0, "GO.THROTTLE k 15 30 60 16"), "GO.THROTTLE_RO k 15 30 60", 1},
		{"admitted, fraction", run(0, "GO.THROTTLE k 15 7 60"), "GO.THROTTLE k 15 7 60", 2},
		{"denied, fraction", run(0, "GO.THROTTLE k 15 7 60 16"), "GO.THROTTLE k 15 7 60", 2},
		{"GO.ALL, two cells", hash(cells(2)), "GO.ALL k THROTTLE 15 30 60 THROTTLE 15 30 60", 2},
		{"GO.ALL, two cells, fractions", run(0, "GO.ALL k THROTTLE 15 7 60 THROTTLE 15 7 60"), "GO.ALL k THROTTLE 15 7 60 THROTTLE 15 7 60", 4},
		{"GO.ALL, 32 cells", hash(cells(32)), all32, 32},
		{"two cells, one asked for", hash(cells(2)), "GO.THROTTLE k 15 30 60", 3},
		{"32 cells, one asked for", hash(cells(32)), "GO.THROTTLE k 15 30 60", 63},

		{"locked", deny("60", 0), "GO.THROTTLE k 15 30 60", 1},
		{"locked, fraction", run(0, "GO.THROTTLE k 15 7 60 16", "GO.THROTTLE k 15 7 60 1 LOCKOUT 60"), "GO.THROTTLE k 15 7 60", 2},
		{"locked, the first of two cells", hash(func(h *fakehost.Host) { cells(2)(h); h.PutField("k", "128", tat(h, second)) }), "GO.ALL k THROTTLE 0 30 60 THROTTLE 15 30 60", 2},
		{"locked, both cells", hash(lockedCells(2)), "GO.ALL k THROTTLE 0 30 60 THROTTLE 15 30 60", 7},
		{"locked, 32 cells", hash(lockedCells(32)), strings.ReplaceAll(all32, "15", "0"), 96},
		{"locked, 32 cells, one asked for", hash(lockedCells(32)), "GO.THROTTLE k 0 30 60", 96},
	} {
		h := loaded(t)
		if row.before != nil {
			row.before(h)
		}
		p := h.Prepare(strings.Fields(row.line)...)
		h.ResetAPICalls()
		p.Run()
		lookUps := h.APICallsOf("HashGet")
		if got := h.Reply(); got.Err != "" || lookUps != row.lookUps {
			t.Errorf("%s: %v with %d look-ups, want %d", row.name, got, lookUps, row.lookUps)
		}
		p.Free()
	}
}

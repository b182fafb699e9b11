package cgo_test

// No transcript shows API calls.

import (
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	foreign   = "ERR the hash at this key is not a rate limiter"
	damaged   = "ERR the rate limiter at this key is damaged"
)

// putCells makes the key k a hash of n cells with these values.
func putCells(h *fakehost.Host, n int, tat, period string) {
	h.Put("k", hashOf())
	for i := range n {
		h.PutField("k", strconv.Itoa(4*i), tat)
		h.PutField("k", strconv.Itoa(4*i+1), period)
	}
}

// lockedCells makes the key k a hash of n cells, the first of them with a lockout of one more second.
func lockedCells(n, locked int) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		putCells(h, n, tat(h, 1_000_000_000), "2")
		for i := range locked {
			h.PutField("k", strconv.Itoa(128+i), tat(h, 1_000_000_000))
		}
		h.Expire("k", h.Now()/1000+2000)
	}
}

// A limiter without a lockout costs no look-up for one. A locked one costs a look-up for each lockout more, and few to find out
// that there is nothing else. The module stops at the first cell that is absent, so a foreign hash costs no more. The server copies
// each value, however long: no further one is read after one that cannot be ours.
func TestHash_cost(t *testing.T) {
	withField := func(h *fakehost.Host) { h.Put("k", hashOf("0", tat(h, 1000), "1", "2", "x", "y")) }
	all32, long := "GO.ALL k"+strings.Repeat(" THROTTLE 15 30 60", 32), strings.Repeat("x", 512)
	for _, row := range []struct {
		name    string
		before  func(*fakehost.Host)
		line    string
		lookUps int
	}{
		{"admitted", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60", 1},
		{"denied, fraction", run(0, "GO.THROTTLE k 15 7 60 16"), "GO.THROTTLE k 15 7 60", 2},
		{"GO.ALL, 32 cells", lockedCells(32, 0), all32, 32},
		{"32 cells, one asked for", lockedCells(32, 0), "GO.THROTTLE k 15 30 60", 63},
		{"locked", lockedCells(1, 1), "GO.THROTTLE k 0 30 60", 1},
		{"locked, the first of two cells", lockedCells(2, 1), "GO.ALL k THROTTLE 0 30 60 THROTTLE 15 30 60", 2},
		{"locked, 32 cells", lockedCells(32, 32), strings.ReplaceAll(all32, "15", "0"), 96},
		{"locked, 32 cells, one asked for", lockedCells(32, 32), "GO.THROTTLE k 0 30 60", 96},
		{"foreign", withField, "GO.THROTTLE k 15 30 60", 4},
		{"foreign, long values", func(h *fakehost.Host) { putCells(h, 32, long, long) }, all32, 1},
		{"foreign, long values of cells that are not asked for", func(h *fakehost.Host) {
			putCells(h, 32, tat(h, 1_000_000_000), long)
			h.PutField("k", "1", "60")
		}, "GO.THROTTLE k 1 1 1", 3},
	} {
		h := loaded(t)
		row.before(h)
		h.ResetCounts()
		got := call(h, row.line)
		if n := h.Count(fakehost.LookUps); n != row.lookUps || strings.HasPrefix(got, "ERR ") != strings.HasPrefix(row.name, "foreign") {
			t.Errorf("%s: %v with %d look-ups, want %d", row.name, got, n, row.lookUps)
		}
	}
}

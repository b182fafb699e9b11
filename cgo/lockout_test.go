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

func TestLockout_effects(t *testing.T) {
	full := run(0, "GO.THROTTLE k 15 30 60 16")
	wantEffects(t, []effectRow{
		{"a lockout begins", full,
			"GO.THROTTLE k 15 30 60 1 LOCKOUT 60", "[1 16 0 60 60]", "HSET k 128 T+60000000000; PEXPIREAT k M+68000"},
		{"a lockout begins and the expiry is still good", full,
			"GO.THROTTLE k 15 30 60 1 LOCKOUT 36", "[1 16 0 36 36]", "HSET k 128 T+36000000000"},
		{"a lockout begins with a fraction", run(0, "GO.THROTTLE k 15 7 60 16"),
			"GO.THROTTLE k 15 7 60 1 LOCKOUT 200", "[1 16 0 200 200]", "HSET k 128 T+200000000000; PEXPIREAT k M+215000"},
		{"a lockout begins at another rate", full,
			"GO.THROTTLE k 15 60 60 1 LOCKOUT 60", "[1 16 0 60 60]", "HSET k 0 T+16000000000 1 1 128 T+60000000000; PEXPIREAT k M+64000"},
		{"a lockout begins at a rate without a fraction", run(0, "GO.THROTTLE k 15 7 60 7"),
			"GO.THROTTLE k 0 30 60 1 LOCKOUT 60", "[1 1 0 60 60]", "HSET k 0 T+14000000000 1 2 128 T+60000000000; HDEL k 2 3; PEXPIREAT k M+61000"},
		{"a lockout begins on redis-cell's string", adoptedUntil(3000),
			"GO.THROTTLE k 0 30 60 1 LOCKOUT 60", "[1 1 0 60 60]", "DEL k; HSET k 0 T+2500000000 1 2 128 T+60000000000; PEXPIREAT k M+61000"},
		{"a lockout mends an expiry", expire(fakehost.NoExpiry, "GO.THROTTLE k 15 30 60 16"),
			"GO.THROTTLE k 15 30 60 1 LOCKOUT 1", "[1 16 0 2 32]", "HSET k 128 T+1000000000; PEXPIREAT k M+40000"},
		{"none begins if the call is admitted", run(0, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 30 60 1 LOCKOUT 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"none begins if the quantity never fits", full, "GO.THROTTLE k 15 30 60 17 LOCKOUT 60", "[1 16 0 -1 32]", ""},
		{"none begins by a peek", run(0, "GO.THROTTLE k 15 30 60 17 FORCE"), "GO.THROTTLE k 15 30 60 0 LOCKOUT 60", "[1 16 0 2 34]", ""},
		{"none begins by a read-only call", full, "GO.THROTTLE_RO k 15 30 60 1 LOCKOUT 60", "[1 16 0 60 60]", ""},

		{"denied while locked", deny("60", second), "GO.THROTTLE k 15 30 60 1 LOCKOUT 60", "[1 16 0 59 59]", ""},
		{"peek while locked", deny("60", second), "GO.THROTTLE k 15 30 60 0", "[1 16 0 59 59]", ""},
		{"a changed rate while locked", deny("60", 2*second),
			"GO.THROTTLE k 15 60 60 1 LOCKOUT 90", "[1 16 0 58 58]", "HSET k 0 T+15000000000 1 1; PEXPIREAT k M+62000"},
		{"FORCE while locked", deny("60", 2*second), "GO.THROTTLE k 15 30 60 20 FORCE", "[0 16 0 -1 70]", "HSET k 0 T+70000000000; PEXPIREAT k M+78000"},
		{"refund to full while locked", deny("60", second), "GO.THROTTLE k 15 30 60 -99", "[0 16 0 -1 59]", "HSET k 0 T+0"},
		{"refund of nothing while locked", func(h *fakehost.Host) {
			deny("60", second)(h)
			call(h, "GO.THROTTLE k 15 30 60 -99")
		}, "GO.THROTTLE k 15 30 60 -99", "[0 16 0 -1 59]", ""},
		{"usage lasts longer than the lockout", run(second, "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60 1 LOCKOUT 5"),
			"GO.THROTTLE k 15 30 60 -2", "[0 16 0 -1 27]", "HSET k 0 T+27000000000; PEXPIREAT k M+35000"},

		{"admitted after the end", deny("10", 10*second), "GO.THROTTLE k 15 30 60", "[0 16 4 -1 24]", "HSET k 0 T+24000000000; HDEL k 128"},
		{"refund to full after the end", deny("10", 10*second), "GO.THROTTLE k 15 30 60 -16", "[0 16 16 -1 0]", "DEL k"},
		{"denied after the end", deny("10", 10*second), "GO.THROTTLE k 15 30 60 6", "[1 16 5 2 22]", ""},
		{"the next lockout", deny("10", 10*second), "GO.THROTTLE k 15 30 60 6 LOCKOUT 90", "[1 16 0 90 90]", "HSET k 128 T+90000000000; PEXPIREAT k M+98000"},
		{"expired", deny("60", 68_001*1000), "GO.THROTTLE k 15 30 60 0", "[0 16 16 -1 0]", "DEL k"},

		// Several cells.
		{"the second cell's lockout keeps the key", secondLocked, "GO.THROTTLE k 15 30 60 -9", "[0 16 16 -1 0]", "HSET k 0 T+0; PEXPIREAT k M+98000"},
		{"the second cell's lockout denies", secondLocked, "GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 3", "[1 10 0 90 90 1 [0 16 14 -1 4] [1 10 0 90 90]]", ""},
		{"the first cell's lockout beside the second's", secondLocked,
			"GO.THROTTLE k 0 30 60 1 LOCKOUT 99", "[1 1 0 99 99]", "HSET k 128 T+99000000000; PEXPIREAT k M+100000"},
		{"FORCE writes both cells", secondLocked, "GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 3 FORCE",
			"[0 10 0 -1 90 1 [0 16 13 -1 6] [0 10 0 -1 90]]", "HSET k 0 T+6000000000 4 T+8000000000; PEXPIREAT k M+91000"},
		{"a lapsed lockout of the second cell", func(h *fakehost.Host) {
			h.PutHash("k", "0", tat(h, 4_000_000_000), "1", "2", "4", tat(h, 5_000_000_000), "5", "3", "129", tat(h, 0))
		}, "GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 3", "[0 10 7 -1 8 1 [0 16 13 -1 6] [0 10 7 -1 8]]",
			"HSET k 0 T+6000000000 4 T+8000000000; HDEL k 129; PEXPIREAT k M+9000"},
		{"a gap beside a lockout", deny("60", 0), "GO.ALL k THROTTLE 15 30 60 0 THROTTLE 9 1 2 0 THROTTLE 9 1 1 FORCE",
			"[0 16 0 -1 60 0 [0 16 0 -1 60] [0 10 10 -1 0] [0 10 9 -1 1]]", "HSET k 4 T+0 5 2 8 T+1000000000 9 1; PEXPIREAT k M+61000"},
	})
}

// secondLocked makes k a hash of two cells, the second of which is locked for 90 s more.
func secondLocked(h *fakehost.Host) {
	h.PutHash("k", "0", tat(h, 4_000_000_000), "1", "2", "4", tat(h, 5_000_000_000), "5", "3", "129", tat(h, 90_000_000_000))
}

// A hash with a lockout that no call could have begun is an error for every call, and stays.
func TestLockout_foreign(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(*fakehost.Host)
		want   string
	}{
		{"a text", hashOf("0", "T", "1", "2", "128", "soon"), damaged},
		{"an empty text", hashOf("0", "T", "1", "2", "128", ""), damaged},
		{"a plus sign", hashOf("0", "T", "1", "2", "128", "+1800000000000000000"), damaged},
		{"past 63 bits", hashOf("0", "T", "1", "2", "128", "9223372036854775808"), damaged},
		{"before 2001", hashOf("0", "T", "1", "2", "128", "999999999999999999"), damaged},
		{"negative", hashOf("0", "T", "1", "2", "128", "-1800000000000000000"), damaged},
		{"with a fraction, a text", hashOf("0", "T", "1", "60", "2", "3", "3", "7", "128", "x"), damaged},
		{"of the second cell, a text", hashOf("0", "T", "1", "2", "4", "T", "5", "2", "129", "x"), damaged},
		{"of both cells, the second a text", hashOf("0", "T", "1", "2", "4", "T", "5", "2", "128", "T", "129", "x"), damaged},
		{"a lockout alone", hashOf("128", "T"), foreign},
		{"without the second cell", hashOf("0", "T", "1", "2", "129", "T"), foreign},
		{"of both, without the second cell", hashOf("0", "T", "1", "2", "128", "T", "129", "T"), foreign},
		{"without the third cell", hashOf("0", "T", "1", "2", "130", "T"), foreign},
		{"two cells, without the third", hashOf("0", "T", "1", "2", "4", "T", "5", "2", "130", "T"), foreign},
		{"of half a cell", hashOf("0", "T", "128", "T"), foreign},
		{"of no cell", hashOf("0", "T", "1", "2", "160", "T"), foreign},
		{"and a field too many", hashOf("0", "T", "1", "2", "128", "T", "x", "1"), foreign},
		{"32 cells and one field too many", func(h *fakehost.Host) { lockedCells(32)(h); h.PutField("k", "160", tat(h, 0)) }, foreign},
		{"the last of 32 cells, a text", func(h *fakehost.Host) { lockedCells(32)(h); h.PutField("k", "159", "x") }, damaged},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			row.before(h)
			h.Expire("k", h.Now()/1000+100)
			wantUntouched(t, h, row.want, "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 0", "GO.THROTTLE k 15 30 60 -1", "CL.THROTTLE k 15 30 60",
				"GO.THROTTLE k 15 30 60 9 FORCE", "GO.THROTTLE k 0 30 60 1 LOCKOUT 9", "GO.THROTTLE_RO k 15 30 60 1 RESERVE 9",
				"GO.ALL k THROTTLE 15 30 60 0 THROTTLE 15 30 60", "GO.ALL k THROTTLE 15 30 60 0 THROTTLE 15 30 60 0 THROTTLE 15 30 60 FORCE")
		})
	}
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

// A limiter without a lockout costs no look-up for one. A locked one costs a look-up for each lockout
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

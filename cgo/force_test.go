package cgo_test

import (
	"strings"
	"testing"
)

func TestForce_effects(t *testing.T) {
	wantEffects(t, []effectRow{
		{"a new limiter in debt", nil, "GO.THROTTLE k 0 30 60 9 FORCE", "[0 1 0 -1 18]", "HSET k 0 T+18000000000 1 2; PEXPIREAT k M+19000"},
		{"debt", run(0, "GO.THROTTLE k 15 30 60 16"), "GO.THROTTLE k 15 30 60 9 FORCE", "[0 16 0 -1 50]", "HSET k 0 T+50000000000; PEXPIREAT k M+58000"},
		{"debt with a fraction", run(0, "GO.THROTTLE k 1 7 60 2"), "GO.THROTTLE k 1 7 60 2 FORCE", "[0 2 0 -1 35]", "HSET k 0 T+34285714285 2 5; PEXPIREAT k M+38571"},
		{"debt at another rate", run(0, "GO.THROTTLE k 15 30 60 16"), "GO.THROTTLE k 15 60 60 1 FORCE", "[0 16 0 -1 17]", "HSET k 0 T+17000000000 1 1; PEXPIREAT k M+21000"},
		{"debt on redis-cell's string", adoptedUntil(3000), "GO.THROTTLE k 0 30 60 9 FORCE", "[0 1 0 -1 21]", "DEL k; HSET k 0 T+20500000000 1 2; PEXPIREAT k M+21500"},
		{"a peek in debt", run(0, "GO.THROTTLE k 0 30 60 9 FORCE"), "GO.THROTTLE k 0 30 60 0 FORCE", "[0 1 0 -1 18]", ""},
		{"denied in debt", run(0, "GO.THROTTLE k 0 30 60 9 FORCE"), "GO.THROTTLE k 0 30 60", "[1 1 0 18 18]", ""},
		{"read-only in debt", run(0, "GO.THROTTLE k 0 30 60 9 FORCE"), "GO.THROTTLE_RO k 0 30 60 9 FORCE", "[0 1 0 -1 36]", ""},
		{"debt given back", run(0, "GO.THROTTLE k 0 30 60 9 FORCE"), "GO.THROTTLE k 0 30 60 -9 FORCE", "[0 1 1 -1 0]", "DEL k"},
		{"too long", run(0, "GO.THROTTLE k 0 30 60 9 FORCE"), "GO.THROTTLE k 0 1 3153600000 1 FORCE", "ERR what is in use would take more than 100 years to drain", ""},

		{"all: every limit is charged or given back", run(0, "GO.ALL k THROTTLE 0 30 60 KEY l WINDOW 1 60 KEY m QUOTA 5 60 5"),
			"GO.ALL k THROTTLE 0 30 60 8 KEY l WINDOW 1 60 8 KEY m QUOTA 5 60 -3 FORCE", "[0 1 0 -1 18 0 [0 1 0 -1 18] [0 1 0 -1 60] [0 5 3 -1 60]]",
			"HSET k 0 T+18000000000; PEXPIREAT k M+19000; ZADD l -U+0 ^A9:9; ZREM l ^A1; SET m 2@T+60000000000 KEEPTTL"},
		{"all: too much at one of the keys", run(0, "GO.ALL k THROTTLE 0 30 60 KEY l WINDOW 1 60"),
			"GO.ALL l WINDOW 1 60 8 KEY k THROTTLE 0 1 3153600000 FORCE", "ERR what is in use would take more than 100 years to drain", ""},
		{"all: with a lease", nil, "GO.ALL k THROTTLE 0 30 60 KEY l LEASE 1 60 a FORCE", "ERR FORCE cannot be combined with a LEASE clause", ""},
	})
}

func TestReserve_effects(t *testing.T) {
	queued := run(0, "GO.THROTTLE k 0 30 60 1 RESERVE 9", "GO.THROTTLE k 0 30 60 1 RESERVE 9")
	wantEffects(t, []effectRow{
		{"at once", nil, "GO.THROTTLE k 0 30 60 1 RESERVE 9", "[0 1 0 -1 2 0]", "HSET k 0 T+2000000000 1 2; PEXPIREAT k M+3000"},
		{"a slot", queued, "GO.THROTTLE k 0 30 60 1 RESERVE 4", "[0 1 0 -1 6 4]", "HSET k 0 T+6000000000; PEXPIREAT k M+7000"},
		{"a slot with a fraction", run(0, "GO.THROTTLE k 0 7 60"), "GO.THROTTLE k 0 7 60000 1 MS RESERVE 9000", "[0 1 0 -1 17143 8572]",
			"HSET k 0 T+17142857142 2 6; PEXPIREAT k M+19285"},
		{"no slot", queued, "GO.THROTTLE k 0 30 60 1 RESERVE 3", "[1 1 0 1 4 -1]", ""},
		{"no slot at another rate", queued, "GO.THROTTLE k 0 60 60 1 RESERVE 1", "[1 1 0 1 2 -1]", "HSET k 0 T+2000000000 1 1; PEXPIREAT k M+3000"},
		{"never", queued, "GO.THROTTLE k 0 30 60 2 RESERVE 99", "[1 1 0 -1 4 -1]", ""},
		{"peek", queued, "GO.THROTTLE k 0 30 60 0 RESERVE 99", "[1 1 0 2 4 -1]", ""},
		{"read-only", queued, "GO.THROTTLE_RO k 0 30 60 1 RESERVE 99", "[0 1 0 -1 6 4]", ""},
		{"cancelled", queued, "GO.THROTTLE k 0 30 60 -1 RESERVE 99", "[0 1 0 -1 2 0]", "HSET k 0 T+2000000000; PEXPIREAT k M+3000"},
		{"all cancelled", queued, "GO.THROTTLE k 0 30 60 -2 RESERVE 0", "[0 1 1 -1 0 0]", "DEL k"},
		{"a slot on redis-cell's string", adoptedUntil(3000), "GO.THROTTLE k 0 30 60 1 RESERVE 9", "[0 1 0 -1 5 3]",
			"DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+5500"},
		{"while locked", run(0, "GO.THROTTLE k 0 30 60", "GO.THROTTLE k 0 30 60 1 LOCKOUT 9"), "GO.THROTTLE k 0 30 60 1 RESERVE 99", "[1 1 0 9 9 -1]", ""},
	})
}

// However many forced calls there are, a window has at most 121 entries, whatever its limit, and a
// call costs no more than it does in a new window.
func TestForce_bounded(t *testing.T) {
	calls := rounds(100_000)
	h := loaded(t)
	forced := h.Prepare(strings.Fields("GO.WINDOW k 5 60 3 FORCE")...)
	defer forced.Free()
	for range calls {
		forced.Run()
		h.Advance(3 * 60 * second / int64(calls))
	}
	if got, want := h.Reply().String(), "[0 5 0 -1 60]"; got != want {
		t.Errorf("a forced call: %s, want %s", got, want)
	}
	if n := len(h.ZsetOf("k")); n < 100 || n > 121 {
		t.Errorf("%d entries", n)
	}
	h.ResetAPICalls()
	forced.Run()
	if n := h.APICalls(); n > 60 {
		t.Errorf("%d API calls", n)
	}
	wantReply(t, h, "GO.WINDOW k 5 60 0", "[1 5 0 60 60]")
}

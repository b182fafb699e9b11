package cgo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// Clauses of the rows. A unit of A drains in 2 s, of B in 1 s, of C in 6 s.
const (
	clauseA = " THROTTLE 15 30 60"
	clauseB = " THROTTLE 9 60 60"
	clauseC = " THROTTLE 4 10 60"
)

func TestAll_throttle(t *testing.T) {
	twoCells := run(0, "GO.ALL k"+clauseA+clauseC)
	wantEffects(t, []effectRow{
		{"one clause", nil, "GO.ALL k" + clauseA, "[0 16 15 -1 2 0 [0 16 15 -1 2]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"it is GO.THROTTLE's", run(0, "GO.THROTTLE k 15 30 60"),
			"GO.ALL k" + clauseA, "[0 16 14 -1 4 0 [0 16 14 -1 4]]", "HSET k 0 T+4000000000"},
		{"two keys", nil, "GO.ALL k" + clauseA + " KEY l" + clauseB + " 2", "[0 10 8 -1 2 1 [0 16 15 -1 2] [0 10 8 -1 2]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000; HSET l 0 T+2000000000 1 1; PEXPIREAT l M+4500"},
		{"three keys in milliseconds", nil, "GO.ALL m THROTTLE 0 1 10 KEY k THROTTLE 0 1 20 KEY l THROTTLE 0 1 30 ms",
			"[0 1 0 -1 10 0 [0 1 0 -1 10] [0 1 0 -1 20] [0 1 0 -1 30]]",
			"HSET m 0 T+10000000 1 -10000000; PEXPIREAT m M+1010; HSET k 0 T+20000000 1 -20000000; PEXPIREAT k M+1020; " +
				"HSET l 0 T+30000000 1 -30000000; PEXPIREAT l M+1030"},
		{"two clauses of a key are two cells", nil, "GO.ALL k" + clauseA + clauseC, "[0 5 4 -1 6 1 [0 16 15 -1 2] [0 5 4 -1 6]]",
			"HSET k 0 T+2000000000 1 2 4 T+6000000000 5 6; PEXPIREAT k M+13500"},
		{"the expiry is as exact as the smallest window asks for", nil, "GO.ALL k" + clauseB + clauseA,
			"[0 10 9 -1 1 0 [0 10 9 -1 1] [0 16 15 -1 2]]",
			"HSET k 0 T+1000000000 1 1 4 T+2000000000 5 2; PEXPIREAT k M+4500"},
		{"one of them again", twoCells, "GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"with a fraction", nil, "GO.ALL k THROTTLE 15 7 60 THROTTLE 15 7 60 2", "[0 16 14 -1 18 1 [0 16 15 -1 9] [0 16 14 -1 18]]",
			"HSET k 0 T+8571428571 1 60 2 3 3 7 4 T+17142857142 5 60 6 6 7 7; PEXPIREAT k M+32143"},
		{"from a fraction to none in the second cell", run(0, "GO.ALL k THROTTLE 15 7 60 THROTTLE 15 7 60 2"),
			"GO.ALL k THROTTLE 15 7 60 0" + clauseA, "[0 16 13 -1 6 1 [0 16 15 -1 9] [0 16 13 -1 6]]",
			"HSET k 4 T+6000000000 5 2; HDEL k 6 7; PEXPIREAT k M+16572"},
		{"a gap is filled with a void cell", nil, "GO.ALL k" + clauseA + " 0" + clauseC, "[0 5 4 -1 6 1 [0 16 16 -1 0] [0 5 4 -1 6]]",
			"HSET k 0 T+0 1 2 4 T+6000000000 5 6; PEXPIREAT k M+13500"},
		{"a gap of two, one with a fraction", nil, "GO.ALL k THROTTLE 15 7 60 0 THROTTLE 1 1 1 0" + clauseC,
			"[0 2 2 -1 0 1 [0 16 16 -1 0] [0 2 2 -1 0] [0 5 4 -1 6]]",
			"HSET k 0 T+0 1 60 2 0 3 7 4 T+0 5 1 8 T+6000000000 9 6; PEXPIREAT k M+13500"},
		{"one given back, one taken", run(0, "GO.THROTTLE l 9 60 60 3"), "GO.ALL l" + clauseB + " -2 KEY k" + clauseA,
			"[0 10 9 -1 1 0 [0 10 9 -1 1] [0 16 15 -1 2]]",
			"HSET l 0 T+1000000000; PEXPIREAT l M+3500; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"one given back to full", run(0, "GO.THROTTLE l 9 60 60 3"), "GO.ALL l" + clauseB + " -3 KEY k" + clauseA,
			"[0 10 10 -1 0 0 [0 10 10 -1 0] [0 16 15 -1 2]]", "DEL l; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"one of two cells given back", twoCells, "GO.ALL k" + clauseA + " 0" + clauseC + " -1",
			"[0 5 5 -1 0 1 [0 16 15 -1 2] [0 5 5 -1 0]]", "HSET k 4 T+0; PEXPIREAT k M+9500"},
		{"both given back", twoCells, "GO.ALL k" + clauseA + " -1" + clauseC + " -9",
			"[0 5 5 -1 0 1 [0 16 16 -1 0] [0 5 5 -1 0]]", "DEL k"},
		{"nothing given back of nothing", nil, "GO.ALL k" + clauseA + " -1 KEY l" + clauseB + " -1",
			"[0 10 10 -1 0 1 [0 16 16 -1 0] [0 10 10 -1 0]]", ""},
		{"nothing given back of a cell that is absent", run(0, "GO.THROTTLE k 15 30 60"), "GO.ALL k" + clauseA + " 0" + clauseC + " -1",
			"[0 5 5 -1 0 1 [0 16 15 -1 2] [0 5 5 -1 0]]", ""},
		{"nothing given back of each kind", run(2*second, "GO.ALL k"+clauseA+clauseC+" KEY l QUOTA 9 1 KEY m WINDOW 9 1"),
			"GO.ALL k" + clauseA + " -1" + clauseC + " 0 KEY l QUOTA 9 1 -1 KEY m WINDOW 9 1 -1",
			"[0 5 4 -1 4 1 [0 16 16 -1 0] [0 5 4 -1 4] [0 9 9 -1 0] [0 9 9 -1 0]]", ""},
		{"redis-cell's string among them", func(h *fakehost.Host) { h.PutString("k", tat(h, 2_500_000_000)) },
			"GO.ALL k" + clauseA + " KEY l" + clauseB, "[0 10 9 -1 1 1 [0 16 13 -1 5] [0 10 9 -1 1]]",
			"DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500; HSET l 0 T+1000000000 1 1; PEXPIREAT l M+3500"},
		{"the second cell of redis-cell's string is a new limiter", func(h *fakehost.Host) { h.PutString("k", tat(h, 10_000_000_000)) },
			"GO.ALL k" + clauseA + clauseA, "[0 16 10 -1 12 0 [0 16 10 -1 12] [0 16 15 -1 2]]",
			"DEL k; HSET k 0 T+12000000000 1 2 4 T+2000000000 5 2; PEXPIREAT k M+20000"},
		{"a peek at the first cell does not forget redis-cell's usage", func(h *fakehost.Host) { h.PutString("k", tat(h, 10_000_000_000)) },
			"GO.ALL k" + clauseA + " 0" + clauseA, "[0 16 11 -1 10 0 [0 16 11 -1 10] [0 16 15 -1 2]]",
			"DEL k; HSET k 0 T+10000000000 1 2 4 T+2000000000 5 2; PEXPIREAT k M+18000"},
	})
}

// A call is limited if one clause is. The decider is the limited clause with the longest wait in its reply,
// or the clause with the least remaining. Nothing is taken by a limited call.
func TestAll_limited(t *testing.T) {
	full := run(0, "GO.THROTTLE l 9 60 60 10")
	wantEffects(t, []effectRow{
		{"one of two denies", full, "GO.ALL k" + clauseA + " KEY l" + clauseB, "[1 10 0 1 10 1 [0 16 16 -1 0] [1 10 0 1 10]]", ""},
		{"the longest wait decides", run(0, "GO.THROTTLE l 9 60 60 10", "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE m 4 10 60 5"),
			"GO.ALL l" + clauseB + " 5 KEY k" + clauseA + " KEY m" + clauseC,
			"[1 5 0 6 30 2 [1 10 0 5 10] [1 16 0 2 32] [1 5 0 6 30]]", ""},
		{"the first of equals", run(0, "GO.THROTTLE l 9 60 60 10", "GO.THROTTLE k 15 30 60 16"),
			"GO.ALL m" + clauseC + " KEY l" + clauseB + " 2 KEY k" + clauseA,
			"[1 10 0 2 10 1 [0 5 5 -1 0] [1 10 0 2 10] [1 16 0 2 32]]", ""},
		{"equal in seconds, not in microseconds", run(200_000, "GO.THROTTLE l 9 60 60 10", "GO.QUOTA k 1 1"),
			"GO.ALL k QUOTA 1 1 KEY l" + clauseB, "[1 1 0 1 1 0 [1 1 0 1 1] [1 10 0 1 10]]", ""},
		{"never is the longest", full, "GO.ALL k" + clauseA + " KEY l" + clauseB + " KEY m" + clauseC + " 6",
			"[1 5 5 -1 0 2 [0 16 16 -1 0] [1 10 0 1 10] [1 5 5 -1 0]]", ""},
		{"the first of two nevers", full, "GO.ALL m" + clauseC + " 6 KEY k" + clauseA + " 17 KEY l" + clauseB,
			"[1 5 5 -1 0 0 [1 5 5 -1 0] [1 16 16 -1 0] [1 10 0 1 10]]", ""},
		{"what would have been taken or given back is not", run(0, "GO.THROTTLE l 9 60 60 10", "GO.THROTTLE k 15 30 60 3"),
			"GO.ALL k" + clauseA + " -2 KEY l" + clauseB + " KEY m" + clauseC + " 4",
			"[1 10 0 1 10 1 [0 16 13 -1 6] [1 10 0 1 10] [0 5 5 -1 0]]", ""},
		{"denied by the second cell", run(0, "GO.ALL k"+clauseA+clauseC+" 5"),
			"GO.ALL k" + clauseA + clauseC, "[1 5 0 6 30 1 [0 16 15 -1 2] [1 5 0 6 30]]", ""},
		{"denied at a new rate: the one that denies is rewritten", full,
			"GO.ALL k" + clauseA + " KEY l THROTTLE 9 30 60", "[1 10 0 2 20 1 [0 16 16 -1 0] [1 10 0 2 20]]",
			"HSET l 0 T+20000000000 1 2; PEXPIREAT l M+25000"},
		{"denied at a new rate: the one that admits is not rewritten", run(0, "GO.THROTTLE l 9 60 60 10", "GO.THROTTLE k 9 60 60 5"),
			"GO.ALL k" + clauseA + " KEY l" + clauseB, "[1 10 0 1 10 1 [0 16 11 -1 10] [1 10 0 1 10]]", ""},
		{"a refund above a lowered limit admits", run(0, "GO.THROTTLE l 9 60 60 10", "GO.QUOTA k 5 60 5"),
			"GO.ALL k QUOTA 2 60 -1 KEY l" + clauseB, "[1 10 0 1 10 1 [0 2 0 -1 60] [1 10 0 1 10]]", ""},

		{"the least remaining decides", nil, "GO.ALL k" + clauseA + " KEY l QUOTA 3 60 KEY m WINDOW 3 60",
			"[0 3 2 -1 60 1 [0 16 15 -1 2] [0 3 2 -1 60] [0 3 2 -1 60]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000; SET l 1@T+60000000000 PXAT M+75000; ZADD m -U+0 ^A1; PEXPIREAT m M+75000"},
		{"peek", full, "GO.ALL k" + clauseA + " 0 KEY l" + clauseB + " 0", "[0 10 0 -1 10 1 [0 16 16 -1 0] [0 10 0 -1 10]]", ""},
		{"peek with a lowered limit", full, "GO.ALL k" + clauseA + " 0 KEY l THROTTLE 8 60 60 0", "[1 9 0 1 10 1 [0 16 16 -1 0] [1 9 0 1 10]]", ""},
	})
}

// Each kind of clause in one call: with the words, the state, the effects and the reply of its own
// command.
func TestAll_kinds(t *testing.T) {
	const line = "GO.ALL k" + clauseA + " KEY l QUOTA 10 60 2 ALIGN 0 KEY m WINDOW 500 60 3 EXACT KEY n LEASE 5 60 a"
	used := run(second, line)
	wantEffects(t, []effectRow{
		{"all admitted", nil, line, "[0 5 4 -1 60 3 [0 16 15 -1 2] [0 10 8 -1 60] [0 500 497 -1 60] [0 5 4 -1 60 0]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000; SET l 2@T+60000000000 PXAT M+75000; " +
				"ZADD m -U+0 ^A3:3; PEXPIREAT m M+75000; ZADD n -U+60000000 ^Ba; PEXPIREAT n M+75000"},
		{"again", used, line, "[0 5 4 -1 60 3 [0 16 14 -1 3] [0 10 6 -1 59] [0 500 494 -1 60] [0 5 4 -1 60 1]]",
			"HSET k 0 T+3000000000; SET l 4@T+59000000000 KEEPTTL; ZADD m -U+0 ^A6:3; ZADD n -U+60000000 ^Ba"},
		{"denied by the quota: nothing is renewed or taken", used, strings.Replace(line, "60 2 ALIGN", "60 9 ALIGN", 1),
			"[1 10 8 59 59 1 [0 16 15 -1 1] [1 10 8 59 59] [0 500 497 -1 59] [0 5 4 -1 59 1]]", ""},
		{"denied by the lease", used, strings.Replace(line, "LEASE 5 60 a", "LEASE 1 60 b", 1),
			"[1 1 0 59 59 3 [0 16 15 -1 1] [0 10 8 -1 59] [0 500 497 -1 59] [1 1 0 59 59 0]]", ""},
		{"denied by the window", used, strings.Replace(line, "WINDOW 500 60 3", "WINDOW 5 60 3", 1),
			"[1 5 2 59 59 2 [0 16 15 -1 1] [0 10 8 -1 59] [1 5 2 59 59] [0 5 4 -1 59 1]]", ""},
		{"a new holder beside a clause that denies has taken nothing", used, strings.Replace(strings.Replace(line, "60 2 ALIGN", "60 9 ALIGN", 1), "60 a", "60 b", 1),
			"[1 10 8 59 59 1 [0 16 15 -1 1] [1 10 8 59 59] [0 500 497 -1 59] [0 5 4 -1 59 0]]", ""},
		{"refunds of all", used, "GO.ALL k" + clauseA + " -1 KEY l QUOTA 10 60 -2 KEY m WINDOW 500 60 -3",
			"[0 10 10 -1 0 1 [0 16 16 -1 0] [0 10 10 -1 0] [0 500 500 -1 0]]", "DEL k; DEL l; DEL m"},
		{"a lapsed lease is removed although another clause denies", run(60*second, "GO.LEASE k 5 60 a"),
			"GO.ALL k LEASE 5 60 b KEY l QUOTA 1 1 2", "[1 1 1 -1 0 1 [0 5 5 -1 0 0] [1 1 1 -1 0]]", "ZREM k ^Ba"},
		{"its own lapsed lease as well", run(60*second, "GO.LEASE k 5 60 a"),
			"GO.ALL k LEASE 5 60 a KEY l QUOTA 1 1 2", "[1 1 1 -1 0 1 [0 5 5 -1 0 0] [1 1 1 -1 0]]", "ZREM k ^Ba"},
		{"milliseconds for all kinds", nil, "GO.ALL k THROTTLE 1 1 10 KEY l QUOTA 9 500 1 ALIGN 100 KEY m WINDOW 9 700 KEY n LEASE 9 800 a MS",
			"[0 2 1 -1 10 0 [0 2 1 -1 10] [0 9 8 -1 100] [0 9 8 -1 700] [0 9 8 -1 800 0]]",
			"HSET k 0 T+10000000 1 -10000000; PEXPIREAT k M+1010; SET l 1@T+100000000 PXAT M+1100; " +
				"ZADD m -U+0 ^A1; PEXPIREAT m M+1700; ZADD n -U+800000 ^Ba; PEXPIREAT n M+1800"},
		{"ids that are keywords", nil, "GO.ALL n LEASE 9 60 KEY KEY l LEASE 9 60 MS KEY k LEASE 9 60 -1",
			"[0 9 8 -1 60 0 [0 9 8 -1 60 0] [0 9 8 -1 60 0] [0 9 8 -1 60 0]]",
			"ZADD n -U+60000000 ^BKEY; PEXPIREAT n M+75000; ZADD l -U+60000000 ^BMS; PEXPIREAT l M+75000; ZADD k -U+60000000 ^B-1; PEXPIREAT k M+75000"},
	})
}

// An error in one clause or at one key leaves all keys as they are.
func TestAll_errors(t *testing.T) {
	full := run(0, "GO.THROTTLE l 9 60 60 10")
	for _, row := range []effectRow{
		{"a bad word in the second clause", full, "GO.ALL k" + clauseA + " KEY l THROTTLE 9 60 x", "ERR period is not an integer", ""},
		{"a bad word in the first clause", full, "GO.ALL k THROTTLE -1 30 60 KEY l THROTTLE 9 60 x", "ERR max_burst must be between 0 and 999999999999", ""},
		{"a window too long", full, "GO.ALL k" + clauseA + " KEY l THROTTLE 999999999999 1 60",
			"ERR (max_burst + 1) x period / count must not exceed 100 years", ""},
		{"an option of others", full, "GO.ALL k" + clauseA + " UPTO", "ERR unknown option 'UPTO'", ""},
		{"a word too many", full, "GO.ALL k" + clauseA + " 1 1", "ERR unknown option '1'", ""},
		{"an option twice", full, "GO.ALL k" + clauseA + " 1 MS ms", "ERR option 'ms' given more than once", ""},
		{"EXACT twice", full, "GO.ALL k WINDOW 1 1 EXACT exact", "ERR option 'exact' given more than once", ""},
		{"EXACT of another kind", full, "GO.ALL k QUOTA 1 1 EXACT", "ERR unknown option 'EXACT'", ""},
		{"ALIGN without offset", full, "GO.ALL k QUOTA 1 1 ALIGN", "ERR ALIGN needs an offset", ""},
		{"no clause", full, "GO.ALL k MS 1 1", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'MS'", ""},
		{"no clause after a key", full, "GO.ALL k" + clauseA + " KEY l", "ERR wrong number of arguments for 'go.all' command", ""},
		{"KEY at the end", full, "GO.ALL k" + clauseA + " KEY", "ERR wrong number of arguments for 'go.all' command", ""},
		{"a word of a clause is missing", full, "GO.ALL k" + clauseA + " KEY l LEASE 1 60", "ERR wrong number of arguments for 'go.all' command", ""},
		{"a key twice", full, "GO.ALL k" + clauseA + " KEY k" + clauseA, "ERR a key may be named only once", ""},
		{"two kinds at a key", full, "GO.ALL k" + clauseA + " QUOTA 1 1", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone", ""},
		{"a foreign key among them", leaderboard, "GO.ALL l" + clauseA + " KEY k" + clauseB, wrongType, ""},
		{"a window that holds no window", leaderboard, "GO.ALL l" + clauseA + " KEY k WINDOW 1 1", foreignWindow, ""},
		{"leases that are none", leaderboard, "GO.ALL l QUOTA 1 1 KEY k LEASE 1 1 a", foreignLeases, ""},
		{"a foreign hash among them", hashOf("0", "T", "x", "1"), "GO.ALL l" + clauseA + " KEY k" + clauseB + " KEY m" + clauseC, foreign, ""},
		{"a damaged second cell", hashOf("0", "T", "1", "2", "4", "T", "5", "x"), "GO.ALL l" + clauseA + " KEY k" + clauseB, damaged, ""},
		{"a cell that nobody asked for is damaged", hashOf("0", "T", "1", "2", "4", "T", "5", "-1", "8", "T", "9", "0"),
			"GO.ALL k" + clauseA + " 0" + clauseB + " 0", damaged, ""},
		{"a gap in a hash", hashOf("4", "T", "5", "2"), "GO.ALL k" + clauseA + clauseB, foreign, ""},
		{"a foreign member that a refund finds last", func(h *fakehost.Host) {
			run(0, "GO.WINDOW k 10 60 5", "GO.QUOTA l 10 60 5")(h)
			h.PutMember("k", -7, "alice")
		}, "GO.ALL l QUOTA 10 60 -5 KEY k WINDOW 10 60 -5", foreignWindow, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			row.before(h)
			wantUntouched(t, h, row.reply, row.line)
			wantUntouched(t, h, strings.Replace(row.reply, "'go.all'", "'go.all_ro'", 1), strings.Replace(row.line, "GO.ALL", "GO.ALL_RO", 1))
		})
	}
}

// An expiry covers all cells of its key, whichever of them a call uses.
func TestAll_expiry(t *testing.T) {
	h := loaded(t)
	call(h, "GO.ALL k THROTTLE 9 10 1 THROTTLE 99 100 3600 50 THROTTLE 999 1000 86400")
	latest := h.Now()/1000 + 50*36_000 // the second cell's end, ms
	for range 200 {
		h.Advance(50_000)
		got := call(h, "GO.THROTTLE k 9 10 1")
		if got.Ints() == nil {
			t.Fatal(got)
		}
		if at := h.ExpireOf("k"); at < latest || at > latest+900_000 {
			t.Fatalf("the key expires at %d, its second cell is in use until %d", at, latest)
		}
	}
	// All three cells are void soon. Then a refund of nothing leaves the key, and a refund of all removes it.
	h.Expire("k", latest+100_000)
	h.Advance(50 * 36 * second)
	wantReply(t, h, "GO.THROTTLE k 9 10 1 0", "[0 10 10 -1 0]")
	if got := len(h.HashOf("k")); got != 6 {
		t.Errorf("%d fields", got)
	}
	before := h.Dump()
	wantReply(t, h, "GO.THROTTLE k 9 10 1 -1", "[0 10 10 -1 0]")
	wantNothing(t, h, "a refund of nothing", before)
	call(h, "GO.THROTTLE k 9 10 1")
	wantReply(t, h, "GO.THROTTLE k 9 10 1 -1", "[0 10 10 -1 0]")
	if h.TypeOf("k") != "none" {
		t.Errorf("left %q", h.Dump())
	}
}

// A call may have 32 clauses: on one key, on 32 keys or on any number between. The fake host
// checks each call for leaks. With 33 clauses or keys the call is an error and opens no key.
func TestAll_32(t *testing.T) {
	for distinct := 1; distinct <= 32; distinct++ {
		h := loaded(t)
		keys := []string{"key0"}
		for i := 1; i < distinct; i++ {
			keys = append(keys, fmt.Sprint("key", i))
		}
		line := "GO.ALL " + strings.Join(keys, clauseA+" KEY ") + strings.Repeat(clauseA, 33-distinct)
		for i := range 17 {
			r := copyOf(h, keys...)
			got := call(h, line).String()
			if i == 16 {
				if !strings.HasPrefix(got, "[1 16 0 2 32 0 [1 16 0 2 32]") || h.Effects() != nil {
					t.Errorf("%d keys: %s", distinct, got)
				}
				break
			}
			inner := fmt.Sprintf("0 16 %d -1 %d", 15-i, 2*i+2)
			if got != "["+inner+" 0"+strings.Repeat(" ["+inner+"]", 32)+"]" {
				t.Errorf("%d keys, call %d: %s", distinct, i, got)
			}
			r.follow(t, h, "32", keys...)
		}
		before := h.Dump()
		opened, _ := h.Opened()
		for _, more := range []string{clauseA, " KEY other" + clauseA} {
			wantUntouched(t, h, "ERR at most 32 clauses", line+more)
		}
		if now, _ := h.Opened(); now != opened {
			t.Errorf("%d keys were opened", now-opened)
		}
		r := copyOf(h, keys...)
		got := call(h, strings.ReplaceAll(line, clauseA, clauseA+" -16"))
		if len(h.Dump()) != 0 {
			t.Errorf("%v left %q of %q", got, h.Dump(), before)
		}
		r.follow(t, h, "refund", keys...)
	}
}

// The keys may hold more cells than the call uses. The module then takes memory from the server.
func TestAll_furtherCells(t *testing.T) {
	h := loaded(t)
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
		call(h, "GO.ALL "+keys[i]+strings.Repeat(clauseA, i+1))
	}
	line := "GO.ALL " + strings.Join(keys, clauseA+" KEY ") + clauseA
	for i := range 5 {
		r := copyOf(h, keys...)
		if got := call(h, line).String(); !strings.HasPrefix(got, fmt.Sprintf("[0 16 %d -1 ", 14-i)) {
			t.Error(got)
		}
		r.follow(t, h, "further", keys...)
	}
	h.PutField("key15", "64", "5") // the TAT of a 17th cell, without its period
	wantUntouched(t, h, foreign, line)
}

// The keys that the module tells the server are the keys that it opens, whatever the words look
// like. Otherwise the server would check the wrong keys for ACL and cluster. The fake host reports a
// fault if the module opens any other key.
func TestAll_keys(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		words string
		want  []string
	}{
		{"a QUOTA 1 1", []string{"a"}},
		{"a QUOTA 1 1 KEY b QUOTA 1 1", []string{"a", "b"}},
		{"KEY QUOTA 1 1 KEY MS QUOTA 1 1 KEY THROTTLE WINDOW 1 1 MS", []string{"KEY", "MS", "THROTTLE"}},
		{"a THROTTLE 1 1 1 THROTTLE 1 1 1 2 KEY 1 WINDOW 1 1 EXACT key QUOTA LEASE 1 1 KEY KEY b LEASE 1 1 MS ms", []string{"a", "1", "QUOTA", "b"}},
		{"a QUOTA 1 1 ALIGN 5 KEY b QUOTA 1 1 3 align 2 KEY c WINDOW 1 1 1", []string{"a", "b", "c"}},
		{"a QUOTA x y KEY b QUOTA 1 1", []string{"a", "b"}}, // an error, but the keys are clear
		{"a QUOTA 1 1 KEY", nil}, {"a QUOTA 1 1 KEY b", nil}, {"a QUOTA 1", nil}, {"a LIMIT 1 1 1", nil},
		{"a QUOTA 1 1 KEY a QUOTA 1 1", nil}, {"a QUOTA 1 1 WINDOW 1 1", nil}, {"a QUOTA 1 1 x", nil},
	} {
		for _, name := range []string{"GO.ALL", "go.all_ro"} {
			words := append([]string{name}, strings.Fields(row.words)...)
			if got := h.Keys(words...); !slices.Equal(got, row.want) {
				t.Errorf("%q: keys %q, want %q", words, got, row.want)
			}
			before, _ := h.Opened()
			got := h.Call(words...)
			opened, _ := h.Opened()
			if n := opened - before; n != len(row.want) {
				t.Errorf("%q: reply %v, opened %d keys", words, got, n)
			}
		}
	}
	binary := "\x00 \r\n" + strings.Repeat("\xff", 1000)
	if got := h.Keys("GO.ALL", "", "QUOTA", "1", "1", "KEY", binary, "QUOTA", "1", "1"); !slices.Equal(got, []string{"", binary}) {
		t.Errorf("keys %q", got)
	}
	for _, line := range []string{"GO.WINDOW k 1 1", "GO.LEASE k 1 1 KEY", "GO.RELEASE k KEY l"} {
		if got := h.Keys(strings.Fields(line)...); !slices.Equal(got, []string{"k"}) {
			t.Errorf("%s: keys %q", line, got)
		}
	}
}

// A listener that hears the event of one key may make a call on any key of the first call: all keys are
// closed by then. Both calls take full effect.
func TestAll_reentrance(t *testing.T) {
	const three = "GO.ALL k" + clauseA + " KEY l" + clauseA + " KEY m" + clauseA
	for _, inner := range []string{
		three, "GO.THROTTLE l 15 30 60 -16", "GO.THROTTLE m 15 30 60 99", "GO.ALL k" + clauseA + clauseA + clauseA,
		"GO.WINDOW w 10 60", "GO.LEASE s 10 60 a", "GO.QUOTA q 10 60", "GO.ALL l" + clauseA + " -1 THROTTLE 1 1 x", "GO.WINDOW k 10 60",
	} {
		h := loaded(t)
		heard := 0
		h.Listen(func(e fakehost.Event) {
			heard++
			if open := h.Alive()[1]; open != 0 {
				t.Errorf("%v: %d keys are open", e, open)
			}
			call(h, inner)
		})
		all := []string{"k", "l", "m", "w", "s", "q"}
		r := copyOf(h, all...)
		wantReply(t, h, three, "[0 16 15 -1 2 0 [0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2]]")
		if heard != 6 {
			t.Errorf("%s: heard %d events", inner, heard)
		}
		for _, w := range h.EffectWords() {
			if _, err := r.apply(w); err != nil {
				t.Errorf("%s: %v", inner, err)
			}
		}
		if got, want := fmt.Sprint(flat(r)), fmt.Sprint(flat(copyOf(h, all...))); got != want {
			t.Errorf("%s: the replica holds %v, the server %v", inner, got, want)
		}
	}
}

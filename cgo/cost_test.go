package cgo_test

// No transcript shows what a call costs the server.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// The bounds of this file, in steps of the server: see fakehost.Steps. They are derived as follows.
//
// A word that is an id of GO.RELEASE costs 2 steps, to look up and to remove its member, and 4 in the search for the latest
// lease that stays: an entry is read, and the walk goes on. Of each id the score is read, too.
//
// A clause, or a call of a command with one key, costs at most
//
//   - 3 for each of the 128 entries that it reads and clears away: read the entry, go on, remove the entry,
//   - 3 for each of the 60 look-ups by which it finds the entry that a wait depends on. A period has
//     less than 2^52 microseconds, and each look-up halves the time that is left,
//   - 60 for the rest: the key, the newest and the oldest entry, the id, the rank.
//
// A clause with cells has no entries. Each of at most 32 cells costs 10: five fields are read and five written. That is less:
// see TestCost_steps. GO.INFO reads 32 cells, or 128 holders.
const (
	stepsPerWord   = 7
	stepsPerClause = 3*128 + 3*60 + 60
)

// hostile is a state that makes badly written code walk. size is about how many elements it has.
type hostile struct {
	name  string
	make  func(h *fakehost.Host, size int)
	size  int      // the test also uses a tenth of it
	lines []string // SIZE and HALF are replaced by numbers
	more  int      // how many steps more a state of ten times the size may cost
	extra int      // how many steps more than other states it may cost
}

// Four look-ups more find an entry among ten times as many: 2^4 > 10.
const fourLookups = 4 * 3

// The wait of a share bisects a log, by four turns more in one of ten times the size, of few look-ups each.
const fourTurns = 4 * fourLookups

var hostiles = []hostile{
	{"lapsed leases", func(h *fakehost.Host, size int) {
		v := slots(h, size, -1)
		v.Add(scored(-float64(h.Now()+1000*second), "\x02live"))
		h.Put("k", v)
	}, 3000, []string{
		"GO.LEASE k 1000000000 60 a", "GO.LEASE k 1 60 a", "GO.LEASE k 1 60 live", "GO.LEASE k 1 60 7", "GO.LEASE_RO k 1 60 a",
		"GO.RELEASE k live", "GO.RELEASE k 1 2 3", "GO.ALL k LEASE 1 60 a", "GO.ALL_RO k LEASE 9 60 a",
		"GO.ALL k LEASE 1000000000 60 a KEY l LEASE 1 60 a KEY q QUOTA 1 1 2"}, 0, 0},
	{"live leases", func(h *fakehost.Host, size int) { h.Put("k", slots(h, size, 1000*second)) }, 3000, []string{
		"GO.LEASE k 100 60 a", "GO.LEASE k 1 60 a", "GO.LEASE k SIZE 60 a", "GO.LEASE k HALF 60 a", "GO.LEASE_RO k 100 60 a",
		"GO.LEASE k 100 60 5", "GO.LEASE k 100 1 5", "GO.RELEASE k 5", "GO.RELEASE k 0 1 2 3 4 5 6 7 8 9",
		"GO.ALL k LEASE 100 60 a", "GO.ALL k LEASE 100 60 5 KEY l LEASE 100 60 a"}, 0, 0},
	{"live leases of a tenant", func(h *fakehost.Host, size int) { h.Put("k", slots(h, size, 1000*second)) }, 3000, []string{
		"GO.ALL q LEASE 10 60 a KEY k LEASE 1000000 60 a SHARE 1", "GO.ALL q LEASE SIZE 60 a KEY k LEASE 1000000 60 a SHARE 1"}, fourTurns, 0},
	// Of each of 1024 lapsed leases, two members are read, looked up or removed, and perhaps the slots of the last ones counted.
	{"lapsed leases of several slots", func(h *fakehost.Host, size int) { h.Put("k", severalSlots(h, size, -1)) }, 20_000, []string{
		"GO.LEASE k 1000000000 60 a 3", "GO.LEASE k 1 60 a 0", "GO.LEASE_RO k 1 60 a", "GO.ALL q QUOTA 9 9 0 KEY k LEASE 9 60 a SHARE 1",
		"GO.RELEASE k 1 2 3", "GO.INFO k", "GO.ALL k RELEASE a", "GO.ALL l LEASE 1 1 a KEY k LEASE 1 1 a"}, 0, 10 * 1024},
	{"live leases of several slots", func(h *fakehost.Host, size int) { h.Put("k", severalSlots(h, size, 1000*second)) }, 20_000, []string{
		"GO.LEASE k 1000000000 60 a 3", "GO.LEASE k 9 60 a 9", "GO.LEASE k SIZE 60 1 2", "GO.INFO k", "GO.RELEASE k 1 2 3",
		"GO.ALL k RELEASE 7", "GO.ALL q QUOTA 9 9 0 KEY k LEASE 1000000 60 a SHARE 1"}, 0, 4 * 128},
	{"a full EXACT window", fullWindow, 3000, windowCalls, fourLookups, 0},
	{"a full EXACT window of a tenant", fullWindow, 3000, []string{
		"GO.ALL q THROTTLE 9 10 60 KEY k WINDOW 1000000000 60 SHARE 1", "GO.ALL q THROTTLE HALF SIZE 1d KEY k WINDOW 1000000000 60 HALF SHARE 1",
		"GO.ALL k WINDOW SIZE 60 KEY q QUOTA HALF 60 SHARE 1000", "GO.ALL q WINDOW 9 60 KEY k WINDOW SIZE 60 SHARE 2 KEY r WINDOW 9 60 9 SHARE 1"}, fourTurns, 0},
	{"a window with half given back", func(h *fakehost.Host, size int) {
		fullWindow(h, size)
		h.Call("GO.WINDOW", "k", strconv.Itoa(size), "60", "-"+strconv.Itoa(size/2))
	}, 3000, windowCalls, fourLookups, 0},
	{"a lapsed window", func(h *fakehost.Host, size int) {
		fullWindow(h, size)
		h.Advance(61 * second)
	}, 3000, windowCalls, fourLookups, 0},
	{"many ids with one beginning", func(h *fakehost.Host, size int) {
		h.Put("k", many(size, func(i int) member {
			return scored(-float64(h.Now()+1_000_000_000-int64(i)), "\x02"+longID(i))
		}))
	}, 20_000, []string{releaseOf(0, 1024), releaseOf(500, 1024), releaseOf(0, 1) + strings.Repeat(" "+longID(7), 1023)}, 0, 0},
	{"32 lapsed windows and leases", func(h *fakehost.Host, size int) {
		for i := range 16 {
			fillWindow(h, fmt.Sprint("key", i), size)
			h.Put(fmt.Sprint("key", 16+i), slots(h, size, second))
		}
		h.Advance(61 * second)
	}, 3000, []string{"GO.ALL key0 WINDOW 5 60" + manyKeys(1, 15, " WINDOW 5 60") + manyKeys(16, 16, " LEASE 5 60 a"),
		"GO.ALL key0 WINDOW 5 60 -9" + manyKeys(1, 15, " WINDOW 5 60 -9") + manyKeys(16, 15, " LEASE 5 60 a") + " KEY q QUOTA 1 1 2"}, 0, 0},
	{"a foreign sorted set", foreignSet, 3000, append([]string{"GO.RELEASE k player1"}, windowCalls...), 0, 0},
	{"a foreign sorted set with one entry of ours in front", func(h *fakehost.Host, size int) {
		foreignSet(h, size)
		v := h.Get("k")
		v.Add(scored(-float64(h.Now()), "\x011"))
		h.Put("k", v)
	}, 3000, windowCalls, 0, 0},
}

var windowCalls = []string{
	"GO.WINDOW k SIZE 60", "GO.WINDOW k SIZE 60 HALF", "GO.WINDOW k SIZE 60 SIZE", "GO.WINDOW k 10 60", "GO.WINDOW k HALF 60 3 EXACT",
	"GO.WINDOW k SIZE 60 HALF UPTO", "GO.WINDOW k 1000000000 60 1000000000 UPTO EXACT", "GO.WINDOW k SIZE 60 0",
	"GO.WINDOW k SIZE 60 -1", "GO.WINDOW k SIZE 60 -HALF", "GO.WINDOW k SIZE 60 -SIZE", "GO.WINDOW k SIZE 60 -1000000000000",
	"GO.WINDOW k SIZE 60 HALF FORCE", "GO.WINDOW k 1 60 SIZE FORCE EXACT", "GO.WINDOW k SIZE 1 1 MS FORCE",
	"GO.WINDOW k SIZE 1 1 MS", "GO.WINDOW k SIZE 3153600000 HALF", "GO.WINDOW_RO k SIZE 60 HALF", "GO.WINDOW_RO k SIZE 60 -SIZE",
	"GO.WINDOW k SIZE 60 HALF RAISE", "GO.WINDOW k 1 60 1000000000000 RAISE EXACT",
	"GO.ALL k WINDOW SIZE 60 HALF", "GO.ALL k WINDOW SIZE 60 -SIZE", "GO.ALL k WINDOW SIZE 60 -SIZE KEY q QUOTA 1 1 2",
}

// severalSlots makes a sorted set of leases of two slots each.
func severalSlots(h *fakehost.Host, size int, lapse int64) *memory.Value {
	v := slots(h, size, lapse)
	counts := many(size, func(i int) member { return scored(2, fmt.Sprint("\x03", i)) })
	v.Set = append(append(v.Set, scored(0, "\x04")), counts.Set...)
	return v
}

func foreignSet(h *fakehost.Host, size int) {
	h.Put("k", many(size, func(i int) member { return scored(float64(i), fmt.Sprint("player", i)) }))
}

// fullWindow makes k a window of one unit in each of size entries, spread over half a minute.
func fullWindow(h *fakehost.Host, size int) { fillWindow(h, "k", size) }

func fillWindow(h *fakehost.Host, key string, size int) {
	h.Put(key, many(size, func(i int) member {
		return scored(-float64(h.Now()-int64(i)*30*second/int64(size)), "\x01"+strconv.FormatInt(int64(size-i), 36))
	}))
}

func longID(i int) string { return strings.Repeat("x", 506) + fmt.Sprintf("%06d", i) }

// releaseOf returns a GO.RELEASE of n ids.
func releaseOf(first, n int) string {
	words := []string{"GO.RELEASE k"}
	for i := range n {
		words = append(words, longID(first+i))
	}
	return strings.Join(words, " ")
}

// No call of any command costs more steps than a small multiple of its words, whatever state the
// call meets, and none costs more in a state of ten times the size.
func TestCost(t *testing.T) {
	for _, s := range hostiles {
		t.Run(s.name, func(t *testing.T) {
			lines := s.lines
			for _, c := range commands.Table {
				if testing.Short() {
					break // to make the state for each of them takes 2 s
				}
				lines = append(lines[:len(lines):len(lines)], strings.ReplaceAll(corpus.Samples[c.Name].Call, "KEY", "k"))
			}
			for _, line := range lines {
				small, large := costOf(t, &s, line, s.size/10), costOf(t, &s, line, s.size)
				if large > small+s.more {
					t.Errorf("%.60s: %d steps, %d in a state of a tenth of the size", line, large, small)
				}
				words := strings.Fields(line)
				clauses := 0
				for _, word := range words[2:] {
					if word == "THROTTLE" || word == "WINDOW" || word == "QUOTA" || word == "LEASE" {
						clauses++
					}
				}
				if most := stepsPerWord*len(words) + stepsPerClause*max(clauses, 1) + s.extra; large > most {
					t.Errorf("%.60s: %d steps, want at most %d", line, large, most)
				}
			}
		})
	}
}

// putCells makes a key a hash of n cells with these values, the first of them with a lockout of one more second.
func putCells(h *fakehost.Host, key string, n, locked int, values ...string) {
	v := hashOf()
	for i := range n {
		for field, value := range values {
			v.SetField(strconv.Itoa(4*i+field), value)
		}
	}
	for i := range locked {
		v.SetField(strconv.Itoa(128+i), tat(h, 1_000_000_000))
	}
	h.Put(key, v)
}

func lockedCells(n, locked int) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		putCells(h, "k", n, locked, tat(h, 1_000_000_000), "2")
		h.Expire("k", h.Now()/1000+2000)
	}
}

// The costs of calls, in steps. A limiter without a lockout costs no look-up for one. A locked one costs a look-up for each lockout
// more, and few to find out that there is nothing else. The module stops at the first cell that is absent, so a foreign hash
// costs no more. The server copies each value and each member, however long: no further one is read after one that cannot be
// ours.
func TestCost_steps(t *testing.T) {
	all32, long := "GO.ALL k"+strings.Repeat(" THROTTLE 15 30 60", 32), strings.Repeat("x", 512)
	for _, row := range []struct {
		name   string
		before func(*fakehost.Host)
		line   string
		steps  int
	}{
		{"admitted", calls("GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60", 4},
		{"denied, fraction", calls("GO.THROTTLE k 15 7 60 16"), "GO.THROTTLE k 15 7 60", 5},
		{"GO.ALL, 32 cells", lockedCells(32, 0), all32, 97},
		{"32 cells, one asked for", lockedCells(32, 0), "GO.THROTTLE k 15 30 60", 128},
		{"locked", lockedCells(1, 1), "GO.THROTTLE k 0 30 60", 4},
		{"locked, the first of two cells", lockedCells(2, 1), "GO.ALL k THROTTLE 0 30 60 THROTTLE 15 30 60", 7},
		{"locked, 32 cells", lockedCells(32, 32), strings.ReplaceAll(all32, "15", "0"), 161},
		{"locked, 32 cells, one asked for", lockedCells(32, 32), "GO.THROTTLE k 0 30 60", 161},
		{"locked, 32 cells of 32 keys", func(h *fakehost.Host) {
			for i := range 32 {
				putCells(h, fmt.Sprint("key", i), 32, 32, tat(h, 1_000_000_000), "60", "1", "7")
			}
		}, "GO.ALL key0 THROTTLE 15 7 60" + manyKeys(1, 31, " THROTTLE 15 7 60") + " FORCE", 5247},
		{"foreign", func(h *fakehost.Host) { h.Put("k", hashOf("0", tat(h, 1000), "1", "2", "x", "y")) }, "GO.THROTTLE k 15 30 60", 9},
		{"foreign, long values", func(h *fakehost.Host) { putCells(h, "k", 32, 0, long, long) }, all32, 3},
		{"foreign, long values of cells that are not asked for", func(h *fakehost.Host) {
			putCells(h, "k", 32, 0, tat(h, 1_000_000_000), long)
			v := h.Get("k")
			v.SetField("1", "60")
			h.Put("k", v)
		}, "GO.THROTTLE k 1 1 1", 7},
		{"foreign, long members", func(h *fakehost.Host) {
			v := zsetOf()
			for i := range 32 {
				v.Add(scored(float64(i), "\x01"+long+fmt.Sprintf("%02d", i)))
				v.Add(scored(-float64(h.Now()+int64(i)), "\x01"+strconv.Itoa(i)))
			}
			h.Put("k", v)
		}, "GO.WINDOW k 1000 60", 7},
	} {
		h := loaded(t)
		row.before(h)
		h.ResetCounts()
		got := call(h, row.line)
		if n := h.Count(fakehost.Steps); n != row.steps || strings.HasPrefix(got, "ERR ") != strings.HasPrefix(row.name, "foreign") {
			t.Errorf("%s: %v in %d steps, want %d", row.name, got, n, row.steps)
		}
	}
}

func calls(line string) func(*fakehost.Host) { return func(h *fakehost.Host) { call(h, line) } }

// costOf returns the steps of a call that meets a hostile state.
func costOf(t *testing.T, s *hostile, line string, size int) int {
	t.Helper()
	h := loaded(t)
	s.make(h, size)
	if h.Get("k") != nil {
		h.Expire("k", h.Now()/1000+10_000_000)
	}
	line = strings.NewReplacer("SIZE", strconv.Itoa(size), "HALF", strconv.Itoa(size/2)).Replace(line)
	h.ResetCounts()
	h.Call(strings.Fields(line)...)
	return h.Count(fakehost.Steps)
}

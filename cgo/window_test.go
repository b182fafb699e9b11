package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

func TestWindow_effects(t *testing.T) {
	wantEffects(t, []effectRow{
		{"a new key gets its entry and its expiry", nil,
			"GO.WINDOW k 10 60", "[0 10 9 -1 60]", "ZADD k -U+0 ^A1; PEXPIREAT k M+75000"},
		{"several units", nil,
			"GO.WINDOW k 10 60 4", "[0 10 6 -1 60]", "ZADD k -U+0 ^A4:4; PEXPIREAT k M+75000"},
		{"milliseconds", nil,
			"GO.WINDOW k 10 500 MS", "[0 10 9 -1 500]", "ZADD k -U+0 ^A1; PEXPIREAT k M+1500"},
		{"a later call adds an entry; the expiry is good", run(3*second, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2"},
		{"the expiry moves once it is too early", run(16*second, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2; PEXPIREAT k M+75000"},
		{"the same instant shares an entry", run(0, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60 3", "[0 10 6 -1 60]", "ZADD k -U+0 ^A4:4; ZREM k ^A1"},
		{"base 36", run(0, "GO.WINDOW k 1000 60 35"),
			"GO.WINDOW k 1000 60", "[0 1000 964 -1 60]", "ZADD k -U+0 ^A10:10; ZREM k ^Az:z"},
		{"a large limit: the same part of the period shares", run(400_000, "GO.WINDOW k 121 60"),
			"GO.WINDOW k 121 60", "[0 121 119 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1"},
		{"a large limit: the next part of the period gets an entry of its own", run(500_000, "GO.WINDOW k 121 60"),
			"GO.WINDOW k 121 60", "[0 121 119 -1 60]", "ZADD k -U+0 ^A2"},
		{"EXACT never shares", run(400_000, "GO.WINDOW k 121 60"),
			"GO.WINDOW k 121 60 exact", "[0 121 119 -1 60]", "ZADD k -U+0 ^A2"},
		{"EXACT shares at the same instant", run(0, "GO.WINDOW k 121 60"),
			"GO.WINDOW k 121 60 EXACT", "[0 121 119 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1"},
		{"a small limit never shares", run(400_000, "GO.WINDOW k 120 60"),
			"GO.WINDOW k 120 60", "[0 120 118 -1 60]", "ZADD k -U+0 ^A2"},
		{"the last instant of an entry", run(60*second-1, "GO.WINDOW k 10 60", "GO.WINDOW k 10 60 2"),
			"GO.WINDOW k 10 60", "[0 10 6 -1 60]", "ZADD k -U+0 ^A4; PEXPIREAT k M+75001"},
		{"at the end of the period", run(60*second, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 10 60", "[0 10 9 -1 60]", "ZADD k -U+0 ^A4; ZREM k ^A3:3; PEXPIREAT k M+75000"},
		{"what lapsed goes, and what lives stays", func(h *fakehost.Host) {
			run(30*second, "GO.WINDOW k 10 60")(h)
			run(20*second, "GO.WINDOW k 10 60")(h)
			run(25*second, "GO.WINDOW k 10 60")(h)
		}, "GO.WINDOW k 10 60", "[0 10 7 -1 60]", "ZADD k -U+0 ^A4; ZREM k ^A1; PEXPIREAT k M+75000"},
		{"a longer period starts from what is kept", run(70*second, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 10 100", "[0 10 6 -1 100]", "ZADD k -U+0 ^A4; PEXPIREAT k M+125000"},

		{"UPTO takes what is left", run(second, "GO.WINDOW k 10 60 7"),
			"GO.WINDOW k 10 60 5 UPTO", "[0 10 0 59 60 3]", "ZADD k -U+0 ^Aa:3"},
		{"UPTO of nothing left", run(second, "GO.WINDOW k 10 60 10"),
			"GO.WINDOW k 10 60 5 UPTO", "[1 10 0 59 59 0]", ""},

		{"a refund takes from the oldest", run(second, "GO.WINDOW k 10 60 7"),
			"GO.WINDOW k 10 60 -2", "[0 10 5 -1 59]", "ZADD k -U-1000000 ^A7:7:5; ZREM k ^A7:7"},
		{"a refund with UPTO tells what it gave", run(second, "GO.WINDOW k 10 60 7"),
			"GO.WINDOW k 10 60 -2 UPTO", "[0 10 5 -1 59 -2]", "ZADD k -U-1000000 ^A7:7:5; ZREM k ^A7:7"},
		{"a refund of whole entries clears them", func(h *fakehost.Host) {
			run(second, "GO.WINDOW k 10 60 3")(h)
			run(second, "GO.WINDOW k 10 60 2")(h)
		}, "GO.WINDOW k 10 60 -3", "[0 10 8 -1 59]", "ZADD k -U-1000000 ^A5:2:2; ZREM k ^A5:2"},
		{"the next call clears what was given back", func(h *fakehost.Host) {
			run(second, "GO.WINDOW k 10 60 3")(h)
			run(second, "GO.WINDOW k 10 60 2", "GO.WINDOW k 10 60 -3")(h)
		}, "GO.WINDOW k 10 60", "[0 10 7 -1 60]", "ZADD k -U+0 ^A6:1:3; ZREM k ^A3:3"},
		{"refund to full leaves no key", run(second, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 10 60 -3", "[0 10 10 -1 0]", "DEL k"},
		{"refund of more than is in use", run(second, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 10 60 -9 UPTO", "[0 10 10 -1 0 -3]", "DEL k"},
		{"refund of what has lapsed", run(60*second, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 10 60 -9 UPTO", "[0 10 10 -1 0 0]", ""},
		{"refund of nothing", nil,
			"GO.WINDOW k 10 60 -3", "[0 10 10 -1 0]", ""},

		{"denied", run(second, "GO.WINDOW k 10 60 10"), "GO.WINDOW k 10 60", "[1 10 0 59 59]", ""},
		{"denied until the second entry leaves", func(h *fakehost.Host) {
			run(second, "GO.WINDOW k 10 60 3")(h)
			run(second, "GO.WINDOW k 10 60 7")(h)
		}, "GO.WINDOW k 10 60 4", "[1 10 0 59 59]", ""},
		{"denied where there is more to clear", run(60*second+1, "GO.WINDOW k 10 60 3"),
			"GO.WINDOW k 2 60 3", "[1 2 2 -1 0]", ""},
		{"more than ever fits", run(second, "GO.WINDOW k 10 60"), "GO.WINDOW k 10 60 11", "[1 10 9 -1 59]", ""},
		{"peek", run(second, "GO.WINDOW k 10 60"), "GO.WINDOW k 10 60 0", "[0 10 9 -1 59]", ""},
		{"peek with a lowered limit", run(second, "GO.WINDOW k 10 60 10"), "GO.WINDOW k 5 60 0", "[1 5 0 59 59]", ""},
		{"peek at nothing", nil, "GO.WINDOW k 10 60 0", "[0 10 10 -1 0]", ""},
		{"peek at what has lapsed", run(61*second, "GO.WINDOW k 10 60 10"), "GO.WINDOW k 10 60 0", "[0 10 10 -1 0]", ""},
		{"error", run(second, "GO.WINDOW k 10 60"), "GO.WINDOW k 10 60 1 1", "ERR unknown option '1'", ""},
		{"too few words", nil, "GO.WINDOW k 10", "ERR wrong number of arguments for 'go.window' command", ""},

		{"PERSIST heals", expire(fakehost.NoExpiry, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1; PEXPIREAT k M+75000"},
		{"the earliest expiry that is right", expire(60_000, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1"},
		{"an EXPIRE too short heals", expire(59_999, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1; PEXPIREAT k M+75000"},
		{"an EXPIRE too long heals", expire(75_001, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 8 -1 60]", "ZADD k -U+0 ^A2:2; ZREM k ^A1; PEXPIREAT k M+75000"},
		{"a denied call leaves the user's expiry", expire(fakehost.NoExpiry, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60 10", "[1 10 9 60 60]", ""},
		{"expired", run(75_001_000, "GO.WINDOW k 10 60"),
			"GO.WINDOW k 10 60", "[0 10 9 -1 60]", "DEL k; ZADD k -U+0 ^A1; PEXPIREAT k M+75000"},
	})
}

// No call counts entries that have lapsed, however many there are. Each admitted call removes 128.
func TestWindow_manyLapsed(t *testing.T) {
	h := loaded(t)
	for range 1000 {
		call(h, "GO.WINDOW k 1000 1 EXACT")
		h.Advance(100)
	}
	if n := len(h.ZsetOf("k")); n != 1000 {
		t.Fatalf("%d entries", n)
	}
	h.Advance(second)
	before := h.Dump()
	wantReply(t, h, "GO.WINDOW k 1000 1 1001", "[1 1000 1000 -1 0]")
	wantNothing(t, h, "denied", before)
	for i := range 8 {
		r := copyOf(h, "k")
		wantReply(t, h, "GO.WINDOW k 1000 1", fmt.Sprintf("[0 1000 %d -1 1]", 999-i))
		if n, want := len(h.ZsetOf("k")), 1+max(0, 1000-128*(i+1)); n != want {
			t.Errorf("%d entries are left after call %d, want %d", n, i, want)
		}
		r.follow(t, h, "many", "k")
		h.Advance(1)
	}
}

// A refund of everything leaves a window of more than 128 entries, with nothing in use, until it
// expires. The next call that takes units clears 128 entries. A smaller window is deleted at once.
func TestWindow_refundToNothing(t *testing.T) {
	for _, n := range []int{1, 127, 128, 129, 300} {
		h := loaded(t)
		for range n {
			call(h, "GO.WINDOW k 1000 60 EXACT")
			h.Advance(100)
		}
		expiry := h.ExpireOf("k")
		r := copyOf(h, "k")
		wantReply(t, h, "GO.WINDOW_RO k 1000 60 -5000 UPTO", fmt.Sprintf("[0 1000 1000 -1 0 %d]", -n))
		wantReply(t, h, "GO.WINDOW k 1000 60 -5000 UPTO", fmt.Sprintf("[0 1000 1000 -1 0 %d]", -n))
		r.follow(t, h, "refund", "k")
		if n <= 128 {
			if h.TypeOf("k") != "none" {
				t.Errorf("%d entries: left %d", n, len(h.ZsetOf("k")))
			}
			continue
		}
		if left := len(h.ZsetOf("k")); left != n || h.ExpireOf("k") != expiry {
			t.Errorf("%d entries: left %d, until %d, was %d", n, left, h.ExpireOf("k"), expiry)
		}
		before := h.Dump()
		for _, line := range []string{"GO.WINDOW k 1000 60 -1 UPTO", "GO.WINDOW k 1000 60 0 UPTO"} {
			wantReply(t, h, line, "[0 1000 1000 -1 0 0]")
			wantNothing(t, h, line, before)
		}
		wantReply(t, h, "GO.WINDOW k 1000 60 1000 EXACT", "[0 1000 0 -1 60]")
		r.follow(t, h, "taken again", "k")
		if left := len(h.ZsetOf("k")); left != n+1-128 {
			t.Errorf("%d entries: left %d after the next call", n, left)
		}
		wantReply(t, h, "GO.WINDOW k 1000 60", "[1 1000 0 60 60]")
	}
}

// A window holds at most 121 entries at a large limit, and one entry per unit at a small one or
// with EXACT.
func TestWindow_entries(t *testing.T) {
	for _, row := range []struct {
		line string
		step int64
		most int
	}{
		{"GO.WINDOW k 1000000 1", 1037, 121}, {"GO.WINDOW k 120 1", 1037, 120}, {"GO.WINDOW k 121 1", 8301, 121},
		{"GO.WINDOW k 300 1 exact", 1037, 300},
	} {
		h := loaded(t)
		most := 0
		for range 3000 {
			call(h, row.line)
			most = max(most, len(h.ZsetOf("k")))
			h.Advance(row.step)
		}
		if most > row.most || most < row.most-1 {
			t.Errorf("%s: up to %d entries, want %d", row.line, most, row.most)
		}
	}
}

// A key's name may hold any bytes.
func TestWindow_binaryKey(t *testing.T) {
	h := loaded(t)
	key := "\x00 \r\n" + strings.Repeat("\xff", 1000)
	r := copyOf(h, key)
	if got := h.Call("GO.WINDOW", key, "10", "60").String(); got != "[0 10 9 -1 60]" {
		t.Error(got)
	}
	r.follow(t, h, "binary key", key)
}

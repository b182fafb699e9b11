package commands

import (
	"fmt"
	"testing"

	"gothrottle/funnel"
)

func TestWindow(t *testing.T) {
	s := converse(t, []step{
		// What fits fits, two calls at one instant are two, denied ones leave no trace.
		{0, "GO.WINDOW k 5 60", "0 5 4 -1 60"},
		{0, "GO.WINDOW k 5 60", "0 5 3 -1 60"},
		{10_000, "GO.WINDOW k 5 60 3", "0 5 0 -1 60"},
		{0, "GO.WINDOW k 5 60", "1 5 0 50 60"},
		{0, "GO.WINDOW k 5 60 3", "1 5 0 60 60"},
		{0, "GO.WINDOW k 5 60 6", "1 5 0 -1 60"},
		// A peek says the same and takes nothing; UPTO takes what is left and tells when one more unit fits.
		{0, "GO.WINDOW k 5 60 0", "0 5 0 -1 60"},
		{0, "GO.WINDOW k 6 60 9 UPTO", "0 6 0 50 60 1"},
		{0, "GO.WINDOW k 6 60 9 UPTO", "1 6 0 50 60 0"},
		{0, "GO.WINDOW_RO k 7 60 9 UPTO MS", "0 7 0 60 60 3"},
		// At the end of its period a unit leaves.
		{49_999, "GO.WINDOW k 6 60", "1 6 0 1 11"},
		{1, "GO.WINDOW k 6 60", "0 6 1 -1 60"},
		// A refund takes the oldest; a full window leaves no key.
		{0, "GO.WINDOW k 6 60 -2 UPTO", "0 6 3 -1 60 -2"},
		{9_999, "GO.WINDOW k 6 60000 4 MS", "1 6 3 1 50001"},
		{1, "GO.WINDOW k 6 60000 4 MS", "0 6 1 -1 60000"},
		{0, "GO.WINDOW k 6 60 -9 UPTO", "0 6 6 -1 0 -5"},
	})
	if len(s.keys) != 0 {
		t.Errorf("a full window left %v", s.keys)
	}
}

// A large limit shares entries, a changed option set finds what the other left.
func TestWindow_options(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.WINDOW k 100 60 90", "0 100 10 -1 60"},
		{30_000, "GO.WINDOW k 10000 60 9000", "0 10000 910 -1 60"},
		{100, "GO.WINDOW k 10000 60 900", "0 10000 10 -1 60"},
		{0, "GO.WINDOW k 10000 60 11", "1 10000 10 30 60"},
		{100, "GO.WINDOW k 10000 60 10 EXACT", "0 10000 0 -1 60"},
		{0, "GO.WINDOW k 100 60", "1 100 0 60 60"},
		{29_800, "GO.WINDOW k 10000 60000 90 MS", "0 10000 0 -1 60000"},
		// A longer period goes on with what the shorter one kept, a shorter one forgets.
		{0, "GO.WINDOW k 10000 120 1", "1 10000 0 91 120"},
		{0, "GO.WINDOW k 10000 10 1", "0 10000 9909 -1 10"},
	})
	if n := len(s.keys["k"].set); n > 3 {
		t.Errorf("%d entries", n)
	}
}

// However many calls there are, a window has at most 121 entries. The test checks each entry.
func TestWindow_memory(t *testing.T) {
	s := newStore(t)
	most, size := 0, 0
	for range 20_000 {
		s.now += 4000
		if reply, err := s.do("GO.WINDOW k 1000000 60 66"); err != NoError || reply[0] != 0 {
			t.Fatal(reply, err.Text())
		}
		if set := s.keys["k"].set; len(set) > most {
			most, size = len(set), 0
			for _, e := range set {
				size += len(e.Member) + 2 + 10 // as the server packs it
			}
		}
	}
	if most > 121 || size > 3500 {
		t.Errorf("%d entries of %d bytes", most, size)
	}
}

// After a partial grant the wait is that for one more unit, whichever entry the unit is in.
func TestWindow_waitAfterPartialGrant(t *testing.T) {
	converse(t, []step{
		{0, "GO.WINDOW k 5 60", "0 5 4 -1 60"},
		{10_000, "GO.WINDOW k 5 60 9 UPTO", "0 5 0 50 60 4"},
		// The new units join the newest entry, which then leaves a period after this call.
		{0, "GO.WINDOW l 240 60 100", "0 240 140 -1 60"},
		{400, "GO.WINDOW l 240 60000 200 MS UPTO", "0 240 0 60000 60000 140"},
		// All units are new.
		{0, "GO.WINDOW m 5 60 9 UPTO", "0 5 0 60 60 5"},
	})
}

// Entries that were given back are cleared away, also those inside the period.
func TestWindow_clearsRefundedEntries(t *testing.T) {
	s := newStore(t)
	for range 5 {
		s.now += 1_000_000
		s.must("GO.WINDOW k 9 60")
	}
	s.must("GO.WINDOW k 9 60 -3")
	if got := s.told("GO.WINDOW k 9 60"); got != "[0 9 6 -1 60]" || len(s.keys["k"].set) != 2 {
		t.Errorf("%s, entries %+v", got, s.keys["k"].set)
	}
}

// A refund of everything deletes a window of up to 128 entries. A larger window stays, with
// nothing in use, until it expires: to check all its entries would cost too much.
func TestWindow_refundToNothing(t *testing.T) {
	for _, entries := range []int{1, 128, 129, 300} {
		s := newStore(t)
		for range entries {
			s.now++
			s.must("GO.WINDOW k 1000 60 1 EXACT")
		}
		if got, want := s.told("GO.WINDOW k 1000 60 -1000 UPTO"), fmt.Sprintf("[0 1000 1000 -1 0 -%d]", entries); got != want {
			t.Errorf("%d entries: %s, want %s", entries, got, want)
		}
		if there := s.keys["k"] != nil; there != (entries > 128) {
			t.Errorf("%d entries: the key is there: %v", entries, there)
		}
		before := s.dump()
		if got := s.told("GO.WINDOW k 1000 60 -1 UPTO"); got != "[0 1000 1000 -1 0 0]" {
			t.Errorf("%d entries: a second refund: %s", entries, got)
		}
		if after := s.dump(); after != before {
			t.Errorf("%d entries: the second refund changed\n%s\nto\n%s", entries, before, after)
		}
		s.now++
		if got := s.told("GO.WINDOW k 1000 60 1000"); got != "[0 1000 0 -1 60]" {
			t.Errorf("%d entries: after the refund: %s", entries, got)
		}
		s.now += 60_000_000
		if got := s.told("GO.WINDOW k 1000 60 1000"); got != "[0 1000 0 -1 60]" {
			t.Errorf("%d entries: a period later: %s", entries, got)
		}
	}
}

// A call clears away at most 128 entries that no longer count.
func TestWindow_clearsAtMost128(t *testing.T) {
	s := newStore(t)
	for range 300 {
		s.now++
		s.must("GO.WINDOW k 1000 60 1 EXACT")
	}
	s.now += 60_000_000
	for _, want := range []int{300 - 128 + 1, 300 - 256 + 1 + 1, 3} {
		s.now++
		s.must("GO.WINDOW k 1000 60 1 EXACT")
		if got := len(s.keys["k"].set); got != want {
			t.Errorf("%d entries, want %d", got, want)
		}
	}
}

// Members that no call writes are not ours.
func TestWindow_members(t *testing.T) {
	for _, row := range []struct {
		member string
		ours   bool
	}{
		{"\x015", true},
		{"\x010", true},
		{"\x01zz", true},
		{"\x01a:2", true},
		{"\x01a:1:0", true},
		{"\x01a:2:1", true},
		{"\x013w5e11264sgsf:2", true}, // 2^64 - 1
		{"", false},
		{"\x01", false},
		{"5", false},
		{"\x025", false},
		{"\x0105", false},
		{"\x01A", false},
		{"\x01a:", false},
		{"\x01a:1", false}, // 1 is not written
		{"\x01a:0", false},
		{"\x01a:02", false},
		{"\x01a:2:", false},
		{"\x01a:2:1:1", false},
		{"\x01a:-2", false},
		{"\x013w5e11264sgsg", false},     // 2^64
		{"\x01a:zzzzzzzzzzzz", false},    // 2^62 and more
		{"\x01zzzzzzzzzzzzzzzzz", false}, // more than 64 bits
	} {
		s := newStore(t)
		s.keys["k"] = &value{kind: KindZset, set: []Entry{{Time: s.now - 1, Member: row.member}}, expire: 1 << 60}
		if _, err := s.do("GO.WINDOW k 1000000000000 60 0"); (err == NoError) != row.ours {
			t.Errorf("%q: %q", row.member, err.Text())
		}
	}
	// The last time whose period ends at 2^53.
	for time, ours := range map[funnel.Micros]bool{1<<53 - 3_153_600_000_000_000: true, 1<<53 - 3_153_600_000_000_000 + 1: false} {
		s := newStore(t)
		s.keys["k"] = &value{kind: KindZset, set: []Entry{{Time: time, Member: "\x015"}}, expire: 1 << 60}
		if _, err := s.do("GO.WINDOW k 9 60 0"); (err == NoError) != ours {
			t.Errorf("at %d: %q", time, err.Text())
		}
	}
}

package commands

import (
	"fmt"
	"strings"
	"testing"
)

func TestLease(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.LEASE k 2 60 a", "0 2 1 -1 60 0"},
		{10_000, "GO.LEASE k 2 60 b", "0 2 0 -1 60 0"},
		{0, "GO.LEASE k 2 60 c", "1 2 0 50 60 0"},
		// The holder renews, also over a lowered limit; others wait for as many as it takes.
		{0, "GO.LEASE k 1 90000 a MS", "0 1 0 -1 90000 1"},
		{0, "GO.LEASE k 1 60 c", "1 1 0 90 90 0"},
		// A crashed holder's slot lapses, to the µs.
		{59_999, "GO.LEASE k 2 60 c MS", "1 2 0 1 30001 0"},
		{1, "GO.LEASE k 2 60 c", "0 2 0 -1 60 0"},
		{0, "GO.LEASE k 2 5 d", "1 2 0 30 60 0"},
		// A release does not count ids that hold no slot, or whose slot has lapsed.
		{0, "GO.RELEASE k b x c c", "1"},
		{0, "GO.LEASE k 2 5 d", "0 2 0 -1 30 0"},
		{6_000, "GO.RELEASE k d", "0"},
		{0, "GO.RELEASE k a", "1"},
		{0, "GO.RELEASE k a", "0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is held, and %v is left", s.keys["k"])
	}
}

// The expiry follows the last lease, also when that one is shortened or released.
func TestLease_expiry(t *testing.T) {
	s := newStore(t)
	for _, row := range []struct {
		line string
		ends int64 // s
	}{
		{"GO.LEASE k 9 10 a", 10},
		{"GO.LEASE k 9 1000 b", 1000},
		{"GO.LEASE k 9 100 c", 1000},
		{"GO.LEASE k 9 20 b", 100},
		{"GO.RELEASE k c", 20},
	} {
		if _, err := s.do(row.line); err != NoError {
			t.Fatal(err.Text())
		}
		end := int64(s.now/1000) + row.ends*1000
		if at := s.keys["k"].expire; at < end || at > end+row.ends*250+1000 {
			t.Errorf("%s: expires %d ms after the end", row.line, at-end)
		}
	}
}

// A holder whose slot had lapsed is told so: renewed is 0.
func TestLease_renewed(t *testing.T) {
	converse(t, []step{
		{0, "GO.LEASE k 2 60 a", "0 2 1 -1 60 0"},
		{59_999, "GO.LEASE_RO k 2 60 a", "0 2 1 -1 60 1"},
		{0, "GO.LEASE_RO k 2 60 b", "0 2 0 -1 60 0"},
		{0, "GO.LEASE k 2 60 a", "0 2 1 -1 60 1"},
		{60_000, "GO.LEASE_RO k 2 60 a", "0 2 1 -1 60 0"},
		{0, "GO.LEASE k 2 60 a", "0 2 1 -1 60 0"},
		// A shorter ttl shortens the slot. The other slot may lapse last.
		{0, "GO.LEASE k 2 90 b", "0 2 0 -1 90 0"},
		{0, "GO.LEASE k 2 5 a", "0 2 0 -1 90 1"},
		{0, "GO.LEASE k 2 5 b", "0 2 0 -1 5 1"},
		{0, "GO.LEASE k 2 5 c", "1 2 0 5 5 0"},
	})
}

// A call removes at most 128 lapsed slots, a denied call too, and lapsed slots count for
// nothing however many there are.
func TestLease_clearsAtMost128(t *testing.T) {
	for _, row := range []struct {
		line, reply string
		added       int
	}{
		{"GO.LEASE k 1 60 other", "[1 1 0 70 70 0]", 0},
		{"GO.LEASE k 2 60 other", "[0 2 0 -1 70 0]", 1},
		{"GO.LEASE k 1 60 long", "[0 1 0 -1 60 1]", 0},
		{"GO.LEASE k 2 60 h0", "[0 2 0 -1 70 0]", 0}, // lapsed and renewed
	} {
		s := newStore(t)
		for i := range 300 {
			s.must(fmt.Sprintf("GO.LEASE k 1000 1 h%d", i))
		}
		s.must("GO.LEASE k 1000 71 long")
		s.now += 1_000_000
		if got := s.told(row.line); got != row.reply {
			t.Errorf("%s: %s, want %s", row.line, got, row.reply)
		}
		if got, want := len(s.keys["k"].set), 301-128+row.added; got != want {
			t.Errorf("%s: %d slots, want %d", row.line, got, want)
		}
		before := s.keys["k"].expire
		s.must("GO.LEASE k 1 60 other")
		if after := s.keys["k"].expire; after < before {
			t.Errorf("%s: the expiry went from %d to %d", row.line, before, after)
		}
	}
}

// A release counts an id once, and an id that had lapsed not at all.
func TestRelease(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.RELEASE k a", "0"},
		{0, "GO.LEASE k 9 1 a", "0 9 8 -1 1 0"},
		{0, "GO.LEASE k 9 60 b", "0 9 7 -1 60 0"},
		{0, "GO.LEASE k 9 90 c", "0 9 6 -1 90 0"},
		{0, "GO.RELEASE k x", "0"},
		{1000, "GO.RELEASE k a b a b x", "1"},
	})
	if got := len(s.keys["k"].set); got != 1 {
		t.Errorf("%d slots are left, want c's", got)
	}
	many := strings.Builder{}
	for i := range 1024 {
		s.must(fmt.Sprintf("GO.LEASE m 1024 60 %d", i))
		fmt.Fprintf(&many, " %d", i)
	}
	if got := s.told("GO.RELEASE m" + many.String()); got != "1024" || s.keys["m"] != nil {
		t.Errorf("released %s of 1024; the key is %+v", got, s.keys["m"])
	}
}

// The key's expiry follows the leases that stay, also where released leases lapse at one instant.
func TestRelease_expiryAfterEqualTimes(t *testing.T) {
	s := newStore(t)
	for _, line := range []string{"GO.LEASE k 9 60 a", "GO.LEASE k 9 60 b", "GO.LEASE k 9 60 c", "GO.LEASE k 9 30 d"} {
		s.must(line)
	}
	s.must("GO.RELEASE k b c a")
	if at := s.keys["k"].expire - int64(s.now)/1000; at < 30_000 || at > 37_500 {
		t.Errorf("the key expires after %d ms", at)
	}
}

// If all slots that a release leaves have lapsed, the key goes within the least slack.
func TestRelease_leavesLapsedSlots(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.LEASE k 3 10 a", "0 3 2 -1 10 0"},
		{0, "GO.LEASE k 3 1000000 b", "0 3 1 -1 1000000 0"},
		{20_000, "GO.RELEASE k b", "1"},
	})
	if v, want := s.keys["k"], int64(s.now/1000)+1000; v == nil || v.expire != want {
		t.Errorf("%+v, want an expiry at %d", v, want)
	}
}

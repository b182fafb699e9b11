package cgo_test

import (
	"fmt"
	"testing"
)

// A thousand calls: no call counts entries that have lapsed, however many there are. Each admitted call removes 128.
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

// Hundreds of calls: a refund of everything leaves a window of more than 128 entries, with nothing in use, until it
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

// Thousands of calls: a window holds at most 121 entries at a large limit, and one entry per unit at a small one or
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

package cgo_test

// Thousands of entries, and times in 2255, would make a transcript long, or depend on its date.

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// wantFollowed makes a call, and checks its reply and that a replica follows.
func wantFollowed(t *testing.T, h *fakehost.Host, want string, words ...string) {
	t.Helper()
	r := copyOf(h, "k")
	if got := fmt.Sprint(h.Call(words...)); got != want {
		t.Errorf("%.60q: reply %s, want %s", words, got, want)
	}
	r.follow(t, h, words[0], "k")
}

// Each call that finds lapsed entries removes up to 128 of them, even a denied call for a slot, which then replicates nothing
// else. Lapsed entries count for nothing.
func TestLapsed_128(t *testing.T) {
	const lapsed = 1000
	for _, row := range []struct{ prefix, ro, line, want string }{
		{"\x02", "GO.LEASE_RO k 2 60 x", "GO.LEASE k 1 60 x", "[1 1 0 1 1 0]"},
		{"\x02", "GO.LEASE_RO k 2 60 x", "GO.LEASE k 1 1 live", "[0 1 0 -1 1 1]"},
		{"\x01", "GO.WINDOW_RO k 1000 60", "GO.WINDOW k 1000 60", ""},
	} {
		h := loaded(t)
		h.Put("k", many(lapsed, func(i int) member { return scored(-float64(h.Now()-61*second-int64(i)), row.prefix+fmt.Sprint(9000-i)) }))
		h.Expire("k", h.Now()/1000+2000)
		if row.prefix == "\x02" {
			h.PutMember("k", -float64(h.Now()+second), "\x02live")
		}
		if got := call(h, row.ro); got[:3] != "[0 " {
			t.Errorf("%s: %v", row.ro, got)
		}
		for i := range 9 {
			want := row.want
			if want == "" {
				want = fmt.Sprintf("[0 1000 %d -1 60]", 999-i)
			}
			wantFollowed(t, h, want, strings.Fields(row.line)...)
			if left := len(h.Get("k").Set); left != 1+max(0, lapsed-128*(i+1)) {
				t.Errorf("%s: %d entries are left after call %d", row.line, left, i)
			}
			if words := h.Effects(); strings.HasPrefix(want, "[1") && (len(words) > 1 || i == 8 && words != nil) {
				t.Errorf("call %d: effects %.60q", i, words)
			}
		}
	}
}

// Slots that lapse at this instant are free, even if they are so many that only the server can count the others.
func TestLease_lapsesNow(t *testing.T) {
	h := loaded(t)
	h.Put("k", many(300, func(i int) member { return scored(-float64(h.Now()), fmt.Sprintf("\x02%03d", i)) }))
	h.PutMember("k", -float64(h.Now()+second), "\x02live")
	h.Expire("k", h.Now()/1000+2000)
	if got := call(h, "GO.INFO k"); !strings.Contains(got, " held 1 ") {
		t.Error(got)
	}
	wantReply(t, h, "GO.LEASE k 2 60 x", "[0 2 0 -1 60 0]")
}

// A refund of everything leaves a window of more than 128 entries, with nothing in use, until it expires. The next call
// that takes units clears 128 entries. A smaller window is deleted at once.
func TestWindow_refundToNothing(t *testing.T) {
	h := loaded(t)
	fill := func(n int) {
		fullWindow(h, n)
		h.Expire("k", h.Now()/1000+75_000)
	}
	fill(128)
	wantFollowed(t, h, "[0 1000 1000 -1 0 -128]", "GO.WINDOW", "k", "1000", "60", "-5000", "UPTO")
	if h.Get("k") != nil {
		t.Error("the key is there")
	}
	fill(300)
	wantFollowed(t, h, "[0 1000 1000 -1 0 -300]", "GO.WINDOW", "k", "1000", "60", "-5000", "UPTO")
	wantFollowed(t, h, "[0 1000 0 -1 60]", "GO.WINDOW", "k", "1000", "60", "1000", "EXACT")
	if left := len(h.Get("k").Set); left != 300-128 {
		t.Errorf("left %d after the next call", left)
	}
}

// A key may hold times far ahead after a server's clock was wrong. No number overflows.
func TestZset_farAhead(t *testing.T) {
	for _, row := range []struct{ text, line string }{
		{"\x015:5", "GO.WINDOW k 10 3153600000"}, {"\x015:5", "GO.WINDOW k 10 3153600000 -1"}, {"\x015:5", "GO.WINDOW k 10 3153600000 9"},
		{"\x015:5", "GO.WINDOW k 10 3153600000000 MS"}, {"\x02a", "GO.LEASE k 2 3153600000 b"}, {"\x02a", "GO.LEASE k 1 3153600000 b"},
	} {
		h := loaded(t)
		last := 1<<53 - 3_153_600_000_000_000 // the period of this entry ends at 2^53
		if row.text[0] == 2 {
			last = 1 << 53
		}
		h.Put("k", zsetOf(scored(-float64(last), row.text)))
		h.Expire("k", h.Now()/1000+100)
		r := copyOf(h, "k")
		if got := call(h, row.line); regexp.MustCompile(`ERR|-\d\d|-[2-9]`).MatchString(got) {
			t.Errorf("%s: %v", row.line, got)
		}
		r.follow(t, h, row.line, "k")
		if at := expiryOf(h, "k"); at < h.Now()/1000 {
			t.Errorf("%s: an expiry %d", row.line, at)
		}
	}
}

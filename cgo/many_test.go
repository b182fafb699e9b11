package cgo_test

// Thousands of entries, and times in 2255, would make a transcript long, or depend on its date.

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands/memory"
)

const foreignWindow = "ERR the sorted set at this key is not a sliding window"

type member = memory.Member

func scored(score float64, text string) member { return member{Score: score, Text: text} }

// wantFollowed makes a call, and checks its reply and that a replica follows.
func wantFollowed(t *testing.T, h *fakehost.Host, want string, words ...string) {
	t.Helper()
	r := copyOf(h, "k")
	if got := h.Call(words...).String(); got != want {
		t.Errorf("%.60q: reply %s, want %s", words, got, want)
	}
	r.follow(t, h, words[0], "k")
}

// GO.RELEASE takes at most 1024 ids. An id may occur several times among them.
func TestRelease_many(t *testing.T) {
	const tooMany = "ERR at most 1024 ids can be released at once"
	for _, row := range []struct {
		held, ids, distinct int
		lapse               int64 // µs after now
		want                string
	}{
		{1024, 1024, 1024, second, "1024"}, {3000, 1024, 1024, second, "1024"}, {20, 1024, 1, second, "1"}, {9, 9, 9, second, "9"},
		{2000, 1024, 1024, -second, "0"}, {1024, 1025, 1025, second, tooMany}, {0, 1025, 1025, second, tooMany},
	} {
		h := loaded(t)
		if row.held > 0 {
			h.Put("k", many(row.held, func(i int) member { return scored(-float64(h.Now()+row.lapse-int64(i)), fmt.Sprint("\x02", i)) }))
			h.Expire("k", h.Now()/1000+1000)
		}
		words := []string{"GO.RELEASE", "k"}
		for i := range row.ids {
			words = append(words, fmt.Sprint(i%row.distinct))
		}
		wantFollowed(t, h, row.want, words...)
	}
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
		if got := call(h, row.ro).Ints(); got[0] != 0 {
			t.Errorf("%s: %v", row.ro, got)
		}
		for i := range 9 {
			want := row.want
			if want == "" {
				want = fmt.Sprintf("[0 1000 %d -1 60]", 999-i)
			}
			wantFollowed(t, h, want, strings.Fields(row.line)...)
			if left := entries(h); left != 1+max(0, lapsed-128*(i+1)) {
				t.Errorf("%s: %d entries are left after call %d", row.line, left, i)
			}
			if words := h.EffectWords(); strings.HasPrefix(want, "[1") && (len(words) > 1 || i == 8 && words != nil) {
				t.Errorf("call %d: effects %.60q", i, words)
			}
		}
	}
}

// Slots that lapse at this instant are free, even if they are so many that only the server can count the others.
func TestLease_lapsesNow(t *testing.T) {
	h := loaded(t)
	h.Put("k", many(301, func(i int) member {
		if i == 0 {
			return scored(-float64(h.Now()+second), "\x02live")
		}
		return scored(-float64(h.Now()), fmt.Sprintf("\x02%03d", i))
	}))
	h.Expire("k", h.Now()/1000+2000)
	if got := call(h, "GO.INFO k").Array[5].String(); got != "1" {
		t.Errorf("held %s", got)
	}
	wantReply(t, h, "GO.LEASE k 2 60 x", "[0 2 0 -1 60 0]")
}

// A refund of everything leaves a window of more than 128 entries, with nothing in use, until it expires. The next call
// that takes units clears 128 entries. A smaller window is deleted at once.
func TestWindow_refundToNothing(t *testing.T) {
	for _, n := range []int{128, 129, 300} {
		h := loaded(t)
		for range n {
			call(h, "GO.WINDOW k 1000 60 EXACT")
			h.Advance(100)
		}
		expiry, all := expiryOf(h, "k"), fmt.Sprintf("[0 1000 1000 -1 0 %d]", -n)
		wantReply(t, h, "GO.WINDOW_RO k 1000 60 -5000 UPTO", all)
		wantFollowed(t, h, all, "GO.WINDOW", "k", "1000", "60", "-5000", "UPTO")
		if n <= 128 {
			if h.Get("k") != nil {
				t.Errorf("%d entries: left %d", n, entries(h))
			}
			continue
		}
		if left := entries(h); left != n || expiryOf(h, "k") != expiry {
			t.Errorf("%d entries: left %d, until %d, was %d", n, left, expiryOf(h, "k"), expiry)
		}
		wantUntouched(t, h, "[0 1000 1000 -1 0 0]", "GO.WINDOW k 1000 60 -1 UPTO", "GO.WINDOW k 1000 60 0 UPTO")
		wantFollowed(t, h, "[0 1000 0 -1 60]", "GO.WINDOW", "k", "1000", "60", "1000", "EXACT")
		if left := entries(h); left != n+1-128 {
			t.Errorf("%d entries: left %d after the next call", n, left)
		}
	}
}

// A refund of all units removes the key only if every member is an entry of the window.
func TestWindow_refundForeign(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 300} {
		for _, place := range []float64{-5e5, float64(n)*1e3 + 1, 1e15, math.Inf(1)} {
			h := loaded(t)
			h.Put("k", zsetOf())
			for i := range n {
				h.PutMember("k", -float64(h.Now()+int64(i)*1000), fmt.Sprintf("\x01%d", 1000+i))
			}
			// The total of the last entry does not fit the others. A refund does not read it.
			h.PutMember("k", -float64(h.Now()+int64(n)*1000), "\x01zzz")
			h.PutMember("k", -(float64(h.Now()) + place), "alice")
			h.Expire("k", h.Now()/1000+100_000)
			h.Advance(int64(n) * 1000)
			wantUntouched(t, h, foreignWindow, "GO.WINDOW k 1000000 60 -100000")
		}
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
		got := call(h, row.line)
		r.follow(t, h, row.line, "k")
		for i, n := range got.Ints() {
			if n < -1 {
				t.Errorf("%s: reply %v: %d wrapped", row.line, got, i)
			}
		}
		if at := expiryOf(h, "k"); got.Err != "" || at < h.Now()/1000 {
			t.Errorf("%s: %v, an expiry %d", row.line, got, at)
		}
	}
}

package cgo_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	foreignWindow = "ERR the sorted set at this key is not a sliding window"
	foreignLeases = "ERR the sorted set at this key holds no leases"
)

type member = fakehost.Member

func scored(score float64, text string) member { return member{Score: score, Text: text} }

// leaderboard makes the key k a sorted set that holds no limiter.
func leaderboard(h *fakehost.Host) { h.PutZset("k", scored(7.5, "bob"), scored(10, "alice")) }

// zset makes the key k a sorted set of times. The scores given here are µs after now.
func zset(members ...member) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		h.PutZset("k")
		for _, m := range members {
			h.PutMember("k", -(m.Score + float64(h.Now())), m.Text)
		}
	}
}

// Hundreds of members: a refund of all units removes the key only if every member is an entry of the window.
func TestWindow_refundForeign(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 300} {
		for _, place := range []float64{-5e5, 0.5 - 5e5, float64(n)*1e3 + 1, 1e15, math.Inf(1)} {
			h := loaded(t)
			h.PutZset("k")
			for i := range n {
				h.PutMember("k", -float64(h.Now()+int64(i)*1000), fmt.Sprintf("\x01%d", 1000+i))
			}
			// The total of the last entry does not fit the others. A refund does not read it.
			last := scored(-float64(h.Now()+int64(n)*1000), "\x01zzz")
			h.PutMember("k", last.Score, last.Text)
			h.PutMember("k", -(float64(h.Now()) + place), "alice")
			h.Expire("k", h.Now()/1000+100_000)
			h.Advance(int64(n) * 1000)
			wantUntouched(t, h, foreignWindow, "GO.WINDOW k 1000000 60 -100000")
		}
	}
}

// Long ids: a member longer than any id makes a call an error, and no call removes it.
func TestLease_longMember(t *testing.T) {
	long := "\x02" + strings.Repeat("c", 513)
	for _, members := range [][]member{{scored(1e6, long)}, {scored(-9e6, long), scored(-3e6, "\x02a"), scored(5e6, "\x02c")}} {
		h := loaded(t)
		zset(members...)(h)
		h.Expire("k", h.Now()/1000+100_000)
		wantUntouched(t, h, foreignLeases, "GO.LEASE k 10 60 x", "GO.LEASE k 10 60 c")
	}
}

// Replies that depend on the date: a key may hold times far ahead after a server's clock was wrong. No number overflows.
func TestZset_farAhead(t *testing.T) {
	for _, row := range []struct{ text, line string }{
		{"\x015:5", "GO.WINDOW k 10 3153600000"}, {"\x015:5", "GO.WINDOW k 10 3153600000 0"}, {"\x015:5", "GO.WINDOW k 10 3153600000 -1"},
		{"\x015:5", "GO.WINDOW k 10 3153600000 9"}, {"\x015:5", "GO.WINDOW k 10 3153600000000 MS"}, {"\x015:5", "GO.WINDOW k 10 60"},
		{"\x02a", "GO.LEASE k 2 3153600000 b"}, {"\x02a", "GO.LEASE k 1 3153600000 b"}, {"\x02a", "GO.RELEASE k b"},
	} {
		h := loaded(t)
		last := 1<<53 - 3_153_600_000_000_000 // the period of this entry ends at 2^53
		if row.text[0] == 2 {
			last = 1 << 53
		}
		h.PutZset("k", scored(-float64(last), row.text))
		h.Expire("k", h.Now()/1000+100)
		r := copyOf(h, "k")
		got := call(h, row.line)
		if got.Err != "" {
			t.Errorf("%s: %v", row.line, got)
		}
		r.follow(t, h, row.line, "k")
		for i, n := range got.Ints() {
			if n < -1 {
				t.Errorf("%s: reply %v: %d wrapped", row.line, got, i)
			}
		}
		if at := h.ExpireOf("k"); at < h.Now()/1000 {
			t.Errorf("%s: an expiry %d", row.line, at)
		}
	}
}

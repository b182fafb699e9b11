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

// A sorted set that holds no leases makes each call an error, and no call changes it.
func TestLease_foreign(t *testing.T) {
	some := []member{scored(-3e6, "\x02a"), scored(-2e6, "\x02b"), scored(5e6, "\x02c")}
	for _, row := range []struct {
		name   string
		before func(*fakehost.Host)
		some   bool // only an admitted call reads the foreign member
	}{
		{"a leaderboard", leaderboard, false},
		{"a window", zset(scored(-1e6, "\x011"), scored(0, "\x012")), false},
		{"an empty member", zset(scored(1e6, "")), false},
		{"a fraction of a microsecond", func(h *fakehost.Host) { h.PutZset("k", scored(-1.5, "\x02c")) }, false},
		{"a negative time", func(h *fakehost.Host) { h.PutZset("k", scored(1, "\x02c")) }, false},
		{"an infinite time", func(h *fakehost.Host) { h.PutZset("k", scored(math.Inf(-1), "\x02c")) }, false},
		{"past 2^53", func(h *fakehost.Host) { h.PutZset("k", scored(-(1<<53+2), "\x02c")) }, false},
		{"a member longer than any id", zset(scored(1e6, "\x02"+strings.Repeat("c", 513))), false},

		{"a leaderboard with a member of ours at its end", func(h *fakehost.Host) {
			leaderboard(h)
			h.PutMember("k", -11, "\x02c")
		}, true},
		{"someone's in front of the lapsed", zset(append(some, scored(-9e6, "alice"))...), true},
		{"someone's among the lapsed", zset(append(some, scored(-2.5e6, "alice"))...), true},
		{"someone's at the end of the lapsed", zset(append(some, scored(0, "alice"))...), true},
		{"a member longer than any id among the lapsed", zset(append(some, scored(-9e6, "\x02"+strings.Repeat("c", 513)))...), true},
		{"a fraction among the lapsed", func(h *fakehost.Host) {
			zset(some...)(h)
			h.PutMember("k", -0.5, "\x02x")
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			row.before(h)
			h.Expire("k", h.Now()/1000+100_000)
			wantUntouched(t, h, foreignLeases, "GO.LEASE k 10 60 x", "GO.LEASE k 10 60 c")
			if !row.some {
				wantUntouched(t, h, foreignLeases, "GO.LEASE k 1 60 x", "GO.RELEASE k x", "GO.RELEASE k c", "GO.RELEASE k a b c alice")
			}
		})
	}
	for _, kind := range []string{"list", "set"} {
		h := loaded(t)
		h.PutOther("k", kind)
		wantUntouched(t, h, wrongType, "GO.LEASE k 10 60 x", "GO.RELEASE k x", "GO.WINDOW k 10 60", "GO.WINDOW_RO k 10 60")
	}
	h := loaded(t)
	h.PutString("k", "x")
	wantUntouched(t, h, wrongType, "GO.LEASE k 10 60 x", "GO.RELEASE k x", "GO.WINDOW k 10 60")
	h.PutHash("k", "0", "1")
	wantUntouched(t, h, wrongType, "GO.LEASE k 10 60 x", "GO.RELEASE k x", "GO.WINDOW k 10 60")
}

// GO.RELEASE removes only members that are leases, even if another member's name is the id.
func TestRelease_foreign(t *testing.T) {
	h := loaded(t)
	zset(scored(1e6, "\x01a"), scored(2e6, "a"), scored(3e6, "\x02a"))(h)
	h.Expire("k", h.Now()/1000+4000)
	before := h.Dump()
	for _, id := range []string{"\x01a", "\x02a", "", "a\x00"} {
		if got := h.Call("GO.RELEASE", "k", id).String(); got != "0" {
			t.Errorf("%q: %s", id, got)
		}
		wantNothing(t, h, id, before)
	}
	// A release of a would leave only foreign members, and the key would need an expiry from them.
	wantUntouched(t, h, foreignLeases, "GO.RELEASE k a")
}

// A key may hold times far ahead after a server's clock was wrong. No number overflows.
func TestZset_farAhead(t *testing.T) {
	for _, row := range []struct{ text, line string }{
		{"\x015:5", "GO.WINDOW k 10 3153600000"}, {"\x015:5", "GO.WINDOW k 10 3153600000 0"}, {"\x015:5", "GO.WINDOW k 10 3153600000 -1"},
		{"\x015:5", "GO.WINDOW k 10 3153600000 9"}, {"\x015:5", "GO.WINDOW k 10 3153600000000 MS"}, {"\x015:5", "GO.WINDOW k 10 60"},
		{"\x02a", "GO.LEASE k 2 3153600000 b"}, {"\x02a", "GO.LEASE k 1 3153600000 b"}, {"\x02a", "GO.RELEASE k b"},
	} {
		h := loaded(t)
		h.PutZset("k", scored(-(1<<53), row.text))
		h.Expire("k", h.Now()/1000+100)
		r := copyOf(h, "k")
		got := call(h, row.line)
		if got.Err != "" {
			continue // an error is fine, too
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

// A member whose score is no time makes the call an error, also among leases that are held.
func TestLease_damagedAmongLive(t *testing.T) {
	for _, row := range []struct {
		bad  member
		line string
	}{
		{scored(5e6+0.5, "alice"), "GO.LEASE k 2 60 x"}, // the wait would depend on it
		{scored(5e6+0.5, "\x02b"), "GO.LEASE k 2 60 x"},
		{scored(5e6+0.5, "\x02b"), "GO.LEASE k 2 60 b"}, // the id of the call
	} {
		h := loaded(t)
		h.PutZset("k", scored(-(float64(h.Now())+6e6), "\x02a"), scored(-(float64(h.Now())+row.bad.Score), row.bad.Text))
		h.Expire("k", h.Now()/1000+10_000)
		wantUntouched(t, h, foreignLeases, row.line)
	}
}

// A time is a whole number of µs from 0 to 2^53, which is the most that a score holds exactly.
func TestLease_rangeOfTimes(t *testing.T) {
	for _, row := range []struct {
		score float64
		ok    bool
	}{{-(1 << 53), true}, {-(1<<53 + 2), false}, {-(1<<53 - 1), true}, {-1e15, true}, {-1, true}, {0, true}, {1, false}, {-0.5, false}} {
		h := loaded(t)
		h.PutZset("k", fakehost.Member{Score: row.score, Text: "\x02a"})
		if got := call(h, "GO.LEASE_RO k 2 60 b"); (got.Err == "") != row.ok {
			t.Errorf("score %f: %v", row.score, got)
		}
	}
}

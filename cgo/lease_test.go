package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

func TestLease_effects(t *testing.T) {
	two := run(second, "GO.LEASE k 2 60 a", "GO.LEASE k 2 30 b")
	wantEffects(t, []effectRow{
		{"a new key gets its slot and its expiry", nil,
			"GO.LEASE k 2 60 a", "[0 2 1 -1 60 0]", "ZADD k -U+60000000 ^Ba; PEXPIREAT k M+75000"},
		{"milliseconds", nil,
			"GO.LEASE k 2 600 a MS", "[0 2 1 -1 600 0]", "ZADD k -U+600000 ^Ba; PEXPIREAT k M+1600"},
		{"an empty id", nil, "GO.LEASE k 2 60 \t", "ERR wrong number of arguments for 'go.lease' command", ""},
		{"a second slot; the expiry is good", run(second, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 b", "[0 2 0 -1 60 0]", "ZADD k -U+60000000 ^Bb"},
		{"a shorter one", run(second, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 5 b", "[0 2 0 -1 59 0]", "ZADD k -U+5000000 ^Bb; PEXPIREAT k M+60250"},
		{"a longer one", run(second, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 600 b", "[0 2 0 -1 600 0]", "ZADD k -U+600000000 ^Bb; PEXPIREAT k M+750000"},
		{"renewed", run(second, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 a", "[0 2 1 -1 60 1]", "ZADD k -U+60000000 ^Ba"},
		{"renewed for less", run(second, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 5 a", "[0 2 1 -1 5 1]", "ZADD k -U+5000000 ^Ba; PEXPIREAT k M+6250"},
		{"renewed for less than another", two,
			"GO.LEASE k 2 5 a", "[0 2 0 -1 29 1]", "ZADD k -U+5000000 ^Ba; PEXPIREAT k M+30250"},
		{"renewed above a lowered limit", two,
			"GO.LEASE k 1 60 a", "[0 1 0 -1 60 1]", "ZADD k -U+60000000 ^Ba"},
		{"renewed to the very same", run(0, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 a", "[0 2 1 -1 60 1]", ""},
		{"a slot that lapsed is taken", run(60*second, "GO.LEASE k 1 60 a"),
			"GO.LEASE k 1 60 b", "[0 1 0 -1 60 0]", "ZADD k -U+60000000 ^Bb; ZREM k ^Ba; PEXPIREAT k M+75000"},
		{"the holder of a lapsed slot comes back", run(60*second, "GO.LEASE k 1 60 a"),
			"GO.LEASE k 1 60 a", "[0 1 0 -1 60 0]", "ZADD k -U+60000000 ^Ba; PEXPIREAT k M+75000"},

		{"denied", two, "GO.LEASE k 2 60 c", "[1 2 0 29 59 0]", ""},
		{"denied until two have lapsed", two, "GO.LEASE k 1 60 c", "[1 1 0 59 59 0]", ""},
		{"denied, though it had one that lapsed", run(30*second, "GO.LEASE k 2 60 a", "GO.LEASE k 2 30 b"),
			"GO.LEASE k 1 60 b", "[1 1 0 30 30 0]", "ZREM k ^Bb"},
		{"error", two, "GO.LEASE k 2 60 c UPTO", "ERR unknown option 'UPTO'", ""},
		{"bad limit", two, "GO.LEASE k 0 60 c", "ERR limit must be between 1 and 1000000000000", ""},
		{"bad ttl", two, "GO.LEASE k 1 0 c", "ERR ttl must be between 1 and 3153600000 seconds", ""},

		{"PERSIST heals", expire(fakehost.NoExpiry, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 b", "[0 2 0 -1 60 0]", "ZADD k -U+60000000 ^Bb; PEXPIREAT k M+75000"},
		{"the earliest expiry that is right", expire(60_000, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 b", "[0 2 0 -1 60 0]", "ZADD k -U+60000000 ^Bb"},
		{"an EXPIRE too short heals", expire(59_999, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 b", "[0 2 0 -1 60 0]", "ZADD k -U+60000000 ^Bb; PEXPIREAT k M+75000"},
		{"an EXPIRE too long heals", expire(75_001, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 b", "[0 2 0 -1 60 0]", "ZADD k -U+60000000 ^Bb; PEXPIREAT k M+75000"},
		{"a denied call leaves the user's expiry", expire(fakehost.NoExpiry, "GO.LEASE k 1 60 a"),
			"GO.LEASE k 1 60 b", "[1 1 0 60 60 0]", ""},
		{"expired", run(75_001_000, "GO.LEASE k 2 60 a"),
			"GO.LEASE k 2 60 a", "[0 2 1 -1 60 0]", "DEL k; ZADD k -U+60000000 ^Ba; PEXPIREAT k M+75000"},

		{"released", two, "GO.RELEASE k b", "1", "ZREM k ^Bb"},
		{"the longest released", two, "GO.RELEASE k a", "1", "ZREM k ^Ba; PEXPIREAT k M+36250"},
		{"the last released", run(second, "GO.LEASE k 2 60 a"), "GO.RELEASE k a", "1", "ZREM k ^Ba"},
		{"all released", two, "GO.RELEASE k b a", "2", "ZREM k ^Ba ^Bb"},
		{"the same id twice", two, "GO.RELEASE k a a b a", "2", "ZREM k ^Ba ^Bb"},
		{"one that was not held", two, "GO.RELEASE k a x", "1", "ZREM k ^Ba; PEXPIREAT k M+36250"},
		{"none that was held", two, "GO.RELEASE k x y", "0", ""},
		{"one that lapsed was not held", run(40*second, "GO.LEASE k 2 60 a", "GO.LEASE k 2 30 b"),
			"GO.RELEASE k b", "0", "ZREM k ^Bb; PEXPIREAT k M+25000"},
		{"only lapsed ones stay", run(40*second, "GO.LEASE k 2 60 a", "GO.LEASE k 2 30 b"),
			"GO.RELEASE k a", "1", "ZREM k ^Ba; PEXPIREAT k M+1000"},
		{"nothing there", nil, "GO.RELEASE k a", "0", ""},
		{"too few words", nil, "GO.RELEASE k", "ERR wrong number of arguments for 'go.release' command", ""},
	})
}

// An id may hold any bytes. It may be empty, and it may have 512 bytes.
func TestLease_ids(t *testing.T) {
	h := loaded(t)
	ids := []string{"", "\x00", "\x00\x01", "\x01", "\x02", "a b\r\n", "MS", strings.Repeat("\xff", 62), strings.Repeat("\xff", 63),
		strings.Repeat("\xff", 64), strings.Repeat("\xff", 65), strings.Repeat("x", 512)}
	for i, id := range ids {
		r := copyOf(h, "k")
		if got, want := h.Call("GO.LEASE", "k", "100", "60", id).String(), fmt.Sprintf("[0 100 %d -1 60 0]", 99-i); got != want {
			t.Errorf("%.20q: reply %s, want %s", id, got, want)
		}
		r.follow(t, h, "lease", "k")
		if got := h.ZsetOf("k"); len(got) != i+1 {
			t.Errorf("%.20q: %d slots", id, len(got))
		}
	}
	if got := h.Call("GO.LEASE", "k", "12", "60", "one more").String(); got != "[1 12 0 60 60 0]" {
		t.Error(got)
	}
	r := copyOf(h, "k")
	words := append([]string{"GO.RELEASE", "k"}, ids[1:]...)
	if got := h.Call(words...).String(); got != "11" || len(h.ZsetOf("k")) != 1 || h.ZsetOf("k")[0].Text != "\x02" {
		t.Errorf("released %s, left %v", got, h.ZsetOf("k"))
	}
	r.follow(t, h, "release", "k")
}

// GO.RELEASE takes at most 1024 ids. An id may occur several times among them.
func TestRelease_many(t *testing.T) {
	for _, row := range []struct {
		name         string
		held, ids    int
		lapsed, same bool
		want         string
	}{
		{"1024", 1024, 1024, false, false, "1024"},
		{"1024 of 3000", 3000, 1024, false, false, "1024"},
		{"1024 that lapsed", 2000, 1024, true, false, "0"},
		{"1024 times the same", 20, 1024, false, true, "1"},
		{"1025", 1024, 1025, false, false, "ERR at most 1024 ids can be released at once"},
		{"1025 of nothing", 0, 1025, false, false, "ERR at most 1024 ids can be released at once"},
		{"9", 9, 9, false, false, "9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			at := h.Now() + 10*second
			if row.held > 0 {
				h.PutZset("k")
				for i := range row.held {
					h.PutMember("k", -float64(at+int64(i)), fmt.Sprint("\x02", i))
				}
				h.Expire("k", at/1000+1000)
			}
			if row.lapsed {
				h.Advance(20 * second)
				h.Expire("k", h.Now()/1000+1000)
			}
			words := []string{"GO.RELEASE", "k"}
			for i := range row.ids {
				if row.same {
					i = 7
				}
				words = append(words, fmt.Sprint(i))
			}
			before, r := h.Dump(), copyOf(h, "k")
			got := h.Call(words...)
			if got.String() != row.want {
				t.Errorf("reply %v", got)
			}
			if got.Err != "" {
				wantNothing(t, h, row.name, before)
				return
			}
			if n := len(h.EffectWords()[0]) - 2; !row.same && n != row.ids {
				t.Errorf("%d removed", n)
			}
			r.follow(t, h, row.name, "k")
		})
	}
}

// Each call that finds lapsed slots removes up to 128 of them, also a denied call. A denied call
// replicates this removal and nothing else.
func TestLease_manyLapsed(t *testing.T) {
	h := loaded(t)
	h.PutZset("k", fakehost.Member{Score: -float64(h.Now() + second), Text: "\x02live"})
	h.Expire("k", h.Now()/1000+2000)
	const lapsed = 5000
	for i := range lapsed {
		h.PutMember("k", -float64(h.Now()-int64(i)), fmt.Sprint("\x02", i))
	}
	r := copyOf(h, "k")
	for i := range 42 {
		left := max(0, lapsed-128*(i+1))
		if i%2 == 0 {
			wantReply(t, h, "GO.LEASE k 1 60 x", "[1 1 0 1 1 0]")
		} else {
			wantReply(t, h, "GO.LEASE k 1 1 live", "[0 1 0 -1 1 1]")
		}
		if n := len(h.ZsetOf("k")); n != 1+left {
			t.Fatalf("%d slots after call %d, want %d", n, i, 1+left)
		}
		if words := h.EffectWords(); left > 0 && (len(words) != 1 || len(words[0]) != 2+128) {
			t.Errorf("call %d: effects %.60q", i, words)
		}
		r.follow(t, h, "many", "k")
	}
	if wantReply(t, h, "GO.LEASE k 1 60 x", "[1 1 0 1 1 0]"); h.Effects() != nil {
		t.Errorf("effects %q where nothing has lapsed", h.Effects())
	}
}

// An id of more than 512 bytes is an error wherever an id stands, and nothing is looked up.
func TestLease_longID(t *testing.T) {
	const tooLong = "ERR an id must not exceed 512 bytes"
	h := loaded(t)
	call(h, "GO.LEASE k 10 60 a")
	long, most := strings.Repeat("x", 513), strings.Repeat("x", 512)
	for _, words := range [][]string{
		{"GO.LEASE", "k", "10", "60", long}, {"GO.LEASE_RO", "k", "10", "60", long}, {"GO.RELEASE", "k", "a", long},
		{"GO.ALL", "k", "LEASE", "10", "60", long}, {"GO.ALL_RO", "k", "LEASE", "10", "60", long},
	} {
		before := h.Dump()
		if got := h.Call(words...).String(); got != tooLong {
			t.Errorf("%.20q: %s", words, got)
		}
		wantNothing(t, h, words[0], before)
		words[len(words)-1] = most
		if got := h.Call(words...); got.Err != "" {
			t.Errorf("%.20q: %v", words, got)
		}
	}
}

// renewed, the sixth integer, tells a holder whether it lost its slot in between.
func TestLease_renewed(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		pause      int64
		line, want string
	}{
		{0, "GO.LEASE k 1 10 a", "[0 1 0 -1 10 0]"},
		{9 * second, "GO.LEASE k 1 10 a", "[0 1 0 -1 10 1]"},
		{9 * second, "GO.LEASE_RO k 1 10 a", "[0 1 0 -1 10 1]"},
		{second, "GO.LEASE_RO k 1 10 a", "[0 1 0 -1 10 0]"}, // lapsed at this instant
		{0, "GO.LEASE k 1 10 b", "[0 1 0 -1 10 0]"},
		{0, "GO.LEASE k 1 10 a", "[1 1 0 10 10 0]"},
		{0, "GO.RELEASE k b", "1"},
		{0, "GO.LEASE k 1 10 a", "[0 1 0 -1 10 0]"}, // b had the slot in between
		{0, "GO.LEASE k 1 10 a", "[0 1 0 -1 10 1]"},
		{0, "GO.ALL k LEASE 1 10 a", "[0 1 0 -1 10 0 [0 1 0 -1 10 1]]"},
		{0, "GO.ALL k LEASE 1 10 b", "[1 1 0 10 10 0 [1 1 0 10 10 0]]"},
		{0, "GO.ALL k LEASE 1 10 a KEY q QUOTA 1 1 2", "[1 1 1 -1 0 1 [0 1 0 -1 10 1] [1 1 1 -1 0]]"},
	} {
		h.Advance(row.pause)
		wantReply(t, h, row.line, row.want)
	}
}

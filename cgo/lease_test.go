package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// Long ids, up to 512 bytes, and ids that are members' prefixes.
func TestLease_ids(t *testing.T) {
	h := loaded(t)
	ids := []string{"", "\x00\x01", "\x01", "\x02", strings.Repeat("\xff", 62), strings.Repeat("\xff", 63),
		strings.Repeat("\xff", 64), strings.Repeat("\xff", 65), strings.Repeat("x", 512)}
	for i, id := range ids {
		r := copyOf(h, "k")
		if got, want := h.Call("GO.LEASE", "k", "100", "60", id).String(), fmt.Sprintf("[0 100 %d -1 60 0]", 99-i); got != want {
			t.Errorf("%.20q: reply %s, want %s", id, got, want)
		}
		r.follow(t, h, "lease", "k")
	}
	r := copyOf(h, "k")
	words := append([]string{"GO.RELEASE", "k"}, ids[1:]...)
	if got := h.Call(words...).String(); got != "8" || len(h.ZsetOf("k")) != 1 || h.ZsetOf("k")[0].Text != "\x02" {
		t.Errorf("released %s, left %v", got, h.ZsetOf("k"))
	}
	r.follow(t, h, "release", "k")
}

// Thousands of slots: GO.RELEASE takes at most 1024 ids. An id may occur several times among them.
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

// Thousands of slots: each call that finds lapsed slots removes up to 128 of them, also a denied call. A denied call
// replicates this removal and nothing else.
func TestLease_manyLapsed(t *testing.T) {
	h := loaded(t)
	h.PutZset("k", fakehost.Member{Score: -float64(h.Now() + second), Text: "\x02live"})
	h.Expire("k", h.Now()/1000+2000)
	const lapsed = 5000
	for i := range lapsed {
		h.PutMember("k", -float64(h.Now()-int64(i)), fmt.Sprint("\x02", i))
	}
	wantReply(t, h, "GO.LEASE_RO k 2 60 x", "[0 2 0 -1 60 0]") // they count for nothing
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

// Long ids: one of more than 512 bytes is an error wherever an id stands, and nothing is looked up.
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
		if got := h.Call(words...).String(); strings.Replace(got, "clause 1: ", "", 1) != tooLong {
			t.Errorf("%.20q: %s", words, got)
		}
		wantNothing(t, h, words[0], before)
		words[len(words)-1] = most
		if got := h.Call(words...); got.Err != "" {
			t.Errorf("%.20q: %v", words, got)
		}
	}
}

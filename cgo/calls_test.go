package cgo_test

// No transcript has a server that refuses the module's own calls.

import (
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// callFailures are the ways in which a call of the server can fail that the module makes.
var callFailures = []int{fakehost.NoReply, fakehost.ErrorReply, fakehost.OtherType, fakehost.Integers}

// A denied GO.LEASE asks the server when enough slots lapse. Without an answer it replies the latest lapse, which
// is never too early.
func TestCalls_rank(t *testing.T) {
	for _, row := range []struct{ line, want, failing string }{
		{"GO.LEASE k 5 60 x", "[1 5 0 10 50 0]", "[1 5 0 10 50 0]"}, // no call is needed
		{"GO.LEASE k 4 60 x", "[1 4 0 20 50 0]", "[1 4 0 50 50 0]"},
		{"GO.LEASE k 3 60 x", "[1 3 0 30 50 0]", "[1 3 0 50 50 0]"},
		{"GO.LEASE k 1 60 x", "[1 1 0 50 50 0]", "[1 1 0 50 50 0]"},
		{"GO.LEASE_RO k 3 60 x", "[1 3 0 30 50 0]", "[1 3 0 50 50 0]"},
		{"GO.LEASE k 3 60 10", "[0 3 0 -1 60 1]", "[0 3 0 -1 60 1]"},
		{"GO.ALL k LEASE 3 60 x", "[1 3 0 30 50 0 [1 3 0 30 50 0]]", "[1 3 0 50 50 0 [1 3 0 50 50 0]]"},
	} {
		for _, kind := range callFailures {
			h := loaded(t)
			for _, ttl := range []string{"10", "20", "30", "40", "50"} {
				call(h, "GO.LEASE k 5 "+ttl+" "+ttl)
			}
			h.CallsFail(kind, "ZRANGE")
			wantReply(t, h, row.line, row.failing)
			h.CallsFail(0)
			wantReply(t, h, row.line, row.want)
		}
	}
}

// If the server does not count, lapsed slots that a call does not reach may count as held. Each call removes 128 of
// them, so no key is stuck.
func TestCalls_lapsed(t *testing.T) {
	for _, lapsed := range []int{127, 128, 129, 1000} {
		h := loaded(t)
		fill := func() {
			h.Put("k", slots(h, lapsed, 0))
			h.Expire("k", h.Now()/1000+100_000)
		}
		fill()
		h.CallsFail(fakehost.NoReply, "ZCOUNT", "ZRANGE")
		wantReply(t, h, "GO.LEASE_RO k 1 60 new", "[0 1 0 -1 60 0]") // the newest slot has lapsed, so all have
		wantReply(t, h, "GO.LEASE k 1 60 new", "[0 1 0 -1 60 0]")
		fill()
		v := h.Get("k")
		v.Add(scored(-float64(h.Now()+30*second), "\x02held"))
		h.Put("k", v)
		for range (lapsed - 1) / 128 {
			wantReply(t, h, "GO.LEASE k 2 60 new", "[1 2 0 30 30 0]")
		}
		wantReply(t, h, "GO.LEASE k 2 60 new", "[0 2 0 -1 60 0]")
		wantReply(t, h, "GO.LEASE k 2 60 held", "[0 2 0 -1 60 1]")
	}
}

// GO.INFO replies null for the number of slots that only the server can count.
func TestCalls_info(t *testing.T) {
	h := loaded(t)
	h.Put("k", slots(h, 200, second))
	for kind, want := range map[int]string{0: " held 200 ", fakehost.NoReply: " held (nil) ", fakehost.OtherType: " held (nil) "} {
		h.CallsFail(kind, "ZCOUNT")
		if got := call(h, "GO.INFO k"); !strings.Contains(got, want) {
			t.Errorf("%.60s, want%s", got, want)
		}
	}
}

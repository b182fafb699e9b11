package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// The _RO twins reply what the call would get, change nothing and never open a key for
// writing, which a replica or EVAL_RO would not let them.
func TestReadOnly(t *testing.T) {
	calls := []string{"GO.THROTTLE t 15 30 60", "GO.WINDOW w 10 60", "GO.WINDOW w2 1000 60", "GO.QUOTA q 10 60", "GO.THROTTLE c 15 30 60"}
	endings := []string{"", " 0", " 1", " 3", " 10", " 17", " 2000", " -1", " -100", " 5 UPTO", " 2000 upto", " UPTO MS", " x"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	h := loaded(t)
	replies := map[string]bool{}
	for range rounds(2000) {
		h.Advance(r.Int64N(10 * second))
		if r.IntN(20) == 0 {
			h.PutString("c", tat(h, 10_000_000_000))
			h.Expire("c", h.Now()/1000+20_000)
		}
		line := pick(r, calls...) + pick(r, endings...)
		twin := strings.Replace(line, " ", "_RO ", 1)
		key := strings.Fields(line)[1]
		if at := h.ExpireOf(key); at != fakehost.NoExpiry && at < h.Now()/1000 {
			h.Delete(key) // the server's doing, whoever comes across it
		}
		before := h.Dump()
		_, toWrite := h.Opened()
		got := call(h, twin).String()
		wantNothing(t, h, twin, before)
		if _, now := h.Opened(); now != toWrite {
			t.Errorf("%s opened a key for writing", twin)
		}
		want := call(h, line).String()
		if got != want {
			t.Fatalf("seed %d: %s: %s, but %s: %s; %q", seed, twin, got, line, want, before)
		}
		replies[got] = true
	}
	if len(replies) < rounds(200) {
		t.Errorf("only %d replies", len(replies))
	}
}

// Each twin counts for itself.
func TestReadOnly_counters(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		line string
		want [3]int
	}{
		{"GO.THROTTLE_RO k 15 30 60", [3]int{1, 0, 0}}, {"GO.THROTTLE_RO k 15 30 60 17", [3]int{0, 1, 0}}, {"GO.THROTTLE_RO k 15 30 x", [3]int{0, 0, 1}},
		{"GO.WINDOW_RO k 15 30", [3]int{1, 0, 0}}, {"GO.QUOTA_RO k 15 30 16", [3]int{0, 1, 0}}, {"GO.MTHROTTLE 1 k 15 30 60 1", [3]int{1, 0, 0}},
		{"GO.MTHROTTLE 1 k 0 30 60 1", [3]int{0, 1, 0}}, {"GO.MTHROTTLE 2 k 0 30 60 1", [3]int{0, 0, 1}}, {"GO.MTHROTTLE 2 k k 30 60 1", [3]int{0, 0, 1}},
		{"GO.LEASE l 1 60 a", [3]int{1, 0, 0}}, {"GO.LEASE l 1 60 b", [3]int{0, 1, 0}}, {"GO.RELEASE l b", [3]int{1, 0, 0}}, {"GO.RELEASE k b", [3]int{0, 0, 1}},
	} {
		name := strings.ToLower(strings.Fields(row.line)[0])
		before := counters(t, h, name)
		call(h, row.line)
		after := counters(t, h, name)
		if got := [3]int{after[0] - before[0], after[1] - before[1], after[2] - before[2]}; got != row.want {
			t.Errorf("%s: counted %v", row.line, got)
		}
	}
}

// A server that lets a key be opened for reading has it refuse all writes; the module
// does not try, and the host would say so.
func TestReadOnly_foreign(t *testing.T) {
	for _, put := range []func(*fakehost.Host){leaderboard, hashOf("0", "T", "x", "1"), hashOf("0", "x", "1", "-1"),
		func(h *fakehost.Host) { h.PutString("k", "5@x") }, func(h *fakehost.Host) { h.PutOther("k", "list") }} {
		for _, line := range []string{"GO.THROTTLE_RO k 15 30 60", "GO.WINDOW_RO k 15 30 -1", "GO.QUOTA_RO k 15 30"} {
			h := loaded(t)
			put(h)
			before := h.Dump()
			if got := call(h, line); got.Err == "" {
				t.Errorf("%s on %q: %v", line, before, got)
			}
			wantNothing(t, h, line, before)
		}
	}
	h := loaded(t)
	wantReply(t, h, "GO.THROTTLE_RO k 15 30 60", "[0 16 15 -1 2]")
	wantReply(t, h, "GO.WINDOW_RO k 15 30", "[0 15 14 -1 30]")
	wantReply(t, h, "GO.QUOTA_RO k 15 30", "[0 15 14 -1 30]")
	if got := h.Dump(); got != nil {
		t.Error(fmt.Sprint(got))
	}
}

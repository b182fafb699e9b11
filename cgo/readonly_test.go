package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// A read-only twin replies what the writing command would reply. It changes nothing and never opens
// a key for writing: a replica and EVAL_RO would not allow that.
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
			h.Delete(key) // the server removes an expired key itself
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

// A read-only twin of a foreign key replies an error and tries no write. The fake host reports a
// write to a key that is open for reading as a fault.
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

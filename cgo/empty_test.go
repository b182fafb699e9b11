package cgo_test

// No command that a transcript may use makes an empty hash or sorted set.

import (
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// A key may exist and hold nothing: in Valkey 9.1 HPEXPIRE and then COPY leave a hash of length 0. Such
// a hash or sorted set is a limiter with nothing in use, whichever command asks.
func TestEmpty(t *testing.T) {
	for _, row := range []struct {
		put   func(*fakehost.Host)
		lines []string // reply as if there were no key
	}{
		{func(h *fakehost.Host) { h.Put("k", hashOf()) }, []string{"GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 0", "GO.THROTTLE k 15 30 60 -1", "GO.THROTTLE k 15 30 60 17",
			"GO.THROTTLE k 0 30 60 1 LOCKOUT 9", "GO.THROTTLE_RO k 15 30 60", "GO.ALL k THROTTLE 15 30 60 0 THROTTLE 4 5 30 -1 THROTTLE 4 5 30 KEY l QUOTA 1 1 2",
			"GO.ALL k THROTTLE 15 30 60 FORCE"}},
		{func(h *fakehost.Host) { h.Put("k", zsetOf()) }, []string{"GO.WINDOW k 10 60", "GO.WINDOW k 10 60 0", "GO.WINDOW k 10 60 -1", "GO.WINDOW k 10 60 11",
			"GO.WINDOW k 1000 60 99 FORCE", "GO.WINDOW_RO k 10 60", "GO.LEASE k 1 60 a", "GO.LEASE_RO k 1 60 a", "GO.RELEASE k a b",
			"GO.ALL k LEASE 1 60 a KEY l QUOTA 1 1 2", "GO.ALL_RO k WINDOW 10 60 11"}},
	} {
		for _, line := range row.lines {
			h := loaded(t)
			want := call(h, line)
			h.Delete("l")
			row.put(h)
			r := copyOf(h, "k", "l")
			wantReply(t, h, line, want)
			r.follow(t, h, line, "k", "l")
			if strings.Contains(want, "ERR") {
				t.Errorf("%s: %s", line, want)
			}
		}
	}
}

// A command of another kind refuses an empty key as it refuses any key of the wrong type, and GO.INFO
// shows what is there.
func TestEmpty_otherKinds(t *testing.T) {
	h := loaded(t)
	h.ConfigSet("gothrottle.policies", "k THROTTLE 9 1 1s, THROTTLE 9 1 1s; w WINDOW 9 1s; q QUOTA 9 1s")
	h.Put("k:a", hashOf())
	h.Put("w:a", zsetOf())
	h.Put("q:a", textOf(""))
	wantUntouched(t, h, "[kind throttle expires_in_ms -1 cells []]", "GO.INFO k:a")
	wantUntouched(t, h, foreignZset, "GO.INFO w:a")
	wantUntouched(t, h, foreignText, "GO.INFO q:a")
	wantUntouched(t, h, "ERR the string at this key is not a quota", "GO.QUOTA q:a 1 1", "GO.ALL q:a QUOTA 1 1", "GO.POLICY q:a")
	wantUntouched(t, h, wrongType, "GO.THROTTLE w:a 1 1 1", "GO.THROTTLE q:a 1 1 1", "GO.WINDOW k:a 1 1", "GO.WINDOW q:a 1 1", "GO.QUOTA k:a 1 1",
		"GO.QUOTA w:a 1 1", "GO.LEASE k:a 1 1 a", "GO.LEASE q:a 1 1 a", "GO.RELEASE k:a a", "GO.RELEASE q:a a")
	wantReply(t, h, "GO.POLICY k:a", "[0 10 9 -1 1 0 [0 10 9 -1 1] [0 10 9 -1 1]]")
	wantReply(t, h, "GO.POLICY w:a", "[0 9 8 -1 1 0 [0 9 8 -1 1]]")
}

package cgo_test

// No transcript has these states: no command that it may use leaves an empty hash or sorted set, and replies about times in 2255
// depend on its date.

import (
	"regexp"
	"testing"
)

// GO.INFO shows what an empty key is. TestRandom makes the other calls on such keys.
func TestEmpty(t *testing.T) {
	h := loaded(t)
	h.Put("hash", hashOf())
	h.Put("zset", zsetOf())
	wantUntouched(t, h, "[kind throttle expires_in_ms -1 cells []]", "GO.INFO hash")
	wantUntouched(t, h, "ERR the sorted set at this key is not a rate limiter", "GO.INFO zset")
	wantUntouched(t, h, wrongType, "GO.THROTTLE zset 1 1 1", "GO.QUOTA hash 1 1", "GO.QUOTA zset 1 1", "GO.LEASE hash 1 1 a")
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

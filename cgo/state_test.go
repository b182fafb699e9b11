package cgo_test

// No transcript has these states: no command that it may use leaves an empty hash or sorted set. Nor does one show calls of
// the API.

import (
	"testing"

	"gothrottle/cgo/fakehost"
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

// GO.INFO reads strings by GET, so the server keeps the encoding even of strings that are ours. If an administrator has renamed
// GET, or GET fails, the strings are read where they are.
func TestString_info(t *testing.T) {
	for _, kind := range append(callFailures, -1, 0) {
		h := loaded(t)
		h.Put("cell", textOf(tat(h, 7_000_000_001)))
		h.Put("quota", textOf("3@"+tat(h, 60_000_000_000)))
		if kind < 0 {
			h.Add(fakehost.Renamed, "GET")
		} else {
			h.CallsFail(kind, "GET")
		}
		h.ResetCounts()
		wantReply(t, h, "GO.INFO cell", "[kind throttle expires_in_ms -1 cells [[in_use (nil) count (nil) period_ms (nil) empty_in_ms 7001 locked_for_ms 0]]]")
		wantReply(t, h, "GO.INFO quota", "[kind quota expires_in_ms -1 used 3 ends_in_ms 60000]")
		if n := h.Count(fakehost.Looked); kind == 0 && n != 0 {
			t.Errorf("%d strings were looked at", n)
		}
	}
}

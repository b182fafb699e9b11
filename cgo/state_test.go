package cgo_test

// No transcript has these states: no command that it may use leaves an empty hash or sorted set. Nor does one show calls of
// the API.

import (
	"strings"
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

// The module does not look at a string whose length says that it is not the module's, so the
// server keeps the string's encoding. It must look at strings of 21 to 36 bytes (quotas) and of 19 bytes (redis-cell's).
func TestString_encoding(t *testing.T) {
	for _, row := range []struct {
		text            string
		quota, throttle bool // the length is that of a quota, of redis-cell's strings
	}{
		{"", false, false}, {"5", false, false}, {"-1234567890123456789", false, false}, {strings.Repeat("x", 18), false, false},
		{strings.Repeat("x", 19), false, true}, {strings.Repeat("x", 20), false, false}, {strings.Repeat("x", 21), true, false},
		{strings.Repeat("x", 36), true, false}, {strings.Repeat("x", 37), false, false}, {strings.Repeat("x", 1000), false, false},
	} {
		for _, line := range []string{"GO.QUOTA k 1 1", "GO.QUOTA_RO k 1 1", "GO.ALL k QUOTA 1 1", "GO.THROTTLE k 1 1 1", "CL.THROTTLE k 1 1 1", "GO.ALL_RO k THROTTLE 1 1 1",
			"GO.WINDOW k 1 1", "GO.LEASE k 1 1 a", "GO.RELEASE k a", "GO.ALL k LEASE 1 1 a"} {
			h := loaded(t)
			h.Put("k", textOf(row.text))
			h.ResetCounts()
			before := dump(h)
			if got := h.Call(strings.Fields(line)...); !isError(got) {
				t.Errorf("%s on %.20q: %v", line, row.text, got)
			}
			wantNothing(t, h, line, before)
			looks := row.quota && strings.Contains(line, "QUOTA") || row.throttle && strings.Contains(line, "THROTTLE")
			if n := h.Count(fakehost.Looked); n != 0 && !looks {
				t.Errorf("%s looks at %.20q", line, row.text)
			}
		}
	}
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

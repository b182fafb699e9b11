package cgo_test

import (
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	foreign   = "ERR the hash at this key is not a rate limiter"
	damaged   = "ERR the rate limiter at this key is damaged"
)

// hashOf makes the key k a hash. The value T is the TAT one second from now.
func hashOf(fieldsAndValues ...string) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		words := make([]string, len(fieldsAndValues))
		for i, word := range fieldsAndValues {
			if i%2 == 1 && word == "T" {
				word = tat(h, 1_000_000_000)
			}
			words[i] = word
		}
		h.PutHash("k", words...)
	}
}

// cells makes the key k a hash of n cells. Each one is in use for one more second.
func cells(n int) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		h.PutHash("k")
		for i := range n {
			h.PutField("k", strconv.Itoa(4*i), tat(h, 1_000_000_000))
			h.PutField("k", strconv.Itoa(4*i+1), "2")
		}
	}
}

// A hash may hold several cells. GO.THROTTLE uses the first one. The key lives until the last cell
// is void.
func TestHash_cells(t *testing.T) {
	// two makes k a hash of two cells: the first in use for 4 s more, the second for after ns more.
	two := func(after int64) func(*fakehost.Host) {
		return func(h *fakehost.Host) {
			h.PutHash("k", "0", tat(h, 4_000_000_000), "1", "2", "4", tat(h, after), "5", "3")
		}
	}
	wantEffects(t, []effectRow{
		{"the expiry is the second cell's", two(90_000_000_000),
			"GO.THROTTLE k 15 30 60", "[0 16 13 -1 6]", "HSET k 0 T+6000000000; PEXPIREAT k M+98000"},
		{"the expiry is the first cell's", two(5_000_000_000),
			"GO.THROTTLE k 15 30 60", "[0 16 13 -1 6]", "HSET k 0 T+6000000000; PEXPIREAT k M+14000"},
		{"the first is given back and the second stays", two(90_000_000_000),
			"GO.THROTTLE k 15 30 60 -9", "[0 16 16 -1 0]", "HSET k 0 T+0; PEXPIREAT k M+98000"},
		{"the key goes when both are void", two(0),
			"GO.THROTTLE k 15 30 60 -2", "[0 16 16 -1 0]", "DEL k"},
		{"the key stays for a part of a nanosecond", func(h *fakehost.Host) {
			h.PutHash("k", "0", tat(h, 4_000_000_000), "1", "2", "4", tat(h, 0), "5", "60", "6", "1", "7", "7")
		}, "GO.THROTTLE k 15 30 60 -2", "[0 16 16 -1 0]", "HSET k 0 T+0; PEXPIREAT k M+8001"},
		{"a changed rate of the first", two(90_000_000_000),
			"GO.THROTTLE k 15 7 60", "[0 16 13 -1 26]",
			"HSET k 0 T+25714285714 1 60 2 2 3 7; PEXPIREAT k M+105000"},
		{"peek", two(90_000_000_000), "GO.THROTTLE k 15 30 60 0", "[0 16 14 -1 4]", ""},
		{"denied", two(90_000_000_000), "GO.THROTTLE k 0 30 60", "[1 1 0 4 4]", ""},
		{"32 cells", cells(32),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 3]", "HSET k 0 T+3000000000; PEXPIREAT k M+11000"},
		{"32 cells given back", func(h *fakehost.Host) {
			cells(32)(h)
			for i := 1; i < 32; i++ {
				h.PutField("k", strconv.Itoa(4*i), tat(h, 0))
			}
		}, "GO.THROTTLE k 15 30 60 -1", "[0 16 16 -1 0]", "DEL k"},
	})
}

// The module stops at the first cell that is absent: a foreign hash costs no more than a limiter.
func TestHash_foreignCost(t *testing.T) {
	for _, fields := range []string{"x y", "x y 40 1", "4 1", "8 1000 9 1"} {
		h := loaded(t)
		h.PutHash("k", append([]string{"0", tat(h, 1000), "1", "2"}, strings.Fields(fields)...)...)
		h.ResetAPICalls()
		wantReply(t, h, "GO.THROTTLE k 15 30 60", foreign)
		if n := h.APICallsOf("HashGet"); n > 5 {
			t.Errorf("%s: %d look-ups", fields, n)
		}
	}
}

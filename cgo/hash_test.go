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

// No transcript shows API calls: the module stops at the first cell that is absent, so a foreign hash costs no more
// than a limiter.
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

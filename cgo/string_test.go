package cgo_test

import (
	"strings"
	"testing"
)

// Encodings and API calls: the module does not look at a string whose length says that it is not the module's, so the server
// keeps the string's encoding.
//
// The module must look at strings of 21 to 36 bytes (GO.QUOTA) and of 19 bytes (GO.THROTTLE). The
// server then turns the string into a raw one. Its value stays.
func TestString_encoding(t *testing.T) {
	quota := []string{"GO.QUOTA k 1 1", "GO.QUOTA k 1 1 0", "GO.QUOTA k 1 1 -1", "GO.QUOTA_RO k 1 1", "GO.ALL k QUOTA 1 1", "GO.ALL_RO k QUOTA 1 1"}
	throttle := []string{"GO.THROTTLE k 1 1 1", "CL.THROTTLE k 1 1 1", "GO.THROTTLE k 1 1 1 0", "GO.THROTTLE_RO k 1 1 1", "GO.ALL k THROTTLE 1 1 1"}
	other := []string{"GO.WINDOW k 1 1", "GO.WINDOW_RO k 1 1", "GO.LEASE k 1 1 a", "GO.LEASE_RO k 1 1 a", "GO.RELEASE k a", "GO.ALL k WINDOW 1 1", "GO.ALL k LEASE 1 1 a"}
	for _, row := range []struct {
		text, encoding  string
		quota, throttle bool // the length is that of a quota, of redis-cell's strings
	}{
		{"", "embstr", false, false},
		{"5", "int", false, false},
		{"-7", "int", false, false},
		{"12345678901234567", "int", false, false},
		{"some short text", "embstr", false, false},
		{"1234567890123456789", "int", false, true},
		{"-1234567890123456789", "int", false, false},
		{strings.Repeat("x", 18), "embstr", false, false},
		{strings.Repeat("x", 19), "embstr", false, true},
		{strings.Repeat("x", 20), "embstr", false, false},
		{strings.Repeat("x", 21), "embstr", true, false},
		{strings.Repeat("x", 36), "embstr", true, false},
		{strings.Repeat("x", 37), "embstr", false, false},
		{strings.Repeat("x", 44), "embstr", false, false},
		{strings.Repeat("x", 1000), "raw", false, false},
	} {
		look := func(lines []string, looks bool) {
			for _, line := range lines {
				h := loaded(t)
				h.PutString("k", row.text)
				h.Expire("k", h.Now()/1000+1000)
				h.ResetAPICalls()
				before := h.Dump()
				got := call(h, line)
				if row.text == "1234567890123456789" && looks && strings.Contains(line, "THROTTLE") {
					continue // redis-cell's: the call adopts it
				}
				if got.Err == "" {
					t.Errorf("%s on %.20q: %v", line, row.text, got)
				}
				wantNothing(t, h, line, before)
				if looks {
					continue
				}
				if got := h.Encoding("k"); got != row.encoding || h.APICallsOf("StringDMA") != 0 {
					t.Errorf("%s on %.20q: encoding %s, was %s", line, row.text, got, row.encoding)
				}
			}
		}
		look(quota, row.quota)
		look(throttle, row.throttle)
		look(other, false)
	}
}

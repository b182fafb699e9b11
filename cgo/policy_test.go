package cgo_test

import (
	"strings"
	"testing"
)

// Servers word a refused CONFIG SET in their own ways. The policies in force stay so.
func TestPolicy_wrongValue(t *testing.T) {
	h := loaded(t)
	h.ConfigSet("gothrottle.policies", "a WINDOW 9 60s")
	if got := h.ConfigSet("gothrottle.policies", "a WINDOW 99 60s; b QUOTA 5"); got != "policy 2 (b): 'QUOTA' needs limit and period" {
		t.Error(got)
	}
	wantReply(t, h, "GO.POLICY a:k", "[0 9 8 -1 60 0 [0 9 8 -1 60]]")
	wantReply(t, h, "GO.POLICY b:k", "ERR no policy for the key 'b:k': its name, up to the first colon, is not in gothrottle.policies")
}

// No reply shows it: the server sees the key, so it never asks the module for it.
func TestPolicy_key(t *testing.T) {
	h := loaded(t)
	for _, name := range []string{"GO.POLICY", "GO.POLICY_RO"} {
		if got := strings.Join(h.Keys(name, "sample:k", "1"), " "); got != "sample:k" {
			t.Errorf("%s: keys %q", name, got)
		}
		h.ResetAPICalls()
		h.Call(name, "sample:k")
		if n := h.APICallsOf("IsKeysPositionRequest"); n != 0 {
			t.Errorf("%s asks %d times whether it is asked", name, n)
		}
	}
}

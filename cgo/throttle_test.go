package cgo_test

import (
	"strings"
	"testing"
)

// No server lets a transcript do this: it refuses calls with too few words. The module refuses them too, so that it never
// reads a missing word.
func TestThrottle_arity(t *testing.T) {
	h := loaded(t)
	h.LeaveArity()
	for _, name := range []string{"GO.THROTTLE", "CL.THROTTLE"} {
		want := "ERR wrong number of arguments for '" + strings.ToLower(name) + "' command"
		for _, line := range []string{"", " k", " k 15", " k 15 30"} {
			wantReply(t, h, name+line, want)
			wantNothing(t, h, name+line, nil)
		}
	}
	wantReply(t, h, "CL.THROTTLE k 15 30 60 1 1", "ERR wrong number of arguments for 'cl.throttle' command")
}

// No transcript shows API calls, nor has 100,000 calls: however many forced calls there are, a window has at most 121
// entries, whatever its limit, and a call costs no more than it does in a new window.
func TestForce_bounded(t *testing.T) {
	calls := rounds(100_000)
	h := loaded(t)
	forced := h.Prepare(strings.Fields("GO.WINDOW k 5 60 3 FORCE")...)
	defer forced.Free()
	for range calls {
		forced.Run()
		h.Advance(3 * 60 * second / int64(calls))
	}
	if got, want := h.Reply().String(), "[0 5 0 -1 60]"; got != want {
		t.Errorf("a forced call: %s, want %s", got, want)
	}
	if n := len(h.ZsetOf("k")); n < 100 || n > 121 {
		t.Errorf("%d entries", n)
	}
	h.ResetAPICalls()
	forced.Run()
	if n := h.APICalls(); n > 60 {
		t.Errorf("%d API calls", n)
	}
	wantReply(t, h, "GO.WINDOW k 5 60 0", "[1 5 0 60 60]")
}

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

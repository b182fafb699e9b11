package cgo_test

import (
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// run makes these calls and then lets pause µs pass.
func run(pause int64, lines ...string) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		for _, line := range lines {
			if got := call(h, line); got.Err != "" {
				panic(line + ": " + got.Err)
			}
		}
		h.Advance(pause)
	}
}

// No transcript has listeners: one that hears an event may make a call, which runs inside the first one.
func TestEffects_reentrance(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct{ inner, reply string }{
		{"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]"},    // on the same key
		{"GO.THROTTLE other 15 7 60", "[0 16 15 -1 9]"}, // on another key
		{"CL.THROTTLE k 15 30 60 99", "[1 16 15 -1 2]"}, // denied
		{"GO.THROTTLE k 15 30 60 -1", "[0 16 16 -1 0]"}, // deletes the key
		{"GO.THROTTLE k 1 2 3 4 x 6 7 8 9 10 11", "ERR unknown option 'x': only MS, UPTO, FORCE, RESERVE or LOCKOUT may follow"},
	} {
		h.Delete("k")
		h.Delete("other")
		r := copyOf(h)
		var heard []string
		h.Listen(func(e fakehost.Event) {
			heard = append(heard, e.String())
			if e.Name == "hset" {
				wantReply(t, h, row.inner, row.reply)
			}
		})
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
		// A listener does not hear the events of its own calls.
		if got := strings.Join(heard, ","); got != "hset k,expire k" {
			t.Errorf("%s: heard %s", row.inner, got)
		}
		for _, words := range h.EffectWords() {
			if _, err := r.apply(words); err != nil {
				t.Errorf("%s: %v", row.inner, err)
			}
		}
		r.wantSame(t, h, row.inner, "k", "other")
	}
}

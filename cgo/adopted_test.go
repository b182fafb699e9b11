package cgo_test

import "testing"

// redis-cell's key is one limiter, the first cell; a second one of that key is independent.
func TestMThrottle_adoptedRepeats(t *testing.T) {
	for _, row := range []effectRow{
		{name: "the second cell is its own", line: "GO.MTHROTTLE 2 k k 15 30 60 1 15 30 60 1",
			reply: "[0 -1 -1 [0 16 10 -1 12] [0 16 15 -1 2]]"},
		{name: "a peek at the first cell does not forget what it holds", line: "GO.MTHROTTLE 2 k k 15 30 60 0 15 30 60 1",
			reply: "[0 -1 -1 [0 16 11 -1 10] [0 16 15 -1 2]]"},
	} {
		h := loaded(t)
		h.PutString("k", tat(h, 10_000_000_000))
		r := copyOf(h, "k")
		wantReply(t, h, row.line, row.reply)
		r.follow(t, h, row.name, "k")
		if got := call(h, "GO.THROTTLE_RO k 15 30 60 0").Ints()[4]; got < 10 {
			t.Errorf("%s: in use for %d s more, was for 10", row.name, got)
		}
	}
}

package funnel_test

// A transcript's clock only goes forward.

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// runClock moves both clocks step by step. A step has three bytes: two say how far the wall
// clock moves, and one says how far the monotonic clock moves.
func runClock(t *testing.T, steps []byte) {
	var c funnel.Clock
	wall, mono, shown := funnel.Micros(1<<20), funnel.Micros(0), funnel.Micros(0)
	var since, lead funnel.Micros // when the wall clock fell behind, and what the clock said then
	behind := false
	for ; len(steps) >= 3; steps = steps[3:] {
		wall = max(wall+funnel.Micros(int16(binary.BigEndian.Uint16(steps))), 0)
		mono += funnel.Micros(steps[2])
		asked := false
		now := c.Now(wall, func() funnel.Micros { asked = true; return mono })
		switch {
		case now < shown:
			t.Fatalf("ran backward from %d to %d", shown, now)
		case now < wall:
			t.Fatalf("says %d where the wall clock says %d", now, wall)
		case asked != (behind || wall < shown):
			t.Fatalf("the monotonic clock was asked: %v; behind: %v", asked, behind)
		}
		if now > wall {
			if !behind {
				since, lead = mono, shown
			}
			// Half speed. Rounding errors do not add up.
			if twice := 2 * (now - lead); twice > mono-since || twice < mono-since-1 {
				t.Fatalf("%d us by the monotonic clock made %d", mono-since, now-lead)
			}
		}
		behind, shown = now > wall, now
	}
}

// While the wall clock is behind, the clock runs at half speed by the monotonic clock. Otherwise it follows the wall clock.
func TestClock(t *testing.T) {
	eachSeed(t, 500, func(t *testing.T, r *rand.Rand) {
		steps := make([]byte, 300)
		for i := range steps {
			steps[i] = byte(r.Uint32())
			if i%3 == 0 && r.IntN(4) > 0 {
				steps[i] = 0 // less than 256 us forward
			}
		}
		runClock(t, steps)
	})
}

func TestClock_monotonicRunsBackward(t *testing.T) {
	var clock funnel.Clock
	for i, s := range []struct{ wall, mono, want funnel.Micros }{
		{1000, 0, 1000}, {400, 500, 1000}, {500, 600, 1050}, {500, 100, 1050}, {500, 700, 1100},
	} {
		if got := clock.Now(s.wall, func() funnel.Micros { return s.mono }); got != s.want {
			t.Errorf("step %d: %d, want %d", i, got, s.want)
		}
	}
}

func FuzzClock(f *testing.F) {
	// Forward, not at all, back by 100, on until both agree, not at all, forward.
	f.Add([]byte{0, 100, 9, 0, 0, 9, 0xff, 0x9c, 9, 0, 40, 40, 0, 100, 100, 0, 60, 60, 0, 0, 9, 0, 9, 9})
	// Back, back again while behind, a monotonic clock that has stopped, a step over the lead.
	f.Add([]byte{0xff, 0x9c, 1, 0, 3, 3, 0xff, 0, 1, 0, 9, 0, 0, 1, 1, 0x7f, 0, 1, 0, 1, 1})
	f.Fuzz(runClock)
}

package funnel_test

import (
	"encoding/binary"
	"testing"

	"gothrottle/funnel"
)

// unasked is the monotonic time of a step that must not ask for it.
const unasked = -1

// Each step is what the wall clock says, what the monotonic clock says, and what is told.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		rule  string
		steps [][3]funnel.Micros
	}{
		{"Tells the wall clock's time while that runs forward", [][3]funnel.Micros{
			{0, unasked, 0},
			{1000, unasked, 1000},
			{1000, unasked, 1000},
			{1001, unasked, 1001},
			{9000, unasked, 9000},
		}},
		{"Runs at half speed while behind, catches up and follows", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 50, 1000},
			{500, 150, 1050},
			{600, 250, 1100},
			{1598, 1248, 1599},
			{1600, 1250, 1600},
			{1700, unasked, 1700},
		}},
		{"Follows the wall clock again from where both agree", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{900, 0, 1000},
			{1050, 100, 1050},
			{1050, unasked, 1050},
			{1051, unasked, 1051},
		}},
		{"Half microseconds are not lost", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{0, 0, 1000},
			{1, 1, 1000},
			{2, 2, 1001},
			{3, 3, 1001},
			{4, 4, 1002},
		}},
		{"A step forward is followed at once", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{5000, unasked, 5000},
		}},
		{"A step forward is followed at once also while behind", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{500, 100, 1050},
			{5000, 110, 5000},
			{5001, unasked, 5001},
		}},
		{"A step forward that stays behind leaves the clock at half speed", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{1049, 100, 1050},
			{1050, 101, 1050},
		}},
		{"A second step back while behind changes nothing", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{500, 100, 1050},
			{100, 200, 1100},
			{200, 300, 1150},
		}},
		{"A second step back after catching up counts anew", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{900, 0, 1000},
			{2000, 1100, 2000},
			{1900, 1200, 2000},
			{2000, 1300, 2050},
		}},
		{"A wall clock that stands still while behind stops nothing", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{400, 100, 1050},
			{400, 300, 1150},
		}},
		{"A monotonic clock that runs backward does no harm", [][3]funnel.Micros{
			{1000, unasked, 1000},
			{400, 500, 1000},
			{500, 600, 1050},
			{500, 100, 1050},
			{500, 700, 1100},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var clock funnel.Clock
			for i, s := range c.steps {
				wall, mono, want := s[0], s[1], s[2]
				asked := false
				got := clock.Now(wall, func() funnel.Micros { asked = true; return mono })
				if got != want || asked != (mono != unasked) {
					t.Errorf("step %d: Now(%d, %d) = %d, want %d; asked: %v", i, wall, mono, got, want, asked)
				}
			}
		})
	}
}

// FuzzClock moves both clocks step by step. A step has three bytes: two say how far the wall
// clock moves, and one says how far the monotonic clock moves.
func FuzzClock(f *testing.F) {
	// Forward, not at all, back by 100, on until both agree, not at all, forward.
	f.Add([]byte{0, 100, 9, 0, 0, 9, 0xff, 0x9c, 9, 0, 40, 40, 0, 100, 100, 0, 60, 60, 0, 0, 9, 0, 9, 9})
	// Back, back again while behind, a monotonic clock that stands, a step over the lead.
	f.Add([]byte{0xff, 0x9c, 1, 0, 3, 3, 0xff, 0, 1, 0, 9, 0, 0, 1, 1, 0x7f, 0, 1, 0, 1, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var c funnel.Clock
		wall, mono, told := funnel.Micros(1<<20), funnel.Micros(0), funnel.Micros(0)
		var since, lead funnel.Micros // when the wall clock fell behind, and what was told then
		behind := false
		for ; len(steps) >= 3; steps = steps[3:] {
			wall = max(wall+funnel.Micros(int16(binary.BigEndian.Uint16(steps))), 0)
			mono += funnel.Micros(steps[2])
			asked := false
			now := c.Now(wall, func() funnel.Micros { asked = true; return mono })
			switch {
			case now < told:
				t.Fatalf("ran backward from %d to %d", told, now)
			case now < wall:
				t.Fatalf("told %d where the wall clock says %d", now, wall)
			case asked != (behind || wall < told):
				t.Fatalf("the monotonic clock was asked: %v; behind: %v", asked, behind)
			}
			if now > wall {
				if !behind {
					since, lead = mono, told
				}
				// Half speed. Rounding errors do not add up.
				if twice := 2 * (now - lead); twice > mono-since || twice < mono-since-1 {
					t.Fatalf("%d us by the monotonic clock made %d", mono-since, now-lead)
				}
			}
			behind, told = now > wall, now
		}
	})
}

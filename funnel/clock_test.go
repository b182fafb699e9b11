package funnel

import "testing"

// unasked is the monotonic time of a step that must not ask for it.
const unasked = -1

// Each step is what the wall clock says, what the monotonic one says, what is told.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		rule  string
		steps [][3]int64
	}{
		{"Tells the wall clock's time while that runs forward", [][3]int64{
			{0, unasked, 0},
			{1000, unasked, 1000},
			{1000, unasked, 1000},
			{1001, unasked, 1001},
			{9000, unasked, 9000},
		}},
		{"Runs at half speed while behind, catches up and follows", [][3]int64{
			{1000, unasked, 1000},
			{400, 50, 1000},
			{500, 150, 1050},
			{600, 250, 1100},
			{1598, 1248, 1599},
			{1600, 1250, 1600},
			{1700, unasked, 1700},
		}},
		{"Goes on from where they agree", [][3]int64{
			{1000, unasked, 1000},
			{900, 0, 1000},
			{1050, 100, 1050},
			{1050, unasked, 1050},
			{1051, unasked, 1051},
		}},
		{"Half microseconds are not lost", [][3]int64{
			{1000, unasked, 1000},
			{0, 0, 1000},
			{1, 1, 1000},
			{2, 2, 1001},
			{3, 3, 1001},
			{4, 4, 1002},
		}},
		{"A step forward is followed at once", [][3]int64{
			{1000, unasked, 1000},
			{5000, unasked, 5000},
		}},
		{"A step forward is followed at once also while behind", [][3]int64{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{500, 100, 1050},
			{5000, 110, 5000},
			{5001, unasked, 5001},
		}},
		{"A step forward that does not reach is half speed still", [][3]int64{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{1049, 100, 1050},
			{1050, 101, 1050},
		}},
		{"A second step back while behind changes nothing", [][3]int64{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{500, 100, 1050},
			{100, 200, 1100},
			{200, 300, 1150},
		}},
		{"A second step back after catching up counts anew", [][3]int64{
			{1000, unasked, 1000},
			{900, 0, 1000},
			{2000, 1100, 2000},
			{1900, 1200, 2000},
			{2000, 1300, 2050},
		}},
		{"A wall clock that stands still while behind stops nothing", [][3]int64{
			{1000, unasked, 1000},
			{400, 0, 1000},
			{400, 100, 1050},
			{400, 300, 1150},
		}},
		{"A monotonic clock that is not one does no harm", [][3]int64{
			{1000, unasked, 1000},
			{400, 500, 1000},
			{500, 600, 1050},
			{500, 100, 1050},
			{500, 700, 1100},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var clock Clock
			for i, s := range c.steps {
				wall, mono, want := s[0], s[1], s[2]
				asked := false
				got := clock.Now(wall, func() int64 { asked = true; return mono })
				if got != want || asked != (mono != unasked) {
					t.Errorf("step %d: Now(%d, %d) = %d, want %d; asked: %v", i, wall, mono, got, want, asked)
				}
			}
		})
	}
}

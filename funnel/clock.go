package funnel

// Clock turns a wall clock, which may be set back, into one that never runs
// backward. While the wall clock is behind what was already told, time goes on at
// half speed by a monotonic clock until the two agree; a step forward is followed
// at once. The zero value is ready. All times are microseconds.
//
// Half speed and not a standstill: limiters go on draining, and the lead shrinks.
type Clock struct {
	last   int64 // the latest time told
	behind bool  // the wall clock was behind at the last reading
	base   int64 // time told when the wall clock was first seen behind
	mono   int64 // monotonic time at that moment
}

// Now returns the time for a wall-clock reading. monotonic is called only while the
// wall clock is behind.
func (c *Clock) Now(wall int64, monotonic func() int64) int64 {
	if wall >= c.last && !c.behind {
		c.last = wall
		return wall
	}
	return c.slow(wall, monotonic())
}

func (c *Clock) slow(wall, mono int64) int64 {
	if !c.behind {
		c.behind, c.base, c.mono = true, c.last, mono
	}
	told := max(c.base+(mono-c.mono)/2, c.last)
	if wall >= told {
		told, c.behind = wall, false
	}
	c.last = told
	return told
}

package funnel

// Clock turns a wall clock, which may be set back, into a clock that never runs backward. While the wall clock is
// behind a time that it has already returned, the clock runs at half speed by a monotonic clock, until both agree. A
// step forward is followed at once. The zero value is ready.
//
// The clock slows down and does not stand still, so limiters go on draining and its lead over the wall clock shrinks.
//
// The fields are exported for package cgo, whose C side shows the lead in INFO.
type Clock struct {
	Last   Micros // the latest time returned
	Base   Micros // the time returned when the wall clock was first seen behind
	Mono   Micros // the monotonic time at that moment
	Behind int64  // 1: the wall clock was behind at the last reading
}

// Now returns the time for a wall-clock reading. Now calls monotonic only while the wall clock is behind.
func (c *Clock) Now(wall Micros, monotonic func() Micros) Micros {
	if wall >= c.Last && c.Behind == 0 {
		c.Last = wall
		return wall
	}
	return c.slow(wall, monotonic())
}

func (c *Clock) slow(wall, mono Micros) Micros {
	if c.Behind == 0 {
		c.Behind, c.Base, c.Mono = 1, c.Last, mono
	}
	time := max(c.Base+(mono-c.Mono)/2, c.Last)
	if wall >= time {
		time, c.Behind = wall, 0
	}
	c.Last = time
	return time
}

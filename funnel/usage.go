package funnel

// This file shows what is in use, for someone who looks at a limiter without calling it.

// Drain returns how long it takes from now until nothing is in use, in ns, rounded up. It is 0 if nothing is in use.
func (s *ThrottleState) Drain(now Nanos) Nanos {
	if s.empty(now) {
		return 0
	}
	return s.left(now).ceil()
}

// InUse returns the units in use at now, saturating at 2^63-1. A unit that has partly drained
// counts as one. The state's rate must be known.
func (s *ThrottleState) InUse(now Nanos) int64 {
	if s.empty(now) {
		return 0
	}
	return s.Rate.unitsUp(s.left(now))
}

// PerMillis returns the rate as count units per period, with the shortest period of whole
// milliseconds. The count is at most 10^18. If the rate is that of a period of whole milliseconds in
// lowest terms, neither number is larger than that of the rate that was given.
func (r Rate) PerMillis() (count, millis int64) {
	r = r.Reduced()
	a := gcd(int64(r.Period), int64(Millisecond))
	return r.Count * (int64(Millisecond) / a), int64(r.Period) / a
}

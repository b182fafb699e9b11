package funnel

import "math"

// Nanos is a number of nanoseconds: an instant since the Unix epoch, or a length of time.
type Nanos int64

// Micros is a number of microseconds: an instant since the Unix epoch, or a length of
// time. A float64 holds one exactly up to 2^53, which is in the year 2255.
type Micros int64

// Lengths of time.
const (
	Microsecond Nanos = 1_000
	Millisecond Nanos = 1_000_000
	Second      Nanos = 1_000_000_000
)

// maxNanos is the last instant that Nanos can hold: in the year 2262.
const maxNanos Nanos = math.MaxInt64

// Nanos returns the same time in nanoseconds, saturating at 2^63-1. t >= 0.
func (t Micros) Nanos() Nanos {
	if t > Micros(maxNanos/Microsecond) {
		return maxNanos
	}
	return Nanos(t) * Microsecond
}

// Micros returns the same time in whole microseconds, rounded toward zero.
func (t Nanos) Micros() Micros { return Micros(t / Microsecond) }

package main

import "gothrottle/funnel"

// The traffic of all pictures. It begins at the Unix epoch, so the windows that GO.QUOTA aligns
// end at multiples of the period on the axis.
const (
	seconds = 90 // length of the time axis

	burstAt, burstCalls      = 24, 16
	overloadAt, overloadEnds = 54, 74
	overloadCalls            = 2 * (overloadEnds - overloadAt)
)

// The limit of most pictures, and its sustained rate: limit units per period. One unit drains
// in 2 s.
const (
	limit  = 10
	period = 20 // seconds
)

func at(seconds float64) funnel.Nanos { return funnel.Nanos(seconds * 1e9) }

// arrivals returns when the calls come: some below the rate, a burst at one instant, a pause, an
// overload of four times the rate, and some below the rate again.
func arrivals() (times []funnel.Nanos) {
	steady := func(from, to float64) {
		for t := from; t < to; t += 2.5 {
			times = append(times, at(t))
		}
	}
	steady(0.5, 20)
	for range burstCalls {
		times = append(times, at(burstAt+0.5))
	}
	for i := range overloadCalls {
		times = append(times, at(overloadAt+0.25+0.5*float64(i)))
	}
	steady(overloadEnds+2.5, seconds)
	return times
}

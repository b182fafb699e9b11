package main

import (
	"errors"
	"slices"

	"gothrottle/tests/world"
)

// stepOf returns the number of the step at which a run found a difference, -1 if it found none.
func stepOf(err error) int {
	var d *difference
	if errors.As(err, &d) {
		return d.step
	}
	return -1
}

// shrink returns a shorter schedule that fails as well: without the steps after number last, then without other steps, then
// with fewer calls. fails runs a schedule.
func shrink(s schedule, last int, fails func(*schedule) bool) schedule {
	try := func(steps []step) bool {
		shorter := s
		shorter.Steps = steps
		return fails(&shorter)
	}
	if s.Steps = slices.Clone(s.Steps); last >= 0 && last+1 < len(s.Steps) && try(s.Steps[:last+1]) {
		s.Steps = s.Steps[:last+1]
	}
	for n := len(s.Steps) + 1; len(s.Steps) < n; {
		n = len(s.Steps)
		s.Steps = world.Thin(s.Steps, try)
	}
	for i := range s.Steps {
		s.Steps[i].Calls = world.Thin(s.Steps[i].Calls, func(calls []words) bool {
			steps := slices.Clone(s.Steps)
			steps[i].Calls = calls
			return len(calls) > 0 && try(steps)
		})
	}
	return s
}

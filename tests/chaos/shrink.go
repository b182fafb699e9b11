package main

import (
	"errors"
	"slices"
)

// stepOf returns the number of the step at which a run found a difference, -1 if it found none.
func stepOf(err error) int {
	var d *difference
	if errors.As(err, &d) {
		return d.step
	}
	return -1
}

// shrink returns a shorter schedule that fails as well: without the steps after number last, then
// without chunks of steps, then without single steps, then with fewer calls. fails runs a schedule;
// over says when to end.
func shrink(s schedule, last int, fails func(*schedule) bool, over func() bool) schedule {
	try := func(steps []step) bool {
		shorter := s
		shorter.Steps = steps
		if over() || !fails(&shorter) {
			return false
		}
		s = shorter
		return true
	}
	if last >= 0 && last+1 < len(s.Steps) {
		try(slices.Clone(s.Steps[:last+1]))
	}
	for size := len(s.Steps) / 2; size > 0 && !over(); {
		if !without(&s, size, try) || size > len(s.Steps) {
			size /= 2
		}
	}
	for i := 0; i < len(s.Steps) && !over(); i++ {
		shrinkCalls(&s, i, try)
	}
	return s
}

// without leaves chunks of steps out, the last one first. It reports whether that went well once.
func without(s *schedule, size int, try func([]step) bool) (shorter bool) {
	for at := len(s.Steps) - size; at >= 0; at -= size {
		if at+size <= len(s.Steps) && try(slices.Delete(slices.Clone(s.Steps), at, at+size)) {
			shorter = true
		}
	}
	return shorter
}

// shrinkCalls leaves calls of step i out.
func shrinkCalls(s *schedule, i int, try func([]step) bool) {
	for size := len(s.Steps[i].Calls) / 2; size > 0; size /= 2 {
		for at := len(s.Steps[i].Calls) - size; at >= 0; at -= size {
			calls := s.Steps[i].Calls
			if len(calls) <= size || at+size > len(calls) {
				continue
			}
			steps := slices.Clone(s.Steps)
			steps[i].Calls = slices.Delete(slices.Clone(calls), at, at+size)
			try(steps)
		}
	}
}

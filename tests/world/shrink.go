package world

import "slices"

// Thin leaves out of a list what it can as long as fails is true: chunks of half of the list first, single elements last.
func Thin[T any](all []T, fails func([]T) bool) []T {
	for size := max(len(all)/2, 1); size > 0; size /= 2 {
		for at := len(all) - size; at >= 0; at -= size {
			if shorter := slices.Delete(slices.Clone(all), at, at+size); fails(shorter) {
				all = shorter
			}
		}
	}
	return all
}

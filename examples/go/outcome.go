package examples

import (
	"errors"

	"gothrottle/throttle"
)

// outcome returns the labels of a decision. They have few values: keys and limits would make a time series each.
func outcome(e throttle.Event) (verb, result, source string) {
	switch {
	case errors.Is(e.Err, throttle.ErrUnavailable):
		return string(e.Verb), "unavailable", "none"
	case e.Err != nil:
		return string(e.Verb), "error", "none"
	case e.Result.Allowed:
		return string(e.Verb), "allowed", string(e.Result.Source)
	}
	return string(e.Verb), "denied", string(e.Result.Source)
}

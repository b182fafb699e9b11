package commands

import (
	"math"

	"gothrottle/funnel"
)

// Bounds of the arguments.
const (
	maxLimit    = funnel.MaxLimit
	maxQuantity = funnel.MaxLimit + 1
	maxPeriod   = funnel.MaxPeriod
)

// number is the outcome of reading an integer.
type number int8

const (
	integer    number = iota
	notInteger        // not of the form [+-]digits
	tooLarge          // an integer, but not of 64 bits
)

// parseInt reads an integer as redis-cell does: one optional sign, then decimal digits only;
// leading zeros and -0 are fine.
func parseInt(s string) (int64, number) {
	digits := s
	negative := false
	if s != "" && s[0] <= '-' {
		negative = s[0] == '-'
		if negative || s[0] == '+' {
			digits = s[1:]
		}
	}
	if uint(len(digits))-1 >= 18 { // none, or more than fit for certain
		return parseLong(digits, negative)
	}
	n := int64(0)
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, notInteger
		}
		n = n*10 + int64(d)
	}
	if negative {
		n = -n
	}
	return n, integer
}

// parseLong reads digits of any number.
func parseLong(digits string, negative bool) (int64, number) {
	var n uint64
	overflow := false
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, notInteger
		}
		if overflow = overflow || n > math.MaxUint64/10-1; !overflow {
			n = n*10 + uint64(d)
		}
	}
	switch {
	case digits == "":
		return 0, notInteger
	case overflow || n > 1<<63 || n == 1<<63 && !negative:
		return 0, tooLarge
	case negative:
		return -int64(n), integer
	}
	return int64(n), integer
}

// canonicalInt reads an integer >= 0 without a sign or leading zeros.
func canonicalInt(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n, form := parseInt(s)
	return n, form == integer
}

// intArg reads an integer argument within [low, high].
func intArg(word string, low, high int64, bad, outside ErrorCode) (int64, ErrorCode) {
	n, form := parseInt(word)
	switch {
	case form == notInteger:
		return 0, bad
	case form == tooLarge || n < low || n > high:
		return 0, outside
	}
	return n, NoError
}

func quantityArg(word string) (int64, ErrorCode) {
	return intArg(word, -maxQuantity, maxQuantity, ErrQuantityNotInteger, ErrQuantityRange)
}

func limitArg(word string) (int64, ErrorCode) {
	return intArg(word, 1, maxLimit, ErrLimitNotInteger, ErrLimitRange)
}

func periodArg(word string, unit funnel.Nanos) (funnel.Nanos, ErrorCode) {
	return spanArg(word, unit, ErrPeriodNotInteger, ErrPeriodRangeSeconds, ErrPeriodRangeMillis)
}

// spanArg reads a length of time in units of unit.
func spanArg(word string, unit funnel.Nanos, bad, outsideSeconds, outsideMillis ErrorCode) (funnel.Nanos, ErrorCode) {
	outside := outsideSeconds
	if unit == funnel.Millisecond {
		outside = outsideMillis
	}
	return timeArg(word, unit, 1, bad, outside)
}

// timeArg reads a time in units of unit: least units to maxPeriod.
func timeArg(word string, unit funnel.Nanos, least int64, bad, outside ErrorCode) (funnel.Nanos, ErrorCode) {
	n, err := intArg(word, least, longest(unit), bad, outside)
	return funnel.Nanos(n) * unit, err
}

// longest returns maxPeriod in units of unit, which is a second or a millisecond.
func longest(unit funnel.Nanos) int64 {
	if unit == funnel.Second {
		return int64(maxPeriod / funnel.Second)
	}
	return int64(maxPeriod / funnel.Millisecond)
}

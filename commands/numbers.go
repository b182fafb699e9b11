package commands

import (
	"math"
	"strings"

	"gothrottle/funnel"
)

// Bounds of the arguments.
const (
	maxLimit    = int64(funnel.MaxLimit)
	maxQuantity = maxLimit + 1
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
	if n := digits(s); n >= 0 {
		return n, integer
	}
	return parseLong(s)
}

// digits reads 1 to 18 digits, which fit for certain. It returns -1 for any other word.
func digits(s string) (n int64) {
	if uint(len(s))-1 >= 18 {
		return -1
	}
	for i := range len(s) {
		d := uint64(s[i]) - '0'
		if d > 9 {
			return -1
		}
		n = n*10 + int64(d)
	}
	return n
}

// parseLong reads a sign and digits of any number.
func parseLong(s string) (int64, number) {
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
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

// looksNumeric reports whether a word is a quantity, where an option may follow instead.
func looksNumeric(word string) bool {
	return word == "" || word[0] == '+' || word[0] == '-' || word[0] >= '0' && word[0] <= '9'
}

// intArg reads an integer argument within [low, high].
func intArg(word string, low, high int64, bad, outside ErrorCode) (int64, ErrorCode) {
	n, form := digits(word), integer
	if n < 0 {
		n, form = parseLong(word)
	}
	switch {
	case form == integer && low <= n && n <= high:
		return n, NoError
	case form == notInteger:
		return 0, bad
	}
	return 0, outside
}

func limitArg(word string) (int64, ErrorCode) {
	return intArg(word, 1, maxLimit, ErrLimitNotInteger, ErrLimitRange)
}

// timeArg reads a time: an integer with its unit, or an integer of units of unit; 0: it must have a unit. The time is
// at least that many units, and at most maxPeriod.
func timeArg(word string, unit funnel.Nanos, least int64, bad, outside ErrorCode) (funnel.Nanos, ErrorCode) {
	n, form, unit := parseTime(word, unit)
	switch {
	case form == notInteger:
		return 0, bad
	case form == tooLarge || n < least || n > longest(unit):
		return 0, outside
	}
	return funnel.Nanos(n) * unit, NoError
}

// offsetArg reads the word after ALIGN: a time, at most maxPeriod either way, or a UTC offset.
func offsetArg(word string, unit funnel.Nanos) (funnel.Nanos, ErrorCode) {
	if offset, ok := utcOffset(word); ok {
		return -offset, NoError
	}
	n, form, unit := parseTime(word, unit)
	switch {
	case form == notInteger:
		return 0, ErrOffsetNotTime
	case form == tooLarge || n < -longest(unit) || n > longest(unit):
		return 0, ErrOffsetRange
	}
	return funnel.Nanos(n) * unit, NoError
}

// longest returns maxPeriod in units of unit.
func longest(unit funnel.Nanos) int64 {
	switch unit {
	case funnel.Second:
		return int64(maxPeriod / funnel.Second)
	case funnel.Millisecond:
		return int64(maxPeriod / funnel.Millisecond)
	}
	return int64(maxPeriod / unit)
}

// Lengths of time.
const (
	minute = 60 * funnel.Second
	hour   = 60 * minute
	day    = 24 * hour
)

// parseTime reads an integer of units of unit, or an integer with its unit. If unit is 0, there must be one.
func parseTime(word string, unit funnel.Nanos) (n int64, form number, _ funnel.Nanos) {
	n, form = parseInt(word)
	switch {
	case form == notInteger:
		return splitTime(word)
	case unit == 0:
		form = notInteger
	}
	return n, form, unit
}

// splitTime reads an integer with its unit: ms, s, m, h or d.
func splitTime(word string) (n int64, form number, unit funnel.Nanos) {
	if len(word) < 2 {
		return 0, notInteger, funnel.Second
	}
	digits := word[:len(word)-1]
	switch word[len(word)-1] {
	case 's':
		unit = funnel.Second
		if last := len(digits) - 1; digits[last] == 'm' {
			unit, digits = funnel.Millisecond, digits[:last]
		}
	case 'm':
		unit = minute
	case 'h':
		unit = hour
	case 'd':
		unit = day
	default:
		return 0, notInteger, funnel.Second
	}
	n, form = parseInt(digits)
	return n, form, unit
}

// monthsArg reads a number of calendar months, as in 1mo.
func monthsArg(word string) (int16, ErrorCode) {
	digits, found := strings.CutSuffix(word, "mo")
	n, form := parseInt(digits)
	switch {
	case !found || form == notInteger:
		return 0, ErrPeriodNotTime
	case form == tooLarge || n < 1 || n > funnel.MaxMonths:
		return 0, ErrMonthsRange
	}
	return int16(n), NoError
}

// namesOfTime are how people write units, and the units.
var namesOfTime = [...]struct{ name, unit string }{
	{"minutes", "m"}, {"mins", "m"}, {"seconds", "s"}, {"secs", "s"}, {"hours", "h"}, {"hrs", "h"}, {"days", "d"},
	{"milliseconds", "ms"}, {"msecs", "ms"}, {"months", "mo"},
}

// timeHint returns what a word may mean, as 1m for 1min; "" if that isn't known.
func timeHint(word string) string {
	name := strings.TrimLeft(word, "0123456789")
	digits := word[:len(word)-len(name)]
	if digits == "" || name == "" || len(word) > 20 {
		return ""
	}
	name = strings.ToLower(name)
	for _, row := range namesOfTime {
		if strings.HasPrefix(row.name, name) {
			return digits + row.unit
		}
	}
	return ""
}

// utcOffset reads how far a clock is ahead of UTC, as in +01:00: at most 23:59 either way.
func utcOffset(word string) (funnel.Nanos, bool) {
	if len(word) != len("+hh:mm") || word[0] != '+' && word[0] != '-' || word[3] != ':' {
		return 0, false
	}
	hours, ok := twoDigits(word[1:3], 23)
	minutes, ok2 := twoDigits(word[4:], 59)
	offset := funnel.Nanos(hours)*hour + funnel.Nanos(minutes)*minute
	if word[0] == '-' {
		offset = -offset
	}
	return offset, ok && ok2
}

// twoDigits reads two digits.
func twoDigits(s string, most int64) (int64, bool) {
	tens, ones := s[0]-'0', s[1]-'0'
	n := int64(tens)*10 + int64(ones)
	return n, tens <= 9 && ones <= 9 && n <= most
}

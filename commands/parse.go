package commands

import (
	"math"
	"strings"

	"gothrottle/funnel"
)

// Bounds of the arguments, and the units of time in ns.
const (
	maxLimit    = funnel.MaxLimit
	maxQuantity = funnel.MaxLimit + 1
	maxPeriod   = funnel.MaxPeriod

	millisecond = 1_000_000
	second      = 1_000_000_000
)

// number is the outcome of reading an integer.
type number int8

const (
	integer    number = iota
	notInteger        // not of the form [+-]digits
	tooLarge          // an integer, but not of 64 bits
)

// parseInt reads an integer as redis-cell does: one optional sign, then decimal
// digits only; leading zeros and -0 are fine.
func parseInt(s string) (int64, number) {
	digits := s
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		digits = s[1:]
	}
	if digits == "" {
		return 0, notInteger
	}
	var n uint64
	overflow := false
	for i := 0; i < len(digits); i++ {
		d := digits[i] - '0'
		if d > 9 {
			return 0, notInteger
		}
		// Below this bound the next digit cannot wrap 64 bits; above it n is > 2^63.
		if n > math.MaxUint64/10-1 {
			overflow = true
			continue
		}
		n = n*10 + uint64(d)
	}
	switch {
	case overflow || n > 1<<63 || n == 1<<63 && !negative:
		return 0, tooLarge
	case negative:
		return -int64(n), integer
	}
	return int64(n), integer
}

// intArg reads an integer argument within [low, high].
func intArg(word string, low, high int64, bad, outside Error) (int64, Error) {
	n, form := parseInt(word)
	switch {
	case form == notInteger:
		return 0, bad
	case form == tooLarge || n < low || n > high:
		return 0, outside
	}
	return n, NoError
}

// option is a set of the keywords that may follow the positional arguments.
type option uint8

const (
	optMS option = 1 << iota // times are milliseconds
)

var optionNames = [...]string{"MS"}

// parseOptions reads keywords in any order and any case.
func parseOptions(words []string, allowed option) (option, Error) {
	var given option
	for _, word := range words {
		o := findOption(word) & allowed
		switch {
		case o == 0:
			return 0, ErrUnknownOption
		case given&o != 0:
			return 0, ErrRepeatedOption
		}
		given |= o
	}
	return given, NoError
}

func findOption(word string) option {
	for i, name := range optionNames {
		// As many bytes too: folding takes some letters beyond ASCII for ASCII ones.
		if len(word) == len(name) && strings.EqualFold(word, name) {
			return 1 << i
		}
	}
	return 0
}

// looksNumeric tells a quantity from an option where either may stand.
func looksNumeric(word string) bool {
	return word == "" || word[0] == '+' || word[0] == '-' || word[0] >= '0' && word[0] <= '9'
}

// unit returns the length in ns of the unit that the options ask for.
func (o option) unit() int64 {
	if o&optMS != 0 {
		return millisecond
	}
	return second
}

// periodArg reads a period, in units of unit ns, and returns it in ns.
func periodArg(word string, unit int64) (int64, Error) {
	outside := ErrPeriodRangeSeconds
	if unit == millisecond {
		outside = ErrPeriodRangeMillis
	}
	n, err := intArg(word, 1, maxPeriod/unit, ErrPeriodNotInteger, outside)
	return n * unit, err
}

// tailArgs reads what follows the period: an optional quantity, which is 1 if it is
// not given, then options.
func tailArgs(words []string, allowed option) (quantity int64, opts option, err Error) {
	quantity = 1
	if len(words) > 0 && (allowed == 0 || looksNumeric(words[0])) {
		quantity, err = intArg(words[0], -maxQuantity, maxQuantity, ErrQuantityNotInteger, ErrQuantityRange)
		if err != NoError {
			return 0, 0, err
		}
		words = words[1:]
	}
	opts, err = parseOptions(words, allowed)
	return quantity, opts, err
}

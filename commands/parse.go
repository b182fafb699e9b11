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

	microsecond = 1_000
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
		// Up to 18 digits nothing can overflow; from there on the next one is looked at.
		if i >= 18 && n > math.MaxUint64/10-1 {
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
	optMS    option = 1 << iota // times are milliseconds
	optUpTo                     // take what is left, if that is less
	optExact                    // an entry per call
	optAlign                    // a window aligned to the calendar; an offset follows
)

var optionNames = [...]string{"MS", "UPTO", "EXACT", "ALIGN"}

// unit returns the length in ns of the unit that the options ask for.
func (o option) unit() int64 {
	if o&optMS != 0 {
		return millisecond
	}
	return second
}

// parseOptions reads keywords in any order and any case. align is the word after ALIGN.
func parseOptions(words []string, allowed option) (given option, align string, err Error) {
	for i := 0; i < len(words); i++ {
		o := findOption(words[i]) & allowed
		switch {
		case o == 0:
			return 0, "", ErrUnknownOption
		case given&o != 0:
			return 0, "", ErrRepeatedOption
		case o == optAlign:
			if i++; i == len(words) {
				return 0, "", ErrAlignWithoutOffset
			}
			align = words[i]
		}
		given |= o
	}
	return given, align, NoError
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

// request is what the words after the limits say.
type request struct {
	period   int64 // ns
	quantity int64
	opts     option
	offset   int64 // ns; of ALIGN
}

// newRequest reads a period and what follows it: a quantity, which is 1 if it is not
// given, then options. Without options the quantity is whatever stands in its place.
func newRequest(words []string, allowed option) (r request, err Error) {
	rest := words[1:]
	r.quantity = 1
	if len(rest) > 0 && (allowed == 0 || looksNumeric(rest[0])) {
		if r.quantity, err = quantityArg(rest[0]); err != NoError {
			return r, err
		}
		rest = rest[1:]
	}
	var align string
	if r.opts, align, err = parseOptions(rest, allowed); err != NoError {
		return r, err
	}
	unit := r.opts.unit()
	if r.period, err = periodArg(words[0], unit); err != NoError {
		return r, err
	}
	if r.opts&optAlign != 0 {
		r.offset, err = intArg(align, -maxPeriod/unit, maxPeriod/unit, ErrOffsetNotInteger, ErrOffsetRange)
		r.offset *= unit
	}
	return r, err
}

func periodArg(word string, unit int64) (int64, Error) {
	return spanArg(word, unit, ErrPeriodNotInteger, ErrPeriodRangeSeconds, ErrPeriodRangeMillis)
}

func quantityArg(word string) (int64, Error) {
	return intArg(word, -maxQuantity, maxQuantity, ErrQuantityNotInteger, ErrQuantityRange)
}

func limitArg(word string) (int64, Error) {
	return intArg(word, 1, maxLimit, ErrLimitNotInteger, ErrLimitRange)
}

// spanArg reads a length of time, in units of unit ns, and returns it in ns.
func spanArg(word string, unit int64, bad, outsideSeconds, outsideMillis Error) (int64, Error) {
	outside := outsideSeconds
	if unit == millisecond {
		outside = outsideMillis
	}
	n, err := intArg(word, 1, maxPeriod/unit, bad, outside)
	return n * unit, err
}

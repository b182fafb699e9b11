package commands

import (
	"math"
	"math/bits"
	"strings"

	"gothrottle/funnel"
)

// Bounds of the arguments.
const (
	maxLimit    = int64(funnel.MaxLimit)
	maxQuantity = maxLimit + 1
	maxPeriod   = funnel.MaxPeriod
)

// clauseWords says where the words of a clause are: indexes in Call.Args.
type clauseWords struct {
	kind         int16 // index in clauseKinds
	opts         option
	first        int32              // the word after the keyword
	period       int32              // only if the kind has units
	quantityWord int32              // 0: not given
	operands     [numOperands]int32 // the words after options, by option.slot
}

// operand returns where the word after an option is.
func (w *clauseWords) operand(o option) int { return int(w.operands[o.slot()]) }

// words finds a quantity and options from Args[i] on. It returns the index of the word after them.
func (c *Call) words(kind *clauseKind, i int, allowed option, w *clauseWords) (next int, err ErrorCode) {
	if kind.units && i < len(c.Args) && (allowed == redisCellWords || looksNumeric(c.Args[i])) {
		w.quantityWord = int32(i)
		i++
	}
	return c.options(i, allowed, w)
}

// redisCellWords, in place of a set of options, allows none: the word after the period is the quantity, whatever the word is.
const redisCellWords option = 0

// request holds what the words of a call say, or of a clause, except those that its limiter reads.
type request struct {
	clauseWords
	unit      funnel.Nanos // of times without one; 0: every time must have one
	redisCell bool         // take integers only, and refuse rates of more than one unit per ns, as redis-cell does
	calendar  bool         // the period may be in months
	months    int16        // if not 0: the period is this many calendar months, of at least 28 days each
	period    funnel.Nanos
	quantity  int64
	offset    funnel.Nanos // the word after ALIGN
	maxWait   funnel.Nanos // the word after RESERVE
	lockout   funnel.Nanos // the word after LOCKOUT
	weight    int64        // the word after SHARE; 0: none
}

// newRequest returns a request for one unit. The next one is in the same memory.
func (c *Call) newRequest(w *clauseWords) *request {
	r := &c.scratch.request
	*r = request{clauseWords: *w, unit: w.opts.unit(), quantity: 1}
	return r
}

// read reads the period, the quantity and the words after options.
func (r *request) read(args []string) (err ErrorCode) {
	if err = r.readPeriod(args[r.clauseWords.period]); err != NoError {
		return err
	}
	if r.quantityWord > 0 {
		if r.quantity, err = quantityArg(args[r.quantityWord]); err != NoError {
			return err
		}
		if r.quantity < 0 && r.opts&optRaise != 0 {
			return ErrPolicyQuantityRange
		}
	}
	if r.opts&operands != 0 {
		err = r.readOperands(args)
	}
	return err
}

func (r *request) readPeriod(word string) ErrorCode {
	n, form := parseInt(word)
	over, ns := bits.Mul64(uint64(n), uint64(r.unit)) // n below 0 is a large number here
	if form != integer || over != 0 || ns-1 >= uint64(maxPeriod) {
		return r.readTime(word)
	}
	r.period = funnel.Nanos(ns)
	return NoError
}

// readTime reads a period that is not an integer within its bounds.
//
//go:noinline
func (r *request) readTime(word string) (err ErrorCode) {
	if r.redisCell {
		_, err := intArg(word, 1, longest(funnel.Second), ErrPeriodNotInteger, ErrSecondsRange)
		return err
	}
	if r.period, err = timeArg(word, r.unit, 1, ErrPeriodNotTime, ErrPeriodRange); err == ErrPeriodNotTime {
		if r.months, err = monthsArg(word); err != ErrPeriodNotTime && !r.calendar {
			return ErrMonthsNotQuota
		}
		r.period = funnel.Nanos(r.months) * 28 * day
	}
	return err
}

// readOperands reads the words after options. Its error is about the first word that is wrong.
func (r *request) readOperands(args []string) (err ErrorCode) {
	first := int32(len(args))
	for left := r.opts & operands; left != 0; left &= left - 1 {
		o := left & -left
		at := r.operands[o.slot()]
		if wrong := r.readOperand(o, args[at]); wrong != NoError && at < first {
			err, first = wrong, at
		}
	}
	return err
}

// readOperand reads the word after an option.
func (r *request) readOperand(o option, word string) (err ErrorCode) {
	switch o {
	case optAlign:
		r.offset, err = offsetArg(word, r.unit)
	case optReserve:
		r.maxWait, err = timeArg(word, r.unit, 0, ErrMaxWaitNotTime, ErrMaxWaitRange)
	case optLockout:
		r.lockout, err = timeArg(word, r.unit, 1, ErrLockoutNotTime, ErrLockoutRange)
	case optShare:
		r.weight, err = intArg(word, 1, funnel.MaxWeight, ErrWeightNotInteger, ErrWeightRange)
	}
	return err
}

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

// noTime notes which word is not a time, for appendTimeHint.
func (c *Call) noTime(err ErrorCode, w *clauseWords) ErrorCode {
	switch err {
	case ErrPeriodNotTime:
		return c.fail(err, int(w.period))
	case ErrTTLNotTime:
		return c.fail(err, int(w.first)+1)
	case ErrMaxWaitNotTime:
		return c.fail(err, w.operand(optReserve))
	case ErrLockoutNotTime:
		return c.fail(err, w.operand(optLockout))
	}
	c.ErrWord = 0
	return err
}

// appendTimeHint appends the text of an error about a word that is not a time, with the time that the word may mean.
func appendTimeHint(b []byte, text, word string) []byte {
	if hint := timeHint(word); hint != "" {
		before, _, _ := strings.Cut(text, ": ")
		text = before + ": did you mean " + hint + "?"
	}
	return append(b, text...)
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

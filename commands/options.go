package commands

import (
	"math/bits"

	"gothrottle/funnel"
)

// option is a set of the keywords that may follow the positional arguments.
type option uint8

const (
	optMS      option = 1 << iota // times are milliseconds
	optUpTo                       // take what is left if that is less than the quantity
	optExact                      // an entry per microsecond with calls
	optAlign                      // a window aligned to the calendar; an offset follows
	optForce                      // charge the quantity, past the limit if need be
	optReserve                    // take a slot in the future; the longest wait follows
	optLockout                    // a denial begins a lockout; its length follows
)

// optionRows has a row for each option, in the order of the bits.
var optionRows = [...]struct {
	name    string
	after   ErrorCode // of exclusive: the error of another one after it
	without ErrorCode // of operands: the error of a call that ends with it
}{
	{"MS", NoError, NoError},
	{"UPTO", ErrWithUpTo, NoError},
	{"EXACT", NoError, NoError},
	{"ALIGN", NoError, ErrAlignWithoutOffset},
	{"FORCE", ErrWithForce, NoError},
	{"RESERVE", ErrWithReserve, ErrReserveWithoutMaxWait},
	{"LOCKOUT", ErrWithLockout, ErrLockoutWithoutTime},
}

// first returns the number of the first option of a set.
func (o option) first() int { return bits.TrailingZeros8(uint8(o)) }

// exclusive are the options of which a call may have one. operands are those that a word
// follows; no command takes two of them in one call.
const (
	exclusive = optUpTo | optForce | optReserve | optLockout
	operands  = optAlign | optReserve | optLockout
)

// unit returns the length of the unit of time that the options ask for.
func (o option) unit() funnel.Nanos {
	if o&optMS != 0 {
		return funnel.Millisecond
	}
	return funnel.Second
}

// isWord reports whether a word is this keyword, in any case of ASCII letters. The keyword is
// in capitals.
func isWord(word, keyword string) bool {
	if len(word) != len(keyword) {
		return false
	}
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != keyword[i] {
			return false
		}
	}
	return true
}

// appendList appends the names of a set of options, as an error text lists them.
func (o option) appendList(b []byte) []byte {
	for o != 0 {
		b = append(b, o.name()...)
		switch o &= o - 1; {
		case o&(o-1) != 0:
			b = append(b, ", "...)
		case o != 0:
			b = append(b, " or "...)
		}
	}
	return b
}

// name returns the keyword of the first option of a set, or "" of none.
func (o option) name() string {
	if o == 0 {
		return ""
	}
	return optionRows[o.first()].name
}

func findOption(word string) option {
	for i := range optionRows {
		if isWord(word, optionRows[i].name) {
			return 1 << i
		}
	}
	return 0
}

// fail returns an error that names Args[word].
func (c *Call) fail(code ErrorCode, word int) ErrorCode {
	c.ErrWord = int32(word) + 1
	return code
}

// saysMS reports whether MS is among the words from Args[from] on.
func (c *Call) saysMS(from int) bool {
	for _, word := range c.Args[min(from, len(c.Args)):] {
		if isWord(word, "MS") {
			return true
		}
	}
	return false
}

// refusing has the options of the last call that failed with ErrUnknownOption.
var refusing option

// options reads the keywords from Args[from] to the end, in any order and any case. operand
// is the index of the word after ALIGN, RESERVE or LOCKOUT. After an error, what was given before it is returned.
func (c *Call) options(from int, allowed option) (given option, operand int, err ErrorCode) {
	for i := from; i < len(c.Args); i++ {
		o := findOption(c.Args[i]) & allowed
		switch {
		case o == 0:
			refusing = allowed
			return given, operand, c.fail(ErrUnknownOption, i)
		case given&o != 0:
			return given, operand, c.fail(ErrRepeatedOption, i)
		case o&exclusive != 0 && given&exclusive != 0:
			return given, operand, c.fail(optionRows[(given&exclusive).first()].after, i)
		case o&operands != 0:
			if i++; i == len(c.Args) {
				return given, operand, optionRows[o.first()].without
			}
			operand = i
		}
		given |= o
	}
	return given, operand, NoError
}

// looksNumeric reports whether a word is a quantity, where an option may follow instead.
func looksNumeric(word string) bool {
	return word == "" || word[0] == '+' || word[0] == '-' || word[0] >= '0' && word[0] <= '9'
}

// request holds what the words of a call say, or of a clause, besides those that its limiter reads.
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
}

// running is the request of the running call: see clauseKind.rooms.
var running request

// newRequest returns the request of the running call, which asks for one unit.
func newRequest(w clauseWords) *request {
	r := &running
	*r = request{}
	r.clauseWords, r.unit, r.quantity = w, w.opts.unit(), 1
	return r
}

// redisCellWords, in place of a set of options, allows none: the word after the period is the quantity, whatever the word is.
const redisCellWords option = 0

// words finds a quantity and options among the words of a call of one limiter, from Args[rest] on.
func (c *Call) words(kind *clauseKind, rest int, allowed option, r *request) (err ErrorCode) {
	if kind.units && (allowed == redisCellWords || looksNumeric(c.Args[rest])) {
		r.quantityWord = int32(rest)
		if rest++; rest == len(c.Args) {
			return NoError
		}
	}
	opts, operand, err := c.options(rest, allowed)
	if err != NoError {
		if err == ErrUnknownOption && kind.units && looksNumeric(c.Args[c.ErrWord-1]) {
			err = ErrQuantityLate
		}
		if c.saysMS(rest) {
			opts |= optMS
		}
	}
	r.opts, r.operand, r.unit = opts, int32(operand), opts.unit()
	return err
}

// read reads the period, the quantity and the word after an option.
func (r *request) read(args []string) (err ErrorCode) {
	if err = r.readPeriod(args[r.clauseWords.period]); err != NoError {
		return err
	}
	if r.quantityWord > 0 {
		if r.quantity, err = quantityArg(args[r.quantityWord]); err != NoError {
			return err
		}
	}
	if r.operand > 0 {
		err = r.readOperand(args[r.operand])
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

// readOperand reads the word after ALIGN, RESERVE or LOCKOUT.
func (r *request) readOperand(word string) (err ErrorCode) {
	switch r.opts & operands {
	case optAlign:
		r.offset, err = offsetArg(word, r.unit)
	case optReserve:
		r.maxWait, err = timeArg(word, r.unit, 0, ErrMaxWaitNotTime, ErrMaxWaitRange)
	case optLockout:
		r.lockout, err = timeArg(word, r.unit, 1, ErrLockoutNotTime, ErrLockoutRange)
	}
	return err
}

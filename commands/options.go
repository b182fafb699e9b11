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

var optionNames = [...]string{"MS", "UPTO", "EXACT", "ALIGN", "FORCE", "RESERVE", "LOCKOUT"}

// exclusive are the options of which a call may have one. operands are those that a word
// follows; no command takes two of them in one call.
const (
	exclusive = optUpTo | optForce | optReserve | optLockout
	operands  = optAlign | optReserve | optLockout
)

// withAnother returns the error of an option that follows one of the set exclusive.
func withAnother(first option) ErrorCode {
	switch {
	case first&optUpTo != 0:
		return ErrWithUpTo
	case first&optForce != 0:
		return ErrWithForce
	case first&optReserve != 0:
		return ErrWithReserve
	}
	return ErrWithLockout
}

// withoutOperand returns the error of an option that is the last word and should not be.
func withoutOperand(o option) ErrorCode {
	switch o {
	case optAlign:
		return ErrAlignWithoutOffset
	case optReserve:
		return ErrReserveWithoutMaxWait
	}
	return ErrLockoutWithoutTime
}

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

// name returns the keyword of one option, or "" of none.
func (o option) name() string {
	if o == 0 {
		return ""
	}
	return optionNames[bits.TrailingZeros8(uint8(o))]
}

func findOption(word string) option {
	for i, name := range optionNames {
		if isWord(word, name) {
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

// options reads the keywords from Args[from] to the end, in any order and any case. operand
// is the index of the word after ALIGN, RESERVE or LOCKOUT.
func (c *Call) options(from int, allowed option) (given option, operand int, err ErrorCode) {
	for i := from; i < len(c.Args); i++ {
		o := findOption(c.Args[i]) & allowed
		switch {
		case o == 0:
			return 0, 0, c.fail(ErrUnknownOption, i)
		case given&o != 0:
			return 0, 0, c.fail(ErrRepeatedOption, i)
		case o&exclusive != 0 && given&exclusive != 0:
			return 0, 0, c.fail(withAnother(given), i)
		case o&operands != 0:
			if i++; i == len(c.Args) {
				return 0, 0, withoutOperand(o)
			}
			operand = i
		}
		given |= o
	}
	return given, operand, NoError
}

// looksNumeric tells a quantity from an option where either may stand.
func looksNumeric(word string) bool {
	return word == "" || word[0] == '+' || word[0] == '-' || word[0] >= '0' && word[0] <= '9'
}

// request holds what the words of a call say, or of a clause, besides those that its limiter reads.
type request struct {
	period    funnel.Nanos
	quantity  int64
	opts      option
	first     int32        // the index in Args of the limiter's first word
	redisCell bool         // refuse rates of more than one unit per ns, as redis-cell does
	offset    funnel.Nanos // the word after ALIGN
	maxWait   funnel.Nanos // the word after RESERVE
	lockout   funnel.Nanos // the word after LOCKOUT
}

// running is the request of the running call: see clauseKind.rooms.
var running request

// newRequest returns the request of the running call, which asks for one unit.
func newRequest(first int32, opts option) *request {
	running = request{quantity: 1, first: first, opts: opts}
	return &running
}

// redisCellWords, in place of a set of options, allows none: the word after the period is the quantity, whatever the word is.
const redisCellWords option = 0

// request reads the words of a call of one limiter, but those that the limiter reads: the period, a quantity, which is 1
// if it is not given, and options.
func (c *Call) request(kind *clauseKind, allowed option) (r *request, err ErrorCode) {
	r = newRequest(1, 0)
	r.redisCell = allowed == redisCellWords
	rest := 1 + kind.words
	if kind.units && rest < len(c.Args) && (r.redisCell || looksNumeric(c.Args[rest])) {
		if r.quantity, err = quantityArg(c.Args[rest]); err != NoError {
			return r, err
		}
		rest++
	}
	operand := 0
	if rest < len(c.Args) {
		if r.opts, operand, err = c.options(rest, allowed); err != NoError {
			return r, err
		}
	}
	if kind.units {
		if r.period, err = periodArg(c.Args[kind.words], r.opts.unit()); err != NoError {
			return r, err
		}
	}
	if operand != 0 {
		err = r.readOperand(c.Args[operand])
	}
	return r, err
}

// readOperand reads the word after ALIGN, RESERVE or LOCKOUT.
func (r *request) readOperand(word string) (err ErrorCode) {
	switch unit := r.opts.unit(); r.opts & operands {
	case optAlign:
		r.offset, err = timeArg(word, unit, -longest(unit), ErrOffsetNotInteger, ErrOffsetRange)
	case optReserve:
		r.maxWait, err = timeArg(word, unit, 0, ErrMaxWaitNotInteger, ErrMaxWaitRange)
	case optLockout:
		r.lockout, err = timeArg(word, unit, 1, ErrLockoutNotInteger, ErrLockoutRange)
	}
	return err
}

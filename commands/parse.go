package commands

import (
	"math/bits"
	"slices"

	"gothrottle/funnel"
)

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

// newRequest returns a request for one unit. The next one is in the same memory. A literal with fields would be made twice:
// once to be copied.
func (c *Call) newRequest(opts option) *request {
	r := &c.scratch.request
	*r = request{}
	r.unit, r.quantity = opts.unit(), 1
	return r
}

// read reads the period, the quantity and the words after options.
func (r *request) read(args []string) (err ErrorCode) {
	if err = r.readPeriod(args[r.clauseWords.period]); err != NoError {
		return err
	}
	if r.quantityWord > 0 {
		if r.quantity, err = intArg(args[r.quantityWord], -maxQuantity, maxQuantity, ErrQuantityNotInteger, ErrQuantityRange); err != NoError {
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
	over, ns := bits.Mul64(uint64(digits(word)), uint64(r.unit)) // -1 is a large number here
	if over != 0 || ns-1 >= uint64(maxPeriod) {
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
		n, err := intArg(word, 1, longest(funnel.Second), ErrPeriodNotInteger, ErrSecondsRange)
		r.period = funnel.Nanos(n) * funnel.Second
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

// noTime notes which word is not a time, for appendTimeHint.
func (c *Call) noTime(err ErrorCode, w *clauseWords) ErrorCode {
	c.ErrWord = 0
	switch err {
	case ErrPeriodNotTime, ErrTTLNotTime, ErrMaxWaitNotTime, ErrLockoutNotTime:
		return c.fail(err, w.wrong(err))
	}
	return err
}

// options reads keywords from Args[i] on, in any order and any case. It returns the index of the first word that is neither
// an option allowed nor the operand of one. After an error, w has what was given before it.
func (c *Call) options(i int, allowed option, w *clauseWords) (next int, err ErrorCode) {
	for ; i < len(c.Args); i++ {
		o := findOption(c.Args[i]) & allowed
		switch {
		case o == 0:
			return i, NoError
		case w.opts&o != 0:
			return i, c.fail(ErrRepeatedOption, i)
		case o&exclusive != 0 && w.opts&exclusive != 0:
			return i, c.fail(optionRows[(w.opts&exclusive).first()].after, i)
		case o&operands != 0:
			if i++; i == len(c.Args) {
				return i, optionRows[o.first()].without
			}
			w.operands[o.slot()] = int32(i)
		}
		w.opts |= o
	}
	return i, NoError
}

// saysMS reports whether MS is among the words from Args[from] on.
func (c *Call) saysMS(from int) bool {
	return slices.ContainsFunc(c.Args[min(from, len(c.Args)):], func(word string) bool { return isWord(word, "MS") })
}

// fail returns an error that names Args[word].
func (c *Call) fail(code ErrorCode, word int) ErrorCode {
	c.ErrWord = int32(word) + 1
	return code
}

// unknown returns the error of Args[word], where an option may be.
func (c *Call) unknown(allowed option, word int) ErrorCode {
	c.allowed = allowed
	return c.fail(ErrUnknownOption, word)
}

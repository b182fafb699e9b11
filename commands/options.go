package commands

import (
	"math/bits"

	"gothrottle/funnel"
)

// option is a set of the keywords that may follow the positional arguments.
type option uint16

const (
	optMS      option = 1 << iota // times are milliseconds
	optUpTo                       // take what is left if that is less than the quantity
	optExact                      // an entry per microsecond with calls
	optAlign                      // a window aligned to the calendar; an offset follows
	optForce                      // charge the quantity, past the limit if need be
	optReserve                    // take a slot in the future; the longest wait follows
	optLockout                    // a denial begins a lockout; its length follows
	optRaise                      // the quantity is how much must be in use at least
	optShare                      // take a share of what the clause before has left; a weight follows
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
	{"RAISE", ErrWithRaise, NoError},
	{"SHARE", NoError, ErrShareWithoutWeight},
}

// Options returns the names of all options, in the order in which errors list them, and those of which a call may have one.
func Options() (names, exclude []string) {
	for i, row := range optionRows {
		if names = append(names, row.name); exclusive&(1<<i) != 0 {
			exclude = append(exclude, row.name)
		}
	}
	return names, exclude
}

// first returns the number of the first option of a set.
func (o option) first() int { return bits.TrailingZeros16(uint16(o)) }

// exclusive are the options of which a call may have one. operands are the numOperands options that a word follows.
const (
	exclusive   = optUpTo | optForce | optReserve | optLockout | optRaise
	operands    = optAlign | optReserve | optLockout | optShare
	numOperands = 4
)

// slot returns the number of one of operands among them.
func (o option) slot() int { return bits.OnesCount16(uint16(operands & (o - 1))) }

// unit returns the length of the unit of time that the options ask for.
func (o option) unit() funnel.Nanos {
	if o&optMS != 0 {
		return funnel.Millisecond
	}
	return funnel.Second
}

// isWord reports whether a word is this keyword, in any case of ASCII letters. The keyword is in capitals.
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
		b = append(b, optionRows[o.first()].name...)
		switch o &= o - 1; {
		case o&(o-1) != 0:
			b = append(b, ", "...)
		case o != 0:
			b = append(b, " or "...)
		}
	}
	return b
}

func findOption(word string) option {
	for i := range optionRows {
		if isWord(word, optionRows[i].name) {
			return 1 << i
		}
	}
	return 0
}

package commands

import (
	"fmt"
	"strings"

	"gothrottle/funnel"
)

// ErrorCode names one error reply. NoError means that there is no error. The texts are a promise to users: they
// are listed in docs/commands.md and do not change.
type ErrorCode int32

// The errors that a command can reply, besides the server's own (wrong number of
// arguments, OOM, READONLY, NOPERM, CROSSSLOT, MOVED).
const (
	NoError ErrorCode = iota
	ErrInternal
	ErrArity
	ErrForked
	ErrWrongType
	ErrForeignHash
	ErrForeignWindow
	ErrForeignLeases
	ErrForeignString
	ErrForeignZset
	ErrForeignText
	ErrDamaged
	ErrUnknownOption
	ErrRepeatedOption
	ErrWithUpTo
	ErrWithForce
	ErrWithReserve
	ErrWithLockout
	ErrAlignWithoutOffset
	ErrReserveWithoutMaxWait
	ErrLockoutWithoutTime
	ErrMaxBurstNotInteger
	ErrMaxBurstRange
	ErrCountNotInteger
	ErrCountRange
	ErrPeriodNotInteger
	ErrPeriodRangeSeconds
	ErrPeriodRangeMillis
	ErrQuantityNotInteger
	ErrQuantityRange
	ErrPolicyQuantityRange
	ErrWindowTooLong
	ErrRateTooHigh
	ErrLimitNotInteger
	ErrLimitRange
	ErrTTLNotInteger
	ErrTTLRangeSeconds
	ErrTTLRangeMillis
	ErrOffsetNotInteger
	ErrOffsetRange
	ErrMaxWaitNotInteger
	ErrMaxWaitRange
	ErrLockoutNotInteger
	ErrLockoutRange
	ErrDebtTooLong
	ErrTooMuchInUse
	ErrIDTooLong
	ErrTooManyIDs
	ErrUnknownClause
	ErrTooManyClauses
	ErrKeyRepeated
	ErrKeyShared
	ErrForceLease
	ErrNoPolicy
	ErrTopCountNotInteger
	ErrTopCountRange
	ErrTopOff
	NumErrors
)

// errorWord is the place in a text where the word that the error names is put.
const errorWord = "<word>"

var errorTexts = [NumErrors]string{
	ErrInternal:              "ERR internal error, see the server's log",
	ErrArity:                 "ERR wrong number of arguments", // the server adds the command's name
	ErrForked:                "ERR a forked process cannot run this command: use SCRIPT DEBUG SYNC instead of YES",
	ErrWrongType:             "WRONGTYPE Operation against a key holding the wrong kind of value",
	ErrForeignHash:           "ERR the hash at this key is not a rate limiter",
	ErrForeignWindow:         "ERR the sorted set at this key is not a sliding window",
	ErrForeignLeases:         "ERR the sorted set at this key holds no leases",
	ErrForeignString:         "ERR the string at this key is not a quota",
	ErrForeignZset:           "ERR the sorted set at this key is not a rate limiter",
	ErrForeignText:           "ERR the string at this key is not a rate limiter",
	ErrDamaged:               "ERR the rate limiter at this key is damaged",
	ErrUnknownOption:         "ERR unknown option '" + errorWord + "'",
	ErrRepeatedOption:        "ERR option '" + errorWord + "' given more than once",
	ErrWithUpTo:              "ERR option '" + errorWord + "' cannot be combined with UPTO",
	ErrWithForce:             "ERR option '" + errorWord + "' cannot be combined with FORCE",
	ErrWithReserve:           "ERR option '" + errorWord + "' cannot be combined with RESERVE",
	ErrWithLockout:           "ERR option '" + errorWord + "' cannot be combined with LOCKOUT",
	ErrReserveWithoutMaxWait: "ERR RESERVE needs a maxwait",
	ErrLockoutWithoutTime:    "ERR LOCKOUT needs a time",
	ErrAlignWithoutOffset:    "ERR ALIGN needs an offset",
	ErrMaxBurstNotInteger:    "ERR max_burst is not an integer",
	ErrMaxBurstRange:         fmt.Sprintf("ERR max_burst must be between 0 and %d", maxLimit-1),
	ErrCountNotInteger:       "ERR count is not an integer",
	ErrCountRange:            fmt.Sprintf("ERR count must be between 1 and %d", maxLimit),
	ErrPeriodNotInteger:      "ERR period is not an integer",
	ErrPeriodRangeSeconds:    fmt.Sprintf("ERR period must be between 1 and %d seconds", maxPeriod/funnel.Second),
	ErrPeriodRangeMillis:     fmt.Sprintf("ERR period must be between 1 and %d milliseconds", maxPeriod/funnel.Millisecond),
	ErrQuantityNotInteger:    "ERR quantity is not an integer",
	ErrQuantityRange:         fmt.Sprintf("ERR quantity must be between %d and %d", -maxQuantity, maxQuantity),
	ErrPolicyQuantityRange:   fmt.Sprintf("ERR quantity must be between 0 and %d", maxQuantity),
	ErrWindowTooLong:         "ERR (max_burst + 1) x period / count must not exceed 100 years",
	ErrRateTooHigh:           "ERR the rate must not exceed one unit per nanosecond",
	ErrLimitNotInteger:       "ERR limit is not an integer",
	ErrLimitRange:            fmt.Sprintf("ERR limit must be between 1 and %d", maxLimit),
	ErrTTLNotInteger:         "ERR ttl is not an integer",
	ErrTTLRangeSeconds:       fmt.Sprintf("ERR ttl must be between 1 and %d seconds", maxPeriod/funnel.Second),
	ErrTTLRangeMillis:        fmt.Sprintf("ERR ttl must be between 1 and %d milliseconds", maxPeriod/funnel.Millisecond),
	ErrOffsetNotInteger:      "ERR offset is not an integer",
	ErrOffsetRange:           "ERR offset must be within 100 years either way",
	ErrMaxWaitNotInteger:     "ERR maxwait is not an integer",
	ErrMaxWaitRange:          "ERR maxwait must be at least 0 and at most 100 years",
	ErrLockoutNotInteger:     "ERR the time of LOCKOUT is not an integer",
	ErrLockoutRange:          "ERR the time of LOCKOUT must be at least 1 and at most 100 years",
	ErrDebtTooLong:           "ERR what is in use would take more than 100 years to drain",
	ErrTooMuchInUse:          fmt.Sprintf("ERR more than %d units would be in use", funnel.MaxInUse),
	ErrIDTooLong:             fmt.Sprintf("ERR an id must not exceed %d bytes", maxIDLen),
	ErrTooManyIDs:            fmt.Sprintf("ERR at most %d ids can be released at once", maxIDs),
	ErrUnknownClause:         "ERR a clause must begin with " + keywords(func(*clauseKind) bool { return true }) + ", not '" + errorWord + "'",
	ErrTooManyClauses:        fmt.Sprintf("ERR at most %d clauses", MaxClauses),
	ErrKeyRepeated:           "ERR a key may be named only once",
	ErrKeyShared:             fmt.Sprintf("ERR a %s clause must have its key alone", keywords(func(kind *clauseKind) bool { return !kind.cells })),
	ErrForceLease:            fmt.Sprintf("ERR FORCE cannot be combined with a %s clause", keywords(func(kind *clauseKind) bool { return !kind.units })),
	ErrNoPolicy:              "ERR no policy for the key '" + errorWord + "'",
	ErrTopCountNotInteger:    "ERR the count of keys is not an integer",
	ErrTopCountRange:         fmt.Sprintf("ERR the count of keys must be between 1 and %d", MaxTopKeys),
	ErrTopOff:                "ERR no denials are counted: the configuration top-keys is 0",
}

// Text returns the reply's text: an upper-case code and a plain sentence.
func (e ErrorCode) Text() string { return errorTexts[e] }

// MaxErrorText bounds what AppendError appends, in bytes. A word is cut at maxErrorWord bytes.
const (
	MaxErrorText = 192
	maxErrorWord = 64
)

// AppendError appends the text of an error that names a word.
func AppendError(b []byte, e ErrorCode, word string) []byte {
	before, after, _ := strings.Cut(e.Text(), errorWord)
	return append(appendWord(append(b, before...), word), after...)
}

// appendWord appends a word, cut at maxErrorWord bytes. A reply must not hold line ends or zeros,
// so unprintable bytes become question marks.
func appendWord(b []byte, word string) []byte {
	for i := range min(len(word), maxErrorWord) {
		if word[i] < ' ' || word[i] > '~' {
			b = append(b, '?')
		} else {
			b = append(b, word[i])
		}
	}
	return b
}

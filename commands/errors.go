package commands

import (
	"fmt"
	"strconv"
	"strings"

	"gothrottle/funnel"
)

// errorWord is the place in a text where the word that the error names is put.
const errorWord = "<word>"

var errorTexts = [NumErrors]string{
	ErrInternal:              "ERR internal error, see the server's log",
	ErrForked:                "ERR a forked process cannot run this command: use SCRIPT DEBUG SYNC instead of YES",
	ErrWrongType:             "WRONGTYPE Operation against a key holding the wrong kind of value",
	ErrForeignHash:           "ERR the hash at this key is not a rate limiter",
	ErrForeignWindow:         "ERR the sorted set at this key is not a sliding window",
	ErrForeignLeases:         "ERR the sorted set at this key holds no leases",
	ErrForeignString:         "ERR the string at this key is not a quota",
	ErrForeignZset:           "ERR the sorted set at this key is not a rate limiter",
	ErrForeignText:           "ERR the string at this key is not a rate limiter",
	ErrDamaged:               "ERR the rate limiter at this key is damaged",
	ErrUnknownOption:         "ERR unknown option '" + errorWord + "': only <options> may follow", // AppendError names them
	ErrQuantityLate:          "ERR '" + errorWord + "' is in the wrong place: quantity must come right after the period",
	ErrRepeatedOption:        "ERR option '" + errorWord + "' given more than once",
	ErrWithUpTo:              "ERR option '" + errorWord + "' cannot be combined with UPTO",
	ErrWithForce:             "ERR option '" + errorWord + "' cannot be combined with FORCE",
	ErrWithReserve:           "ERR option '" + errorWord + "' cannot be combined with RESERVE",
	ErrWithLockout:           "ERR option '" + errorWord + "' cannot be combined with LOCKOUT",
	ErrWithRaise:             "ERR option '" + errorWord + "' cannot be combined with RAISE",
	ErrReserveWithoutMaxWait: "ERR RESERVE needs a maxwait, such as 500ms",
	ErrLockoutWithoutTime:    "ERR LOCKOUT needs a time, such as 15m",
	ErrShareWithoutWeight:    "ERR SHARE needs a weight, such as 1",
	ErrAlignWithoutOffset:    "ERR ALIGN needs an offset, such as -1h or +01:00",
	ErrMaxBurstNotInteger:    "ERR max_burst is not an integer",
	ErrMaxBurstRange:         fmt.Sprintf("ERR max_burst must be between 0 and %d", maxLimit-1),
	ErrCountNotInteger:       "ERR count is not an integer",
	ErrCountRange:            fmt.Sprintf("ERR count must be between 1 and %d", maxLimit),
	ErrPeriodNotInteger:      "ERR period is not an integer: CL.THROTTLE takes seconds without a unit",
	ErrPeriodNotTime:         "ERR period is not a time: use an integer, or one with a unit such as 250ms, 5s, 15m, 1h, 1d, or 1mo for a QUOTA",
	ErrPeriodRange:           "ERR period must be between 1 ms and 100 years",
	ErrSecondsRange:          "ERR period must be between 1 s and 100 years",
	ErrMonthsRange:           fmt.Sprintf("ERR period must be between 1mo and %dmo", funnel.MaxMonths),
	ErrMonthsNotQuota:        "ERR only the period of a QUOTA can be in months: use days, such as 30d",
	ErrMonthsWithoutAlign:    "ERR a period in months needs ALIGN: use ALIGN +00:00 for months of UTC",
	ErrMonthsOffsetRange:     "ERR offset must be more than -28 and less than 31 days if the period is in months",
	ErrQuantityNotInteger:    "ERR quantity is not an integer",
	ErrQuantityRange:         fmt.Sprintf("ERR quantity must be between %d and %d", -maxQuantity, maxQuantity),
	ErrPolicyQuantityRange:   fmt.Sprintf("ERR quantity must be between 0 and %d", maxQuantity),
	ErrWindowTooLong:         "ERR (max_burst + 1) x period / count must not exceed 100 years",
	ErrRateTooHigh:           "ERR the rate must not exceed one unit per nanosecond",
	ErrLimitNotInteger:       "ERR limit is not an integer",
	ErrLimitRange:            fmt.Sprintf("ERR limit must be between 1 and %d", maxLimit),
	ErrSlotsNotInteger:       "ERR slots is not an integer",
	ErrSlotsRange:            fmt.Sprintf("ERR slots must be between 0 and %d", maxLimit),
	ErrTTLNotTime:            "ERR ttl is not a time: use an integer, or one with a unit such as 250ms, 5s, 15m, 1h or 1d",
	ErrTTLRange:              "ERR ttl must be between 1 ms and 100 years",
	ErrOffsetNotTime:         "ERR offset is not a time: use one such as -1h, or a UTC offset such as +01:00",
	ErrOffsetRange:           "ERR offset must be within 100 years either way",
	ErrMaxWaitNotTime:        "ERR maxwait is not a time: use an integer, or one with a unit such as 500ms or 5s",
	ErrMaxWaitRange:          "ERR maxwait must be between 0 and 100 years",
	ErrLockoutNotTime:        "ERR the time of LOCKOUT is not a time: use an integer, or one with a unit such as 15m or 1h",
	ErrLockoutRange:          "ERR the time of LOCKOUT must be between 1 ms and 100 years",
	ErrWeightNotInteger:      "ERR weight is not an integer",
	ErrWeightRange:           fmt.Sprintf("ERR weight must be between 1 and %d", funnel.MaxWeight),
	ErrDebtTooLong:           "ERR what is in use would take more than 100 years to drain",
	ErrTooMuchInUse:          fmt.Sprintf("ERR more than %d units would be in use", int64(funnel.MaxInUse)),
	ErrIDTooLong:             fmt.Sprintf("ERR an id must not exceed %d bytes", maxIDLen),
	ErrTooManyIDs:            fmt.Sprintf("ERR at most %d ids can be released in one call", maxIDs),
	ErrUnknownClause:         "ERR a clause must begin with " + keywords(func(*clauseKind) bool { return true }) + ", not '" + errorWord + "'",
	ErrClauseShort:           "ERR '" + errorWord + "' needs <args>", // AppendError names them
	ErrKeyWithoutClause:      "ERR a key needs a clause after it, such as THROTTLE 4 5 1m",
	ErrNotOptionOfClause:     "ERR '" + errorWord + "' is not an option of <kind>", /* AppendError names it */
	ErrNotOptionOfAll:        "ERR '" + errorWord + "' is not an option of GO.ALL",
	ErrAfterOptions:          "ERR '" + errorWord + "' must come before MS and FORCE",
	ErrBareKey:               "ERR '" + errorWord + "' is neither a clause nor an option: write KEY before another key",
	ErrTooManyClauses:        fmt.Sprintf("ERR at most %d clauses", MaxClauses),
	ErrKeyRepeated:           "ERR a key may be named only once",
	ErrKeyShared:             fmt.Sprintf("ERR a %s clause needs a key of its own: write KEY and another key before it", keywords(func(kind *clauseKind) bool { return !kind.cells })),
	ErrForceLease:            fmt.Sprintf("ERR FORCE cannot be combined with a %s clause", keywords(func(kind *clauseKind) bool { return kind.renews })),
	ErrForceLockout:          "ERR FORCE cannot be combined with LOCKOUT",
	ErrShareFirst:            "ERR SHARE needs a clause before it: put the shared limit first, such as THROTTLE 99 100 1m",
	ErrShareCells:            fmt.Sprintf("ERR a %s clause cannot have SHARE: put it into a %s clause after this one", keywords(func(kind *clauseKind) bool { return kind.cells }), keywords(func(kind *clauseKind) bool { return !kind.cells && !kind.frees() })),
	ErrShareSlots:            "ERR SHARE does not fit the clause before: only a LEASE clause can share slots, and RELEASE has none to share",
	ErrShareChain:            fmt.Sprintf("ERR at most %d SHARE clauses in a row", maxShares),
	ErrShareWeight:           "ERR weight must be 1 if a LEASE clause shares units",
	ErrSharePeeks:            "ERR a LEASE clause can share units only if the quantity is 0 in the clauses before it: held and spent would overlap",
	ErrNoPolicy:              "ERR no policy for the key '" + errorWord + "': its name, up to the first colon, is not in gothrottle.policies",
	ErrNoPolicyName:          "ERR the key '" + errorWord + "' must begin with the name of a policy and a colon, as in login:bob",
	ErrTopCountNotInteger:    "ERR the count of keys is not an integer",
	ErrTopCountRange:         fmt.Sprintf("ERR the count of keys must be between 1 and %d", MaxTopKeys),
	ErrTopOption:             "ERR unknown option '" + errorWord + "': use GO.TOP [count] [RESET]",
	ErrTopOff:                "ERR no denials are counted: set gothrottle.top-keys to more than 0",
	ErrNoHelp:                "ERR no command '" + errorWord + "': GO.HELP lists all",
}

// Text returns the reply's text: an upper-case code and a plain sentence.
func (e ErrorCode) Text() string { return errorTexts[e] }

// MaxErrorText bounds what AppendError appends, in bytes. A word is cut at maxErrorWord bytes.
const (
	MaxErrorText = 192
	maxErrorWord = 64
)

// Named reports whether the error of a call names a word or a clause, so that AppendError must write its text.
func (c *Call) Named() bool { return c.ErrWord > 0 || c.ErrClause > 0 }

// AppendError appends the text of the error of a call.
func (c *Call) AppendError(b []byte, e ErrorCode) []byte {
	text := e.Text()
	if c.ErrClause > 0 {
		text = strings.TrimPrefix(text, "ERR ")
		b = append(strconv.AppendInt(append(b, "ERR clause "...), int64(c.ErrClause), 10), ": "...)
	}
	before, after, found := strings.Cut(text, errorWord)
	if !found && c.ErrWord > 0 {
		return appendTimeHint(b, before, c.Args[c.ErrWord-1])
	}
	b = append(b, before...)
	if found && c.ErrWord > 0 {
		word := c.Args[c.ErrWord-1]
		switch e {
		case ErrUnknownOption:
			b = c.allowed.appendList(append(appendWord(b, word), "': only "...))
			return append(b, " may follow"...)
		case ErrClauseShort:
			after = "' needs " + clauseKinds[findClause(word)].needs()
		case ErrNotOptionOfClause:
			after = "' is not an option of " + clauseKinds[c.Clauses[c.ErrClause-1].kind].keyword
		}
		b = append(appendWord(b, word), after...)
	}
	return b
}

// appendTimeHint appends the text of an error about a word that is not a time, with the time that the word may mean.
func appendTimeHint(b []byte, text, word string) []byte {
	if hint := timeHint(word); hint != "" {
		before, _, _ := strings.Cut(text, ": ")
		text = before + ": did you mean " + hint + "?"
	}
	return append(b, text...)
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

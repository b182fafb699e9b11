package commands

import "fmt"

// Error names one error reply; NoError is none. The texts are a promise to users:
// they are listed in docs/commands.md and do not change.
type Error int32

// The errors that a command can reply, besides the server's own (wrong number of
// arguments, OOM, READONLY, NOPERM, CROSSSLOT, MOVED).
const (
	NoError Error = iota
	ErrInternal
	ErrArity
	ErrWrongType
	ErrForeignHash
	ErrForeignWindow
	ErrForeignLeases
	ErrForeignString
	ErrDamaged
	ErrUnknownOption
	ErrRepeatedOption
	ErrAlignWithoutOffset
	ErrMaxBurstNotInteger
	ErrMaxBurstRange
	ErrCountNotInteger
	ErrCountRange
	ErrPeriodNotInteger
	ErrPeriodRangeSeconds
	ErrPeriodRangeMillis
	ErrQuantityNotInteger
	ErrQuantityRange
	ErrWindowTooLong
	ErrRateTooHigh
	ErrLimitNotInteger
	ErrLimitRange
	ErrTTLNotInteger
	ErrTTLRangeSeconds
	ErrTTLRangeMillis
	ErrOffsetNotInteger
	ErrOffsetRange
	ErrNumkeysNotInteger
	ErrNumkeysRange
	ErrTooManyIDs
	NumErrors
)

var errorTexts = [NumErrors]string{
	ErrInternal:           "ERR internal error, see the server's log",
	ErrArity:              "ERR wrong number of arguments", // the server adds the command's name
	ErrWrongType:          "WRONGTYPE Operation against a key holding the wrong kind of value",
	ErrForeignHash:        "ERR the hash at this key is not a rate limiter",
	ErrForeignWindow:      "ERR the sorted set at this key is not a sliding window",
	ErrForeignLeases:      "ERR the sorted set at this key holds no leases",
	ErrForeignString:      "ERR the string at this key is not a quota",
	ErrDamaged:            "ERR the rate limiter at this key is damaged",
	ErrUnknownOption:      "ERR unknown option",
	ErrRepeatedOption:     "ERR option given more than once",
	ErrAlignWithoutOffset: "ERR ALIGN needs an offset",
	ErrMaxBurstNotInteger: "ERR max_burst is not an integer",
	ErrMaxBurstRange:      fmt.Sprintf("ERR max_burst must be between 0 and %d", maxLimit-1),
	ErrCountNotInteger:    "ERR count is not an integer",
	ErrCountRange:         fmt.Sprintf("ERR count must be between 1 and %d", maxLimit),
	ErrPeriodNotInteger:   "ERR period is not an integer",
	ErrPeriodRangeSeconds: fmt.Sprintf("ERR period must be between 1 and %d seconds", maxPeriod/second),
	ErrPeriodRangeMillis:  fmt.Sprintf("ERR period must be between 1 and %d milliseconds", maxPeriod/millisecond),
	ErrQuantityNotInteger: "ERR quantity is not an integer",
	ErrQuantityRange:      fmt.Sprintf("ERR quantity must be between %d and %d", -maxQuantity, maxQuantity),
	ErrWindowTooLong:      "ERR (max_burst + 1) x period / count must not exceed 100 years",
	ErrRateTooHigh:        "ERR the rate must not exceed one unit per nanosecond",
	ErrLimitNotInteger:    "ERR limit is not an integer",
	ErrLimitRange:         fmt.Sprintf("ERR limit must be between 1 and %d", maxLimit),
	ErrTTLNotInteger:      "ERR ttl is not an integer",
	ErrTTLRangeSeconds:    fmt.Sprintf("ERR ttl must be between 1 and %d seconds", maxPeriod/second),
	ErrTTLRangeMillis:     fmt.Sprintf("ERR ttl must be between 1 and %d milliseconds", maxPeriod/millisecond),
	ErrOffsetNotInteger:   "ERR offset is not an integer",
	ErrOffsetRange:        "ERR offset must be within 100 years either way",
	ErrNumkeysNotInteger:  "ERR numkeys is not an integer",
	ErrNumkeysRange:       fmt.Sprintf("ERR numkeys must be between 1 and %d", maxLimits),
	ErrTooManyIDs:         fmt.Sprintf("ERR at most %d ids can be released at once", releaseMost),
}

// Text returns the reply's text: an upper-case code and a plain sentence.
func (e Error) Text() string { return errorTexts[e] }

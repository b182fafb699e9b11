package commands

// ErrorCode names one error reply. NoError means that the call succeeded. The texts are a promise to users (docs/stability.md)
// and do not change. docs/commands.md explains some.
type ErrorCode int32

// The errors that a command can reply, beyond the server's own (wrong number of
// arguments, OOM, READONLY, NOPERM, CROSSSLOT, MOVED).
const (
	NoError ErrorCode = iota
	ErrInternal
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
	ErrQuantityLate
	ErrRepeatedOption
	ErrWithUpTo
	ErrWithForce
	ErrWithReserve
	ErrWithLockout
	ErrWithRaise
	ErrAlignWithoutOffset
	ErrReserveWithoutMaxWait
	ErrLockoutWithoutTime
	ErrShareWithoutWeight
	ErrMaxBurstNotInteger
	ErrMaxBurstRange
	ErrCountNotInteger
	ErrCountRange
	ErrPeriodNotInteger
	ErrPeriodNotTime
	ErrPeriodRange
	ErrSecondsRange
	ErrMonthsRange
	ErrMonthsNotQuota
	ErrMonthsWithoutAlign
	ErrMonthsOffsetRange
	ErrQuantityNotInteger
	ErrQuantityRange
	ErrPolicyQuantityRange
	ErrWindowTooLong
	ErrRateTooHigh
	ErrLimitNotInteger
	ErrLimitRange
	ErrSlotsNotInteger
	ErrSlotsRange
	ErrTTLNotTime
	ErrTTLRange
	ErrOffsetNotTime
	ErrOffsetRange
	ErrMaxWaitNotTime
	ErrMaxWaitRange
	ErrLockoutNotTime
	ErrLockoutRange
	ErrWeightNotInteger
	ErrWeightRange
	ErrDebtTooLong
	ErrTooMuchInUse
	ErrIDTooLong
	ErrTooManyIDs
	ErrUnknownClause
	ErrClauseShort
	ErrKeyWithoutClause
	ErrNotOptionOfClause
	ErrNotOptionOfAll
	ErrAfterOptions
	ErrBareKey
	ErrTooManyClauses
	ErrKeyRepeated
	ErrKeyShared
	ErrForceLease
	ErrForceLockout
	ErrShareFirst
	ErrShareCells
	ErrShareSlots
	ErrShareChain
	ErrShareWeight
	ErrSharePeeks
	ErrNoPolicy
	ErrNoPolicyName
	ErrTopCountNotInteger
	ErrTopCountRange
	ErrTopOption
	ErrTopOff
	ErrNoHelp
	NumErrors
)

package tests

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"

	"gothrottle/commands"
)

// wrongCalls provokes every error text but that of a panic, which panic_test.go provokes. The
// rows of the command table have further calls, see allWrongCalls. foreign_test.go has more
// values that are errors.
var wrongCalls = []struct {
	call string
	want commands.ErrorCode
}{
	// Each number must be an integer: at most one sign, then decimal digits.
	{"GO.THROTTLE k x 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1.0 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1e3 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 0x1 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k + 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k --1 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1_000 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k \u0661 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 15 x 60", commands.ErrCountNotInteger},
	{"GO.THROTTLE k 15 inf 60", commands.ErrCountNotInteger},
	{"GO.THROTTLE k 15 30 x", commands.ErrPeriodNotInteger},
	{"GO.THROTTLE k 15 30 60s", commands.ErrPeriodNotInteger},
	{"GO.THROTTLE k 15 30 60 1.5", commands.ErrQuantityNotInteger},
	{"GO.THROTTLE k 15 30 60 1x", commands.ErrQuantityNotInteger},
	{"CL.THROTTLE k 15 30 60 x", commands.ErrQuantityNotInteger},
	{"CL.THROTTLE k 15 30 60 MS", commands.ErrQuantityNotInteger},
	// Each number has bounds. Here are the first numbers outside, and numbers of more than
	// 64 bits.
	{"GO.THROTTLE k -1 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 1000000000000 1000000000000 1", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 9223372036854775807 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 9223372036854775808 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 18446744073709551617 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k -9223372036854775809 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k " + strings.Repeat("1", 1000) + " 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 15 0 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 -0 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 -30 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 1000000000001 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 30 0", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 15 30 -60", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 0 1 3153600001", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 0 1000000 9223372036854775807", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 15 30 0 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 15 30 -1 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 0 1 3153600000001 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 15 30 60 1000000000002", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 -1000000000002", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 -9223372036854775808", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 9223372036854775808", commands.ErrQuantityRange},
	// limit x period / count is at most 100 years.
	{"GO.THROTTLE k 1 1 1576800001", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 2 2 2102400001", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 1 1 1576800000001 MS", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 999999999999 1 3153600000", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 999999999999 1 3153600000 0", commands.ErrWindowTooLong},
	// Options.
	{"GO.THROTTLE k 15 30 60 SM", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 M", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 2", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 MS 1", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 MS\x00", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 MS MS", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 1 ms Ms", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 FORCE UPTO", commands.ErrWithForce},
	{"GO.THROTTLE k 15 30 60 FORCE MS RESERVE 5", commands.ErrWithForce},
	{"GO.THROTTLE k 15 30 60 force lockout 5", commands.ErrWithForce},
	{"GO.THROTTLE k 15 30 60 UPTO FORCE", commands.ErrWithUpTo},
	{"GO.THROTTLE k 15 30 60 UPTO RESERVE 5", commands.ErrWithUpTo},
	{"GO.THROTTLE k 15 30 60 UPTO LOCKOUT 5", commands.ErrWithUpTo},
	{"GO.THROTTLE k 15 30 60 RESERVE 5 UPTO", commands.ErrWithReserve},
	{"GO.THROTTLE k 15 30 60 RESERVE 5 FORCE", commands.ErrWithReserve},
	{"GO.THROTTLE k 15 30 60 RESERVE 5 LOCKOUT 5", commands.ErrWithReserve},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 5 UPTO", commands.ErrWithLockout},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 5 FORCE", commands.ErrWithLockout},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 5 ms RESERVE 5", commands.ErrWithLockout},
	{"GO.THROTTLE k 15 30 60 FORCE FORCE", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 RESERVE 5 RESERVE 5", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 5 LOCKOUT 5", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 FORCE 1", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 RESERVE", commands.ErrReserveWithoutMaxWait},
	{"GO.THROTTLE k 15 30 60 RESERVE MS", commands.ErrMaxWaitNotInteger},
	{"GO.THROTTLE k 15 30 60 RESERVE 1.5", commands.ErrMaxWaitNotInteger},
	{"GO.THROTTLE k 15 30 60 RESERVE -1", commands.ErrMaxWaitRange},
	{"GO.THROTTLE k 15 30 60 RESERVE 3153600001", commands.ErrMaxWaitRange},
	{"GO.THROTTLE k 15 30 60 MS RESERVE 3153600000001", commands.ErrMaxWaitRange},
	{"GO.THROTTLE k 15 30 60 1 LOCKOUT", commands.ErrLockoutWithoutTime},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 15m", commands.ErrLockoutNotInteger},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 0", commands.ErrLockoutRange},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 3153600001", commands.ErrLockoutRange},
	{"GO.THROTTLE k 15 30 60 LOCKOUT 3153600000001 MS", commands.ErrLockoutRange},
	{"GO.THROTTLE k 0 1 3153600000 2 FORCE", commands.ErrDebtTooLong},
	{"GO.THROTTLE k 15 30 60 1000000000001 FORCE", commands.ErrDebtTooLong},
	// redis-cell has no rate above one unit per ns, so CL.THROTTLE has none.
	{"CL.THROTTLE k 15 1000000001 1", commands.ErrRateTooHigh},
	{"CL.THROTTLE k 15 1000000000000 999", commands.ErrRateTooHigh},
	// Foreign values at the key.
	{"GO.THROTTLE list 15 30 60", commands.ErrWrongType},
	{"GO.THROTTLE profile 15 30 60", commands.ErrForeignHash},
	{"GO.THROTTLE damaged 15 30 60", commands.ErrDamaged},

	// Sliding and fixed windows.
	{"GO.WINDOW k x 60", commands.ErrLimitNotInteger},
	{"GO.WINDOW k 1.5 60 1", commands.ErrLimitNotInteger},
	{"GO.QUOTA k five 60", commands.ErrLimitNotInteger},
	{"GO.WINDOW k 0 60", commands.ErrLimitRange},
	{"GO.WINDOW k -1 60", commands.ErrLimitRange},
	{"GO.WINDOW k 1000000000001 60", commands.ErrLimitRange},
	{"GO.QUOTA k 0 60", commands.ErrLimitRange},
	{"GO.QUOTA k 9223372036854775808 60", commands.ErrLimitRange},
	{"GO.WINDOW k 5 x", commands.ErrPeriodNotInteger},
	{"GO.QUOTA k 5 60s", commands.ErrPeriodNotInteger},
	{"GO.WINDOW k 5 0", commands.ErrPeriodRangeSeconds},
	{"GO.WINDOW k 5 3153600001", commands.ErrPeriodRangeSeconds},
	{"GO.QUOTA k 5 -60", commands.ErrPeriodRangeSeconds},
	{"GO.WINDOW k 5 0 MS", commands.ErrPeriodRangeMillis},
	{"GO.QUOTA k 5 3153600000001 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.WINDOW k 5 60 1.5", commands.ErrQuantityNotInteger},
	{"GO.QUOTA k 5 60 1x", commands.ErrQuantityNotInteger},
	{"GO.WINDOW k 5 60 1000000000002", commands.ErrQuantityRange},
	{"GO.QUOTA k 5 60 -1000000000002", commands.ErrQuantityRange},
	{"GO.QUOTA k 5 60 1000000000002 UPTO", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 EXACT", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 ALIGN 0", commands.ErrUnknownOption},
	{"GO.WINDOW k 5 60 ALIGN 0", commands.ErrUnknownOption},
	{"GO.WINDOW k 5 60 EXACTLY", commands.ErrUnknownOption},
	{"GO.WINDOW k 5 60 EXACT 1", commands.ErrUnknownOption},
	{"GO.QUOTA k 5 60 EXACT", commands.ErrUnknownOption},
	{"GO.QUOTA k 5 60 ALIGN 0 0", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 UPTO upto", commands.ErrRepeatedOption},
	{"GO.WINDOW k 5 60 EXACT MS EXACT", commands.ErrRepeatedOption},
	{"GO.WINDOW k 5 60 1 UPTO UPTO", commands.ErrRepeatedOption},
	{"GO.QUOTA k 5 60 ALIGN 0 ALIGN 0", commands.ErrRepeatedOption},
	{"GO.QUOTA k 5 60 ALIGN", commands.ErrAlignWithoutOffset},
	{"GO.QUOTA k 5 60 1 MS ALIGN", commands.ErrAlignWithoutOffset},
	{"GO.QUOTA k 5 60 ALIGN MS", commands.ErrOffsetNotInteger},
	{"GO.QUOTA k 5 60 1 ALIGN 1.5", commands.ErrOffsetNotInteger},
	{"GO.QUOTA k 5 60 ALIGN 3153600001", commands.ErrOffsetRange},
	{"GO.QUOTA k 5 60 ALIGN -3153600001", commands.ErrOffsetRange},
	{"GO.QUOTA k 5 60 MS ALIGN 3153600000001", commands.ErrOffsetRange},
	{"GO.QUOTA k 5 60 ALIGN 9223372036854775808", commands.ErrOffsetRange},
	{"GO.WINDOW k 5 60 UPTO FORCE", commands.ErrWithUpTo},
	{"GO.WINDOW k 5 60 FORCE EXACT UPTO", commands.ErrWithForce},
	{"GO.WINDOW k 5 60 RESERVE 5", commands.ErrUnknownOption},
	{"GO.WINDOW k 5 60 LOCKOUT 5", commands.ErrUnknownOption},
	{"GO.QUOTA k 5 60 UPTO ALIGN 0 FORCE", commands.ErrWithUpTo},
	{"GO.QUOTA k 5 60 FORCE UPTO", commands.ErrWithForce},
	{"GO.QUOTA k 5 60 RESERVE 5", commands.ErrUnknownOption},
	{"GO.QUOTA k 5 60 LOCKOUT 5", commands.ErrUnknownOption},
	{"GO.WINDOW fullwindow 5 3153600000 1 FORCE", commands.ErrTooMuchInUse},
	{"GO.QUOTA fullquota 5 60 1 FORCE", commands.ErrTooMuchInUse},
	{"GO.WINDOW list 5 60", commands.ErrWrongType},
	{"GO.WINDOW profile 5 60", commands.ErrWrongType},
	{"GO.WINDOW text 5 60", commands.ErrWrongType},
	{"GO.QUOTA list 5 60", commands.ErrWrongType},
	{"GO.QUOTA board 5 60", commands.ErrWrongType},
	{"GO.WINDOW board 5 60", commands.ErrForeignWindow},
	{"GO.WINDOW held 5 60", commands.ErrForeignWindow},
	{"GO.WINDOW backward 5 60", commands.ErrDamaged},
	{"GO.QUOTA text 5 60", commands.ErrForeignString},
	// Several limits: errors in each argument, also of the last limit. A call that names a key twice
	// or has no clauses is wrong as a whole.
	{"GO.ALL k THROTTLE 15 30", commands.ErrArity},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l", commands.ErrArity},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30", commands.ErrArity},
	{"GO.ALL k THROTTLE 15 30 60 1 THROTTLE 15 30", commands.ErrArity},
	{"GO.ALL k THROTTLE 15 30 60 KEY", commands.ErrArity},
	{"GO.ALL k LEASE 5 60", commands.ErrArity},
	{"GO.ALL k WINDOW 5 60 WINDOW 5", commands.ErrKeyShared},
	{"GO.ALL k WINDOW 5 60 KEY l LEASE 5 60", commands.ErrArity},
	{"GO.ALL 1 k THROTTLE 15 30 60 1", commands.ErrUnknownClause},
	{"GO.ALL k 15 30 60", commands.ErrUnknownClause},
	{"GO.ALL k THROTTLES 15 30 60", commands.ErrUnknownClause},
	{"GO.ALL k KEY l THROTTLE 15 30 60", commands.ErrUnknownClause},
	{"GO.ALL k THROTTLE 15 30 60 KEY l KEY THROTTLE 15 30 60", commands.ErrUnknownClause},
	{"GO.ALL k THROTTLE 15 30 60 KEY l MS", commands.ErrUnknownClause},
	{"GO.ALL k" + strings.Repeat(" THROTTLE 15 30 60", 33), commands.ErrTooManyClauses},
	{"GO.ALL " + groups(33, "QUOTA 5 60"), commands.ErrTooManyClauses},
	{"GO.ALL k THROTTLE 15 30 60 KEY k THROTTLE 15 30 60", commands.ErrKeyRepeated},
	{"GO.ALL k THROTTLE 15 30 60 KEY l QUOTA 5 60 KEY k WINDOW 5 60", commands.ErrKeyRepeated},
	{"GO.ALL k WINDOW 5 60 WINDOW 5 60", commands.ErrKeyShared},
	{"GO.ALL k WINDOW 5 60 THROTTLE 15 30 60", commands.ErrKeyShared},
	{"GO.ALL k THROTTLE 15 30 60 LEASE 5 60 a", commands.ErrKeyShared},
	{"GO.ALL k LEASE 5 60 a QUOTA 5 60", commands.ErrKeyShared},
	{"GO.ALL k THROTTLE x 30 60 1", commands.ErrMaxBurstNotInteger},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE -1 30 60 1", commands.ErrMaxBurstRange},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 x 60 1", commands.ErrCountNotInteger},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 0 60 1", commands.ErrCountRange},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 x 1", commands.ErrPeriodNotInteger},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 0 1", commands.ErrPeriodRangeSeconds},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 0 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 60 1x", commands.ErrQuantityNotInteger},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 60 x", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 15 30 60 1000000000002", commands.ErrQuantityRange},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY l THROTTLE 1 1 1576800001 1", commands.ErrWindowTooLong},
	{"GO.ALL k THROTTLE 15 30 60 1 UPTO", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 1 1", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 1 15 30 60 1", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 1 MS MS", commands.ErrRepeatedOption},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY list THROTTLE 15 30 60 1", commands.ErrWrongType},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY held THROTTLE 15 30 60 1", commands.ErrWrongType},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY profile THROTTLE 15 30 60 1", commands.ErrForeignHash},
	{"GO.ALL k THROTTLE 15 30 60 1 KEY damaged THROTTLE 15 30 60 1", commands.ErrDamaged},
	{"GO.ALL k THROTTLE 15 30 60 RESERVE 5", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 LOCKOUT 5", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 FORCE FORCE", commands.ErrRepeatedOption},
	{"GO.ALL k THROTTLE 15 30 60 FORCE KEY l QUOTA 5 60", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 KEY l LEASE 5 60 a FORCE", commands.ErrForceLease},
	{"GO.ALL k THROTTLE 15 30 60 KEY l THROTTLE 0 1 3153600000 2 FORCE", commands.ErrDebtTooLong},
	{"GO.ALL k THROTTLE 15 30 60 KEY fullwindow WINDOW 5 3153600000 FORCE", commands.ErrTooMuchInUse},
	{"GO.ALL k THROTTLE 15 30 60 KEY fullquota QUOTA 5 60 FORCE", commands.ErrTooMuchInUse},
	{"GO.ALL k WINDOW x 60", commands.ErrLimitNotInteger},
	{"GO.ALL k THROTTLE 15 30 60 KEY l WINDOW 0 60", commands.ErrLimitRange},
	{"GO.ALL k THROTTLE 15 30 60 KEY l WINDOW 5 60 1.5", commands.ErrQuantityNotInteger},
	{"GO.ALL k WINDOW 5 60 1 EXACT EXACT", commands.ErrRepeatedOption},
	{"GO.ALL k WINDOW 5 60 ALIGN 0", commands.ErrUnknownOption},
	{"GO.ALL k WINDOW 5 60 EXACT 1", commands.ErrUnknownOption},
	{"GO.ALL k QUOTA 5 60 ALIGN", commands.ErrAlignWithoutOffset},
	{"GO.ALL k QUOTA 5 60 ALIGN x", commands.ErrOffsetNotInteger},
	{"GO.ALL k QUOTA 5 60 ALIGN 3153600001", commands.ErrOffsetRange},
	{"GO.ALL k QUOTA 5 60 ALIGN 0 ALIGN 0", commands.ErrRepeatedOption},
	{"GO.ALL k QUOTA 5 0 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.ALL k LEASE 0 60 a", commands.ErrLimitRange},
	{"GO.ALL k LEASE 5 x a", commands.ErrTTLNotInteger},
	{"GO.ALL k LEASE 5 0 a", commands.ErrTTLRangeSeconds},
	{"GO.ALL k LEASE 5 3153600000001 a MS", commands.ErrTTLRangeMillis},
	{"GO.ALL k LEASE 5 60 " + strings.Repeat("x", 513), commands.ErrIDTooLong},
	{"GO.ALL k THROTTLE 15 30 60 MS KEY l THROTTLE 15 30 60", commands.ErrUnknownOption},
	{"GO.ALL k THROTTLE 15 30 60 KEY board WINDOW 5 60", commands.ErrForeignWindow},
	{"GO.ALL k THROTTLE 15 30 60 KEY backward WINDOW 5 60", commands.ErrDamaged},
	{"GO.ALL k THROTTLE 15 30 60 KEY board LEASE 5 60 a", commands.ErrForeignLeases},
	{"GO.ALL k THROTTLE 15 30 60 KEY text QUOTA 5 60", commands.ErrForeignString},
	{"GO.ALL k THROTTLE 15 30 60 KEY log QUOTA 5 60", commands.ErrWrongType},
	// GO.INFO.
	{"GO.INFO list", commands.ErrWrongType},
	{"GO.INFO profile", commands.ErrForeignHash},
	{"GO.INFO damaged", commands.ErrDamaged},
	{"GO.INFO backward", commands.ErrDamaged},
	{"GO.INFO board", commands.ErrForeignZset},
	{"GO.INFO text", commands.ErrForeignText},
	// Leases.
	{"GO.LEASE k 5 60 " + strings.Repeat("x", 513), commands.ErrIDTooLong},
	{"GO.RELEASE k a " + strings.Repeat("x", 513), commands.ErrIDTooLong},
	{"GO.LEASE k x 60 a", commands.ErrLimitNotInteger},
	{"GO.LEASE k 0 60 a", commands.ErrLimitRange},
	{"GO.LEASE k 1000000000001 60 a", commands.ErrLimitRange},
	{"GO.LEASE k 5 x a", commands.ErrTTLNotInteger},
	{"GO.LEASE k 5 0 a", commands.ErrTTLRangeSeconds},
	{"GO.LEASE k 5 3153600001 a", commands.ErrTTLRangeSeconds},
	{"GO.LEASE k 5 0 a MS", commands.ErrTTLRangeMillis},
	{"GO.LEASE k 5 3153600000001 a MS", commands.ErrTTLRangeMillis},
	{"GO.LEASE k 5 60 a UPTO", commands.ErrUnknownOption},
	{"GO.LEASE k 5 60 a 1", commands.ErrUnknownOption},
	{"GO.LEASE k 5 60 a MS MS", commands.ErrRepeatedOption},
	{"GO.LEASE list 5 60 a", commands.ErrWrongType},
	{"GO.LEASE text 5 60 a", commands.ErrWrongType},
	{"GO.LEASE board 5 60 a", commands.ErrForeignLeases},
	{"GO.LEASE log 5 60 a", commands.ErrForeignLeases},
	{"GO.RELEASE list a", commands.ErrWrongType},
	{"GO.RELEASE profile a", commands.ErrWrongType},
	{"GO.RELEASE board a", commands.ErrForeignLeases},
	{"GO.RELEASE log a", commands.ErrForeignLeases},
	{"GO.RELEASE k" + strings.Repeat(" a", 1025), commands.ErrTooManyIDs},
}

// allWrongCalls returns wrongCalls and those of the command table.
func allWrongCalls() (all []commands.WrongCall) {
	for _, c := range wrongCalls {
		all = append(all, commands.WrongCall{Call: c.call, Want: c.want})
	}
	for _, row := range commands.Table {
		all = append(all, row.Wrong...)
	}
	return all
}

// wrongTexts returns what the server may reply to a wrong call: where a text names a word, any
// word of the call may stand. TestErrors_nameTheWord holds the text to the right word.
func wrongTexts(call string, code commands.ErrorCode) (all []string) {
	words := strings.Fields(call)
	switch {
	case !strings.Contains(code.Text(), "<word>") && code != commands.ErrArity:
		return []string{code.Text()}
	case code == commands.ErrArity:
		return []string{fmt.Sprintf("%s for '%s' command", code.Text(), strings.ToLower(words[0]))}
	}
	for _, word := range words[1:] {
		all = append(all, string(commands.AppendError(nil, code, word)))
	}
	return all
}

// groups returns n groups of GO.ALL, each with a key of its own and the same clause.
func groups(n int, clause string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d %s", i, clause))
	}
	return strings.Join(all, " KEY ")
}

// inAllNames returns a call under all names that accept its arguments: its own name, that of
// its read-only twin, and CL.THROTTLE for a call of GO.THROTTLE without options.
func inAllNames(call string) []string {
	all := []string{call}
	words := strings.Fields(call)
	rest := strings.TrimPrefix(call, words[0])
	if _, ok := samples[words[0]+"_RO"]; ok {
		all = append(all, words[0]+"_RO"+rest)
	}
	tail := words[min(len(words), 5):]
	if words[0] == "GO.THROTTLE" && (len(tail) == 0 || len(tail) == 1 && strings.ContainsAny(tail[0], "0123456789")) {
		all = append(all, "CL.THROTTLE"+rest)
	}
	return all
}

// wrongArity checks that a call of n words, including the name, is refused for its number
// of words.
func (s *server) wrongArity(name string, n int) {
	s.t.Helper()
	call := []any{name}
	for len(call) < n {
		call = append(call, "1")
	}
	err := s.Do(ctx, call...).Err()
	if assert.Error(s.t, err, "%d words", n) {
		want := fmt.Sprintf("err wrong number of arguments for '%s' command", strings.ToLower(name))
		assert.Equal(s.t, want, strings.ToLower(err.Error()))
	}
}

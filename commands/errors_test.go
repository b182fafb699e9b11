package commands

import (
	"strconv"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// foreignKeys returns a store with keys of others, and damaged keys.
func foreignKeys(t *testing.T) *store {
	s := newStore(t)
	future := s.now + 1_000_000
	put := func(name string, v *value) { v.expire = int64(future); s.keys[name] = v }
	zset := func(entries ...Entry) *value { return &value{kind: KindZset, set: entries} } // the newest first
	text := func(s string) *value { return &value{kind: KindString, text: s} }
	hash := func(fields map[string]string) *value { return &value{kind: KindHash, fields: fields} }
	put("string", text("hello"))
	put("string21", text("x@1800000000000000000"))
	put("full", zset(Entry{Time: future, Member: "\x01" + strconv.FormatInt(funnel.MaxInUse, 36) + ":" + strconv.FormatInt(funnel.MaxInUse, 36)}))
	put("full2", text("1000000000000000@1800000060000000000"))
	put("list", &value{kind: KindOther})
	put("profile", hash(map[string]string{"name": "bob"}))
	put("broken", hash(map[string]string{"0": strconv.FormatInt(int64(future)*1000, 10), "1": "0"}))
	put("board", zset(Entry{Time: future, Member: "ann"}))
	put("badscore", zset(Entry{Bad: 1, Member: "\x015"}))
	put("badlease", zset(Entry{Bad: 1, Member: "\x02a"}))
	put("mixed", zset(Entry{Time: future, Member: "\x015"}, Entry{Time: 1, Member: "ann"}))
	put("mixedleases", zset(Entry{Time: future, Member: "\x02a"}, Entry{Time: 1, Member: "ann"}))
	put("backward", zset(Entry{Time: future, Member: "\x014"}, Entry{Time: future - 1, Member: "\x015"}))
	return s
}

// Every error has a call. A call that is an error changes nothing: neither a key of ours nor a
// key of others.
func TestErrors(t *testing.T) {
	// ErrInternal and ErrForked are those of package cgo: of its barrier for panics, and of a forked child.
	seen := map[ErrorCode]bool{NoError: true, ErrInternal: true, ErrForked: true}
	s := foreignKeys(t)
	before := s.dump()
	CountDenials(0)
	ids := func(n int) string { return strings.Repeat(" a", n) }
	clauses := func(n int) string { return strings.Repeat(" THROTTLE 1 1 1", n) }
	for _, row := range []struct {
		line string
		want ErrorCode
	}{
		// Numbers.
		{"GO.THROTTLE k 1.5 30 60", ErrMaxBurstNotInteger},
		{"GO.THROTTLE k -1 30 60", ErrMaxBurstRange},
		{"GO.THROTTLE k 1000000000000 30 60", ErrMaxBurstRange},
		{"GO.THROTTLE k 99999999999999999999 30 60", ErrMaxBurstRange},
		{"GO.THROTTLE k 15 x 60", ErrCountNotInteger},
		{"GO.THROTTLE k 15 0 60", ErrCountRange},
		{"GO.THROTTLE k 15 1000000000001 60", ErrCountRange},
		{"GO.THROTTLE k 15 30 60s", ErrPeriodNotInteger},
		{"GO.THROTTLE k 15 30 0", ErrPeriodRangeSeconds},
		{"GO.THROTTLE k 0 1 3153600001", ErrPeriodRangeSeconds},
		{"GO.THROTTLE k 15 30 0 MS", ErrPeriodRangeMillis},
		{"GO.THROTTLE k 0 1 3153600000001 MS", ErrPeriodRangeMillis},
		{"GO.THROTTLE k 15 30 60 1x", ErrQuantityNotInteger},
		{"GO.THROTTLE k 15 30 60 1000000000002", ErrQuantityRange},
		{"GO.THROTTLE k 15 30 60 -1000000000002", ErrQuantityRange},
		{"GO.POLICY sample:k -1", ErrPolicyQuantityRange},
		{"GO.POLICY sample:k 1000000000002", ErrPolicyQuantityRange},
		{"GO.POLICY sample:k 1x", ErrQuantityNotInteger},
		{"GO.POLICY sample", ErrNoPolicy},
		{"GO.THROTTLE k 1 1 3153600000", ErrWindowTooLong},
		{"CL.THROTTLE k 15 1000000001 1", ErrRateTooHigh},
		{"GO.THROTTLE k 15 30 60 RESERVE x", ErrMaxWaitNotInteger},
		{"GO.THROTTLE k 15 30 60 RESERVE -1", ErrMaxWaitRange},
		{"GO.THROTTLE k 15 30 60 RESERVE 3153600001", ErrMaxWaitRange},
		{"GO.THROTTLE k 15 30 60 MS RESERVE 3153600000001", ErrMaxWaitRange},
		{"GO.THROTTLE k 15 30 60 LOCKOUT MS", ErrLockoutNotInteger},
		{"GO.THROTTLE k 15 30 60 LOCKOUT 0", ErrLockoutRange},
		{"GO.THROTTLE k 15 30 60 LOCKOUT 3153600001", ErrLockoutRange},
		{"GO.THROTTLE k 15 30 60 LOCKOUT 3153600000001 MS", ErrLockoutRange},
		{"GO.THROTTLE k 0 1 3153600000 2 FORCE", ErrDebtTooLong},
		{"GO.WINDOW full 1 3153600000 1 FORCE", ErrTooMuchInUse},
		{"GO.QUOTA full2 1 3153600000 1 FORCE", ErrTooMuchInUse},
		{"GO.THROTTLE k 15 30 60 UPTO FORCE", ErrWithUpTo},
		{"GO.THROTTLE k 15 30 60 FORCE RESERVE 1", ErrWithForce},
		{"GO.THROTTLE k 15 30 60 RESERVE 1 LOCKOUT 1", ErrWithReserve},
		{"GO.THROTTLE k 15 30 60 LOCKOUT 1 UPTO", ErrWithLockout},
		{"GO.THROTTLE k 15 30 60 RESERVE", ErrReserveWithoutMaxWait},
		{"GO.THROTTLE k 15 30 60 LOCKOUT", ErrLockoutWithoutTime},
		{"GO.ALL k THROTTLE 1 1 1 KEY l LEASE 1 1 a FORCE", ErrForceLease},
		{"GO.TOP 1x", ErrTopCountNotInteger},
		{"GO.TOP 10001", ErrTopCountRange},
		{"GO.TOP", ErrTopOff},
		{"GO.WINDOW k x 60", ErrLimitNotInteger},
		{"GO.WINDOW k 0 60", ErrLimitRange},
		{"GO.WINDOW k 1000000000001 60", ErrLimitRange},
		{"GO.WINDOW k 5 3153600001", ErrPeriodRangeSeconds},
		{"GO.WINDOW k 5 60 9999999999999", ErrQuantityRange},
		{"GO.QUOTA k 1e3 60", ErrLimitNotInteger},
		{"GO.QUOTA k 5 x", ErrPeriodNotInteger},
		{"GO.QUOTA k 5 60 1 ALIGN x", ErrOffsetNotInteger},
		{"GO.QUOTA k 5 60 1 ALIGN 3153600001", ErrOffsetRange},
		{"GO.QUOTA k 5 60 1 ALIGN -3153600001", ErrOffsetRange},
		{"GO.LEASE k x 60 a", ErrLimitNotInteger},
		{"GO.LEASE k 1 x a", ErrTTLNotInteger},
		{"GO.LEASE k 1 0 a", ErrTTLRangeSeconds},
		{"GO.LEASE k 1 3153600001 a", ErrTTLRangeSeconds},
		{"GO.LEASE k 1 0 a MS", ErrTTLRangeMillis},
		{"GO.LEASE k 1 60 " + strings.Repeat("x", 513), ErrIDTooLong},
		{"GO.RELEASE k a " + strings.Repeat("x", 513), ErrIDTooLong},
		{"GO.RELEASE k" + ids(1025), ErrTooManyIDs},
		// Options.
		{"GO.THROTTLE k 15 30 60 XX", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 EXACT", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 MS 5", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 ms MS", ErrRepeatedOption},
		{"GO.WINDOW k 5 60 ALIGN 0", ErrUnknownOption},
		{"GO.QUOTA k 5 60 ALIGN", ErrAlignWithoutOffset},
		{"GO.QUOTA k 5 60 ALIGN 0 ALIGN 0", ErrRepeatedOption},
		{"GO.LEASE k 1 60 a UPTO", ErrUnknownOption},
		// Clauses. More errors of their words are in TestAll_errors.
		{"GO.ALL k QUEUE 5 60 1", ErrUnknownClause},
		{"GO.ALL k QUOTA 5 60 1 UPTO", ErrUnknownOption},
		{"GO.ALL k QUOTA 5 60 KEY k QUOTA 5 60", ErrKeyRepeated},
		{"GO.ALL k QUOTA 5 60 THROTTLE 1 1 1", ErrKeyShared},
		{"GO.ALL k" + clauses(33), ErrTooManyClauses},
		{"GO.ALL k QUOTA 5 60 KEY l QUOTA 5", ErrArity},
		// Keys of another type.
		{"GO.THROTTLE list 15 30 60", ErrWrongType},
		{"GO.THROTTLE string 15 30 60", ErrWrongType},
		{"GO.WINDOW profile 5 60", ErrWrongType},
		{"GO.QUOTA board 5 60", ErrWrongType},
		{"GO.LEASE string 5 60 a", ErrWrongType},
		{"GO.RELEASE string a", ErrWrongType},
		{"GO.ALL k THROTTLE 1 1 1 KEY board THROTTLE 1 1 1", ErrWrongType},
		{"GO.ALL k QUOTA 5 60 KEY list WINDOW 1 1", ErrWrongType},
		{"GO.ALL k QUOTA 5 60 KEY string LEASE 1 1 a", ErrWrongType},
		{"GO.ALL k WINDOW 5 60 KEY list QUOTA 1 1", ErrWrongType},
		// Keys of the right type that are not ours.
		{"GO.THROTTLE profile 15 30 60", ErrForeignHash},
		{"GO.THROTTLE broken 15 30 60", ErrDamaged},
		{"GO.QUOTA string 5 60", ErrForeignString},
		{"GO.QUOTA string21 5 60", ErrForeignString},
		{"GO.WINDOW board 5 60", ErrForeignWindow},
		{"GO.WINDOW badscore 5 60", ErrForeignWindow},
		{"GO.WINDOW mixed 5 60", ErrForeignWindow},
		{"GO.WINDOW mixed 5 60 -5", ErrForeignWindow},
		{"GO.WINDOW backward 5 60", ErrDamaged},
		{"GO.LEASE board 5 60 a", ErrForeignLeases},
		{"GO.LEASE backward 5 60 a", ErrForeignLeases},
		{"GO.LEASE badlease 5 60 a", ErrForeignLeases},
		{"GO.LEASE mixedleases 5 60 a", ErrForeignLeases},
		{"GO.RELEASE board a", ErrForeignLeases},
		{"GO.RELEASE badlease a", ErrForeignLeases},
		{"GO.RELEASE mixedleases a", ErrForeignLeases},
		{"GO.INFO profile", ErrForeignHash},
		{"GO.INFO broken", ErrDamaged},
		{"GO.INFO backward", ErrDamaged},
		{"GO.INFO board", ErrForeignZset},
		{"GO.INFO badscore", ErrForeignZset},
		{"GO.INFO badlease", ErrForeignZset},
		{"GO.INFO mixed", ErrForeignZset},
		{"GO.INFO mixedleases", ErrForeignZset},
		{"GO.INFO string", ErrForeignText},
		{"GO.INFO string21", ErrForeignText},
		{"GO.INFO list", ErrWrongType},
		{"GO.ALL k QUOTA 5 60 KEY profile THROTTLE 1 1 1", ErrForeignHash},
		{"GO.ALL k QUOTA 5 60 KEY mixed WINDOW 5 60", ErrForeignWindow},
		{"GO.ALL k QUOTA 5 60 KEY board LEASE 5 60 a", ErrForeignLeases},
		{"GO.ALL k WINDOW 5 60 KEY string21 QUOTA 5 60", ErrForeignString},
	} {
		_, got := s.do(row.line)
		seen[got] = true
		if got != row.want {
			t.Errorf("%.60q: %q, want %q", row.line, got.Text(), row.want.Text())
		}
		if after := s.dump(); after != before {
			t.Fatalf("%.60q: the keys were\n%s\nand are\n%s", row.line, before, after)
		}
	}
	for e := range NumErrors {
		if !seen[e] {
			t.Errorf("no row for %q", e.Text())
		}
	}
}

// The bounds themselves are no errors.
func TestErrors_bounds(t *testing.T) {
	for _, line := range []string{
		"GO.THROTTLE k 999999999999 1000000000000 1",
		"GO.THROTTLE k 0 1 3153600000 1000000000001",
		"GO.THROTTLE k 0 1 3153600000000 -1000000000001 MS",
		"CL.THROTTLE k 15 1000000000 1",
		"GO.WINDOW k 1000000000000 3153600000",
		"GO.QUOTA k 1 1 1 ALIGN 3153600000",
		"GO.QUOTA k 1 1 1 ALIGN -3153600000000 MS",
		"GO.LEASE k 1 3153600000 " + strings.Repeat("x", 512),
		"GO.RELEASE k" + strings.Repeat(" a", 1024),
		"GO.ALL k" + strings.Repeat(" THROTTLE 1 1 1", 32),
		"GO.POLICY sample:k 1000000000001",
	} {
		if _, err := newStore(t).do(line); err != NoError {
			t.Errorf("%.60q: %q", line, err.Text())
		}
	}
}

func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for e := NoError + 1; e < NumErrors; e++ {
		text := e.Text()
		code, sentence, _ := strings.Cut(text, " ")
		if code != strings.ToUpper(code) || sentence == "" || strings.HasSuffix(text, ".") || seen[text] {
			t.Errorf("error %d: %q", e, text)
		}
		seen[text] = true
	}
}

// An error that names a word shows the word in full up to 64 bytes. Bytes that could break
// the reply become question marks. The text fits in the host's memory.
func TestAppendError(t *testing.T) {
	wantTold(t, []toldRow{
		{"GO.THROTTLE k 15 30 60 XX", "ERR unknown option 'XX'"},
		{"GO.THROTTLE k 15 30 60 1 ms Ms", "ERR option 'Ms' given more than once"},
		{"GO.THROTTLE k 15 30 60 \x00\a\x7f\xff'", "ERR unknown option '????''"},
		{"GO.QUOTA k 5 60 ALIGN 0 aliGN 0", "ERR option 'aliGN' given more than once"},
		{"GO.ALL k QUEUE 1 1 1", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'QUEUE'"},
		{"GO.ALL k WINDOW 5 60 EXACT exact", "ERR option 'exact' given more than once"},
		{"GO.ALL k QUOTA 5 60 1 2", "ERR unknown option '2'"},
		{"GO.ALL k QUOTA 5 60 MS MS", "ERR option 'MS' given more than once"},
		{"GO.LEASE k 1 60 a " + strings.Repeat("x", 64), "ERR unknown option '" + strings.Repeat("x", 64) + "'"},
		{"GO.LEASE k 1 60 a " + strings.Repeat("x", 65), "ERR unknown option '" + strings.Repeat("x", 64) + "'"},
	})
	for e := range NumErrors {
		if n := len(AppendError(nil, e, strings.Repeat("x", 1000))); n >= MaxErrorText { // the host adds a zero
			t.Errorf("%q has up to %d bytes", e.Text(), n)
		}
	}
}

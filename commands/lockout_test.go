package commands

import (
	"fmt"
	"math"
	"testing"
)

// A denial begins a lockout. Until its end nothing is admitted without FORCE, and nothing moves the
// end. A call without LOCKOUT, a peek, a read-only call and a quantity above the limit begin none.
func TestLockout(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.THROTTLE k 4 5 300 5 LOCKOUT 900", "0 5 0 -1 300"},
		{0, "GO.THROTTLE k 4 5 300 0 LOCKOUT 900", "0 5 0 -1 300"},
		{0, "GO.THROTTLE k 4 5 300 6 LOCKOUT 900", "1 5 0 -1 300"},
		{0, "GO.THROTTLE k 4 5 300", "1 5 0 60 300"},
		{0, "GO.THROTTLE_RO k 4 5 300 1 LOCKOUT 900", "1 5 0 900 900"},
		{0, "GO.THROTTLE k 4 5 300", "1 5 0 60 300"},
		{0, "GO.THROTTLE k 4 5 300 1 LOCKOUT 900", "1 5 0 900 900"},

		{100_000, "GO.THROTTLE k 4 5 300", "1 5 0 800 800"},
		{0, "GO.THROTTLE k 4 5 300 1 LOCKOUT 900", "1 5 0 800 800"},
		{0, "GO.THROTTLE k 4 5 300000 1 MS lockout 1", "1 5 0 800000 800000"},
		{0, "GO.THROTTLE_RO k 4 5 300", "1 5 0 800 800"},
		{0, "CL.THROTTLE k 4 5 300", "1 5 0 800 800"},
		{0, "GO.THROTTLE k 999 5 300", "1 1000 0 800 800"},
		{0, "GO.THROTTLE k 4 5 300 5 UPTO", "1 5 0 800 800 0"},
		{0, "GO.THROTTLE k 4 5 300 1 RESERVE 10000", "1 5 0 800 800 -1"},
		{0, "GO.THROTTLE k 4 5 300 0", "1 5 0 800 800"},
		{0, "GO.THROTTLE k 4 5 300 0 LOCKOUT 900", "1 5 0 800 800"},
		{0, "GO.THROTTLE k 4 5 300 6", "1 5 0 -1 800"},

		// FORCE charges, and a refund gives back. Usage drains meanwhile.
		{0, "GO.THROTTLE k 4 5 300 0 FORCE", "0 5 0 -1 800"},
		{0, "GO.THROTTLE k 4 5 300 20 FORCE", "0 5 0 -1 1400"},
		{0, "GO.THROTTLE k 4 5 300", "1 5 0 1160 1400"}, // 1400 + 60 - 300
		{0, "GO.THROTTLE k 4 5 300 -20", "0 5 0 -1 800"},
		{0, "GO.THROTTLE k 4 5 300 -1 UPTO", "0 5 0 -1 800 -1"},
		{0, "GO.THROTTLE k 4 5 300 -99 FORCE", "0 5 0 -1 800"},
		{0, "GO.THROTTLE k 4 5 300 -99", "0 5 0 -1 800"},
		{0, "GO.THROTTLE k 4 5 300", "1 5 0 800 800"}, // although nothing is in use
		{0, "GO.THROTTLE k 4 5 300 2 FORCE", "0 5 0 -1 800"},

		{799_999, "GO.THROTTLE k 4 5 300000 1 MS", "1 5 0 1 1"},
		{0, "GO.THROTTLE k 4 5 300 0", "1 5 0 1 1"},
		{1, "GO.THROTTLE k 4 5 300 0", "0 5 5 -1 0"},
		{0, "GO.THROTTLE k 4 5 300", "0 5 4 -1 60"},
		// The next lockout.
		{0, "GO.THROTTLE k 4 5 300 5 LOCKOUT 10", "1 5 0 60 60"},
		{10_000, "GO.THROTTLE k 4 5 300 -1", "0 5 5 -1 0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is in use, and these are left: %s", s.dump())
	}
}

// Retry_after is the longer of the lockout and the wait for the quantity, so the call is admitted
// then. Afterwards the limiter is what it would have been.
func TestLockout_waits(t *testing.T) {
	converse(t, []step{
		{0, "GO.THROTTLE k 1 1 100 2 LOCKOUT 30", "0 2 0 -1 200"},
		{0, "GO.THROTTLE k 1 1 100 1 LOCKOUT 30", "1 2 0 100 200"},
		{0, "GO.THROTTLE k 1 1 100 2", "1 2 0 200 200"},
		{0, "GO.THROTTLE k 1 1 100 2 UPTO", "1 2 0 100 200 0"},
		{0, "GO.THROTTLE k 1 1 100 2 RESERVE 100", "1 2 0 100 200 -1"},
		{0, "GO.THROTTLE k 1 1 100 2 RESERVE 180", "1 2 0 30 200 -1"},
		{30_000, "GO.THROTTLE_RO k 1 1 100 2 RESERVE 180", "0 2 0 -1 370 170"},
		{0, "GO.THROTTLE k 1 1 100", "1 2 0 70 170"},
		{70_000, "GO.THROTTLE k 1 1 100", "0 2 0 -1 200"},
		// A changed rate moves usage, not the end.
		{0, "GO.THROTTLE k 1 1 100 1 LOCKOUT 60", "1 2 0 100 200"},
		{0, "GO.THROTTLE k 1 1 10 1", "1 2 0 60 60"},
		{0, "GO.THROTTLE k 1 1 10 0", "1 2 0 60 60"},
		{15_000, "GO.THROTTLE k 1 7 10 2", "1 2 0 45 45"},
		{45_000, "GO.THROTTLE k 1 7 10 2", "0 2 0 -1 3"},
		// The first call with a new rate may begin a lockout.
		{0, "GO.THROTTLE k 1 1 10 1 LOCKOUT 5", "1 2 0 10 20"},
		{4999, "GO.THROTTLE k 1 1 10000 -2 MS", "0 2 0 -1 1"},
		{1, "GO.THROTTLE k 1 1 10 2", "0 2 0 -1 20"},
	})
}

// DEL ends a lockout. A key that a lockout alone keeps expires after it.
func TestLockout_key(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.THROTTLE k 0 1 4 1 LOCKOUT 60", "0 1 0 -1 4"},
		{0, "GO.THROTTLE k 0 1 4 1 LOCKOUT 60", "1 1 0 60 60"},
		{5_000, "GO.THROTTLE k 0 1 4", "1 1 0 55 55"},
	})
	if got, want := s.keys["k"].expire, inMillis(61_000)/1e6; got != want {
		t.Errorf("expires at %d, want %d", got, want)
	}
	delete(s.keys, "k")
	if got := s.told("GO.THROTTLE k 0 1 4"); got != "[0 1 0 -1 4]" {
		t.Errorf("after DEL: %s", got)
	}
}

func TestLockout_effect(t *testing.T) {
	at := func(ms int64) string { return fmt.Sprint(inMillis(ms)) }
	full := hash(inMillis(32_000), 2)
	locked := full.with("128", at(60_000))
	lapsed := full.with("128", at(0))
	fraction := hash(inMillis(20_000), 60, 3, 7)
	onlyLocked := hash(inMillis(-1), 2).with("128", at(60_000))
	two := hash(inMillis(2000), 2, none, none, inMillis(90_000), 3)
	for _, row := range []struct {
		name  string
		key   *value
		words string
		want  string
	}{
		// A lockout begins: its end is written, and the state as it is now.
		{"begins", full, "THROTTLE k 15 30 60 1 LOCKOUT 60", "l=60000000000 expire+60000..68000"},
		{"begins, usage lasts longer", full, "THROTTLE k 15 30 60 1 LOCKOUT 5", "l=5000000000 expire+32000..40000"},
		{"begins, the shortest", full, "THROTTLE k 15 30 60000 1 MS LOCKOUT 1", "l=1000000 expire+32000..40000"},
		{"begins, the longest", full, "THROTTLE k 15 30 60 1 LOCKOUT 3153600000",
			"l=3153600000000000000 expire+3153600000000..3153600008000"},
		{"begins, with a fraction", fraction, "THROTTLE k 0 7 60 1 LOCKOUT 60", "l=60000000000 expire+60000..62142"},
		{"begins at another rate", full, "THROTTLE k 15 60 60 1 LOCKOUT 60", "t=16000000000 p=1 l=60000000000 expire+60000..64000"},
		{"begins on redis-cell's string", text(at(2500)), "THROTTLE k 0 30 60 1 LOCKOUT 60", "t=2500000000 p=2 l=60000000000 expire+60000..61000"},
		{"begins again after the end", lapsed, "THROTTLE k 15 30 60 1 LOCKOUT 60", "l=60000000000 expire+60000..68000"},
		{"begins, usage would drain after 2262", hash(inMillis(3_600_000_000), 1), "THROTTLE k 0 1 3600 1 LOCKOUT 60", "l=60000000000 expire+3600000000..3600900000"},
		// It does not begin.
		{"admitted", hash(inMillis(2000), 2), "THROTTLE k 15 30 60 1 LOCKOUT 60", "t=4000000000 expire+4000..12000"},
		{"new", nil, "THROTTLE k 15 30 60 1 LOCKOUT 60", "t=2000000000 p=2 expire+2000..10000"},
		{"a peek", full, "THROTTLE k 0 30 60 0 LOCKOUT 60", ""},
		{"never", full, "THROTTLE k 15 30 60 17 LOCKOUT 60", ""},
		{"a refund", full, "THROTTLE k 15 30 60 -1 LOCKOUT 60", "t=30000000000 expire+30000..38000"},
		{"a denial without LOCKOUT", full, "THROTTLE k 15 30 60", ""},
		// While it stands.
		{"denied while locked", locked, "THROTTLE k 15 30 60 1 LOCKOUT 900", ""},
		{"denied while locked, without LOCKOUT", locked, "THROTTLE k 15 30 60", ""},
		{"denied at another rate while locked", locked, "THROTTLE k 15 60 60 1 LOCKOUT 900", "t=16000000000 p=1 expire+60000..64000"},
		{"denied by the lockout alone", onlyLocked, "THROTTLE k 15 30 60", ""},
		{"a peek while locked", locked, "THROTTLE k 15 30 60 0", ""},
		{"FORCE while locked", locked, "THROTTLE k 15 30 60 20 FORCE", "t=72000000000 expire+72000..80000"},
		{"a refund while locked", locked, "THROTTLE k 15 30 60 -1", "t=30000000000 expire+60000..68000"},
		{"a refund to full while locked", locked, "THROTTLE k 15 30 60 -99", "t=0 expire+60000..68000"},
		{"a refund of nothing while locked", onlyLocked, "THROTTLE k 15 30 60 -99", "t=0 expire+60000..68000"},
		{"a refund of nothing at the instant of the last one", hash(inMillis(0), 2).with("128", at(60_000)), "THROTTLE k 15 30 60 -99", "expire+60000..68000"},
		{"RESERVE while locked", locked, "THROTTLE k 15 30 60 1 RESERVE 9999", ""},
		// A lockout that has ended goes at the next write.
		{"denied after the end", lapsed, "THROTTLE k 15 30 60", ""},
		{"a peek after the end", lapsed, "THROTTLE k 15 30 60 0", ""},
		{"a refund after the end", lapsed, "THROTTLE k 15 30 60 -1", "t=30000000000 -l expire+30000..38000"},
		{"admitted after the end", lapsed, "THROTTLE k 99 30 60", "t=34000000000 -l expire+34000..49000"},
		{"denied at another rate after the end", lapsed, "THROTTLE k 15 60 60", "t=16000000000 p=1 -l expire+16000..20000"},
		{"a refund to full after the end", lapsed, "THROTTLE k 15 30 60 -99", "absent"},

		// Of several cells each has its own lockout. The key lasts as long as the longest.
		{"the first of two", two, "THROTTLE k 0 30 60 1 LOCKOUT 99", "l=99000000000 expire+99000..100000"},
		{"the first of two, the second's usage lasts longer", two, "THROTTLE k 0 30 60 1 LOCKOUT 5", "l=5000000000 expire+90000..91000"},
		{"the first of two while the second is locked", two.with("129", at(120_000)), "THROTTLE k 15 30 60", "t=4000000000 expire+120000..128000"},
		{"to full while the second is locked", hash(inMillis(2000), 2, none, none, inMillis(-1), 3).with("129", at(120_000)),
			"THROTTLE k 15 30 60 -1", "t=0 expire+120000..128000"},
		{"to full after both lockouts", hash(inMillis(2000), 2, none, none, inMillis(-1), 3).with("128", at(-1)).with("129", at(-1)),
			"THROTTLE k 15 30 60 -1", "absent"},
		{"GO.ALL is denied by the second's lockout", two.with("129", at(120_000)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 3", ""},
		{"GO.ALL is denied by the first's lockout", two.with("128", at(120_000)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 3", ""},
		{"GO.ALL asks nothing of the locked one", two.with("129", at(120_000)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 -1",
			"t=4000000000 t1=87000000000 expire+120000..121000"},
		{"GO.ALL with FORCE", two.with("129", at(120_000)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 FORCE",
			"t=4000000000 t1=93000000000 expire+120000..121000"},
		{"GO.ALL at another rate of the locked one", two.with("129", at(120_000)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 1",
			"t1=30000000000 p1=1 expire+120000..121000"},
		{"a gap is filled beside a lockout", locked, "ALL k THROTTLE 15 30 60 0 THROTTLE 9 1 2 0 THROTTLE 9 1 1 FORCE",
			"t1=0 p1=2 t2=1000000000 p2=1 expire+60000..61000"},
		{"GO.ALL drops a lockout that has ended", two.with("129", at(0)), "ALL k THROTTLE 15 30 60 THROTTLE 99 1 3",
			"t=4000000000 t1=93000000000 -l1 expire+93000..94000"},
	} {
		wantEffect(t, row.name, row.key, "GO."+row.words, row.want)
	}
}

// A lockout of one cell denies the whole call of GO.ALL, but not a call that asks nothing of that
// cell.
func TestLockout_all(t *testing.T) {
	two := hash(inMillis(2000), 2, none, none, inMillis(3000), 3).with("129", fmt.Sprint(inMillis(60_000)))
	for _, row := range []struct{ line, want string }{
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 99 1 3", "[1 100 0 60 60 1 [0 16 15 -1 2] [1 100 0 60 60]]"},
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 0", "[1 100 0 60 60 1 [0 16 15 -1 2] [1 100 0 60 60]]"},
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 101", "[1 100 0 -1 60 1 [0 16 15 -1 2] [1 100 0 -1 60]]"},
		{"GO.ALL q QUOTA 5 60 KEY k THROTTLE 15 30 60 -1 THROTTLE 99 1 3",
			"[1 100 0 60 60 2 [0 5 5 -1 0] [0 16 15 -1 2] [1 100 0 60 60]]"},
		{"GO.ALL q QUOTA 5 60 6 KEY k THROTTLE 15 30 60 THROTTLE 99 1 3 -1",
			"[1 5 5 -1 0 0 [1 5 5 -1 0] [0 16 15 -1 2] [0 100 0 -1 60]]"}, // the refund tells what its clause has left
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 -1", "[0 100 0 -1 60 1 [0 16 14 -1 4] [0 100 0 -1 60]]"},
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 99 1 3 FORCE", "[0 100 0 -1 60 1 [0 16 14 -1 4] [0 100 0 -1 60]]"},
		{"GO.ALL k THROTTLE 15 30 60", "[0 16 14 -1 4 0 [0 16 14 -1 4]]"},
		{"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]"},
	} {
		s, err := onKey(t, two, row.line)
		if got := replyText(s.call, err); got != row.want {
			t.Errorf("%s: %s, want %s", row.line, got, row.want)
		}
	}
}

// A hash with a lockout is a limiter only if the lockout is one that a call could have begun, of a
// cell that is there. Other hashes are an error for every call, and stay.
func TestLockout_foreignAndDamaged(t *testing.T) {
	one := hash(inMillis(1), 1)
	fraction := hash(inMillis(1), 60, 3, 7)
	two := hash(inMillis(1), 1, none, none, inMillis(1), 1)
	at := fmt.Sprint(inMillis(1))
	for _, row := range []struct {
		name string
		key  *value
		want ErrorCode
	}{
		{"a limiter", one.with("128", at), NoError},
		{"with a fraction", fraction.with("128", at), NoError},
		{"the second cell's", two.with("129", at), NoError},
		{"of both cells", two.with("128", at).with("129", at), NoError},
		{"of 32 cells", lockedCells(32), NoError},
		{"the least", one.with("128", "1000000000000000000"), NoError},
		{"the greatest", one.with("128", fmt.Sprint(int64(math.MaxInt64))), NoError},

		{"a text", one.with("128", "soon"), ErrDamaged},
		{"an empty text", one.with("128", ""), ErrDamaged},
		{"more than 63 bits", one.with("128", "9223372036854775808"), ErrDamaged},
		{"before 2001", one.with("128", "999999999999999999"), ErrDamaged},
		{"zero", one.with("128", "0"), ErrDamaged},
		{"negative", one.with("128", "-1"), ErrDamaged},
		{"a text, with a fraction", fraction.with("128", "soon"), ErrDamaged},
		{"the second cell's, before 2001", two.with("129", "999999999999999999"), ErrDamaged},
		{"the second cell's, a text", two.with("128", at).with("129", "x"), ErrDamaged},
		{"the last of 32", lockedCells(32).with("159", "x"), ErrDamaged},
		{"good, beside a damaged TAT", one.with("128", at).with("0", "x"), ErrDamaged},

		{"without a cell", hash().with("128", at), ErrForeignHash},
		{"without the second cell", one.with("129", at), ErrForeignHash},
		{"of both, without the second cell", one.with("128", at).with("129", at), ErrForeignHash},
		{"without the third cell", two.with("130", at), ErrForeignHash},
		{"of half a cell", hash(inMillis(1)).with("128", at), ErrForeignHash},
		{"the name of no cell", one.with("160", at), ErrForeignHash},
		{"the name of no cell, after 32", lockedCells(32).with("160", at), ErrForeignHash},
		{"a field before them", lockedCells(31).with("127", at), ErrForeignHash},
		{"and a field too many", one.with("128", at).with("name", "bob"), ErrForeignHash},
		{"in another form", one.with("0128", at), ErrForeignHash},
	} {
		for _, line := range []string{"GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 0", "GO.THROTTLE k 15 30 60 -1", "GO.THROTTLE k 15 30 60 9 FORCE",
			"GO.THROTTLE k 0 30 60 1 LOCKOUT 5", "GO.THROTTLE k 0 30 60 1 RESERVE 5", "GO.ALL k THROTTLE 15 30 60 0 THROTTLE 15 30 60",
			"GO.ALL k THROTTLE 15 30 60 0 THROTTLE 15 30 60 0 THROTTLE 15 30 60 FORCE"} {
			s, err := onKey(t, row.key, line)
			if err != row.want {
				t.Errorf("%s, %s: %q, want %q", row.name, line, err.Text(), row.want.Text())
			}
			if after := s.dump(); err != NoError && after != fmt.Sprintf("\nk: %+v", *row.key) {
				t.Errorf("%s, %s: the hash was %v and is %s", row.name, line, row.key, after)
			}
		}
	}
}

// lockedCells returns a hash of n cells, each with a lockout.
func lockedCells(n int) *value {
	v := cells(n)
	for i := range n {
		v.fields[fieldName(fieldLocked, i)] = fmt.Sprint(inMillis(1))
	}
	return v
}

// On a server whose clock starts in 1970, a lockout may end before 2001.
func TestLockout_clockBefore2001(t *testing.T) {
	s := newStore(t)
	s.now = 1_000_000
	for _, want := range []string{"[0 1 0 -1 60]", "[1 1 0 90 90]", "[1 1 0 90 90]"} {
		if got := s.told("GO.THROTTLE k 0 1 60 1 LOCKOUT 90"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

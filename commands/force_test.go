package commands

import (
	"testing"
)

// A forced call is admitted and charged, past the limit if need be. Other calls then wait until
// the debt has drained at the rate.
func TestForce_throttle(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.THROTTLE k 15 30 60 10", "0 16 6 -1 20"},
		{0, "GO.THROTTLE k 15 30 60 10 FORCE", "0 16 0 -1 40"},
		{0, "GO.THROTTLE k 15 30 60", "1 16 0 10 40"},
		{0, "GO.THROTTLE k 15 30 60 UPTO", "1 16 0 10 40 0"},
		{0, "GO.THROTTLE k 15 30 60 1 RESERVE 9", "1 16 0 1 40 -1"},
		{0, "GO.THROTTLE k 15 30 60 0", "1 16 0 8 40"},
		{0, "GO.THROTTLE k 15 30 60 0 FORCE", "0 16 0 -1 40"},
		{0, "GO.THROTTLE_RO k 15 30 60 3 FORCE", "0 16 0 -1 46"},
		{0, "GO.THROTTLE_RO k 15 30 60 FORCE", "0 16 0 -1 42"},
		// More than the limit is charged, too.
		{0, "GO.THROTTLE k 15 30 60 17 FORCE", "0 16 0 -1 74"},
		// A refund is a plain refund.
		{0, "GO.THROTTLE k 15 30 60 -30 FORCE", "0 16 9 -1 14"},
		{0, "GO.THROTTLE k 15 30 60 1 FORCE", "0 16 8 -1 16"},
		{0, "GO.THROTTLE k 15 30 60 -99 FORCE", "0 16 16 -1 0"},
		{0, "GO.THROTTLE k 15 30 60 -99 FORCE", "0 16 16 -1 0"},
		// Four units of debt drain in 8 s.
		{0, "GO.THROTTLE k 15 30 60000 20 force ms", "0 16 0 -1 40000"},
		{7999, "GO.THROTTLE k 15 30 60000 0 MS", "1 16 0 1 32001"},
		{1, "GO.THROTTLE k 15 30 60000 0 MS", "0 16 0 -1 32000"},
		{0, "GO.THROTTLE k 15 30 60000 1 MS", "1 16 0 2000 32000"},
		// Debt carries over to another rate.
		{0, "GO.THROTTLE k 15 60 60 4 FORCE", "0 16 0 -1 20"},
		{20_000, "GO.THROTTLE k 15 60 60 16 FORCE", "0 16 0 -1 16"},
		{0, "GO.THROTTLE k 15 60 60 -16", "0 16 16 -1 0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is in use, and these are left: %s", s.dump())
	}
}

// With FORCE every clause of GO.ALL admits and is charged or given back. So one call settles an
// estimate over several limits, in both directions.
func TestForce_all(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.ALL r THROTTLE 9 1 1 9 KEY w WINDOW 5 60 4 KEY q QUOTA 10 60 9",
			"[0 10 1 -1 9 0 [0 10 1 -1 9] [0 5 1 -1 60] [0 10 1 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 9 KEY w WINDOW 5 60 4 KEY q QUOTA 10 60 -5",
			"[1 5 1 60 60 1 [1 10 1 8 9] [1 5 1 60 60] [0 10 1 -1 60]]"},
		{0, "GO.ALL_RO r THROTTLE 9 1 1 9 KEY w WINDOW 5 60 4 KEY q QUOTA 10 60 -5 FORCE",
			"[0 10 0 -1 18 0 [0 10 0 -1 18] [0 5 0 -1 60] [0 10 6 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 9 KEY w WINDOW 5 60 4 KEY q QUOTA 10 60 -5 FORCE",
			"[0 10 0 -1 18 0 [0 10 0 -1 18] [0 5 0 -1 60] [0 10 6 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 0 KEY w WINDOW 5 60 0 KEY q QUOTA 10 60 0",
			"[1 5 0 60 60 1 [1 10 0 8 18] [1 5 0 60 60] [0 10 6 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 0 KEY w WINDOW 5 60 0 KEY q QUOTA 10 60 0 FORCE",
			"[0 10 0 -1 18 0 [0 10 0 -1 18] [0 5 0 -1 60] [0 10 6 -1 60]]"},
		// Quantities above the limit, and MS.
		{0, "GO.ALL r THROTTLE 9 1 1000 11 KEY w WINDOW 5 60000 6 KEY q QUOTA 10 60000 11 ALIGN 0 ms force",
			"[0 10 0 -1 29000 0 [0 10 0 -1 29000] [0 5 0 -1 60000] [0 10 0 -1 60000]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 -20 KEY w WINDOW 5 60 -12 KEY q QUOTA 10 60 -14 FORCE",
			"[0 10 1 -1 9 0 [0 10 1 -1 9] [0 5 3 -1 60] [0 10 9 -1 60]]"},
		// Several cells of one key.
		{0, "GO.ALL c THROTTLE 0 1 1 0 THROTTLE 1 1 1 5 THROTTLE 2 7 1 9 FORCE",
			"[0 2 0 -1 5 1 [0 1 1 -1 0] [0 2 0 -1 5] [0 3 0 -1 2]]"},
		{0, "GO.ALL c THROTTLE 0 1 1 THROTTLE 1 1 1", "[1 2 0 4 5 1 [0 1 1 -1 0] [1 2 0 4 5]]"},
	})
	if got := len(s.keys["c"].fields); got != 8 {
		t.Errorf("%d fields, want those of three cells", got)
	}
}

// INFO counts forced calls as any others.
func TestForce_outcomes(t *testing.T) {
	s := newStore(t)
	for _, row := range []struct {
		line string
		want Outcome
	}{
		{"GO.THROTTLE k 0 1 60 9 FORCE", Admitted},
		{"GO.THROTTLE k 0 1 60 0 FORCE", Other},
		{"GO.THROTTLE k 0 1 60 -1 FORCE", Other},
		{"GO.ALL k THROTTLE 0 1 60 0 THROTTLE 0 1 60 9 FORCE", Admitted},
		{"GO.ALL k THROTTLE 0 1 60 0 THROTTLE 0 1 60 -9 FORCE", Other},
	} {
		s.must(row.line)
		if s.call.Outcome != row.want {
			t.Errorf("%s: outcome %d, want %d", row.line, s.call.Outcome, row.want)
		}
	}
}

// Usage that would drain only after 100 years is an error. The bound itself is none. An error
// changes nothing, at no key of the call.
func TestForce_bounds(t *testing.T) {
	const century = "3153600000"
	s := newStore(t)
	// fails checks that a call is an error and changes nothing.
	fails := func(line, want string) {
		t.Helper()
		before := s.dump()
		if got := s.told(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if after := s.dump(); after != before {
			t.Errorf("%s: the keys were\n%s\nand are\n%s", line, before, after)
		}
	}
	const tooLong = "ERR what is in use would take more than 100 years to drain"
	if got, want := s.told("GO.THROTTLE k 0 1 "+century+" FORCE"), "[0 1 0 -1 "+century+"]"; got != want {
		t.Errorf("100 years: %s, want %s", got, want)
	}
	fails("GO.THROTTLE k 0 1 "+century+" FORCE", tooLong)
	fails("GO.THROTTLE_RO k 0 1 "+century+" FORCE", tooLong)
	fails("GO.THROTTLE new 15 1 100000000 32 FORCE", tooLong)
	fails("GO.THROTTLE new 15 30 60 1000000000001 FORCE", tooLong)
	fails("GO.ALL l QUOTA 5 60 KEY k THROTTLE 0 1 "+century+" KEY w WINDOW 5 60 FORCE", tooLong)
	fails("GO.THROTTLE k 0 1 "+century+" 0 FORCE", "[0 1 0 -1 "+century+"]") // a peek charges nothing
}

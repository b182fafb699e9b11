package commands

import "testing"

// Reserved calls get slots one after another. Whoever would wait too long is limited and takes
// nothing.
func TestReserve(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "0 2 1 -1 10 0"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "0 2 0 -1 20 0"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "0 2 0 -1 30 10"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "0 2 0 -1 40 20"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "1 2 0 5 40 -1"},
		{0, "GO.THROTTLE_RO k 1 1 10 1 RESERVE 30", "0 2 0 -1 50 30"},
		{0, "GO.THROTTLE_RO k 1 1 10 2 RESERVE 30", "1 2 0 10 40 -1"},
		// Nothing moved, so after the wait the same call gets the last slot there is.
		{4999, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "1 2 0 1 36 -1"},
		{1, "GO.THROTTLE k 1 1 10 1 RESERVE 25", "0 2 0 -1 45 25"},
		// Waits are rounded up, to seconds or with MS to milliseconds.
		{1, "GO.THROTTLE_RO k 1 1 10 1 RESERVE 35", "0 2 0 -1 55 35"},
		{0, "GO.THROTTLE_RO k 1 1 10000 1 MS RESERVE 35000", "0 2 0 -1 54999 34999"},
		{0, "GO.THROTTLE_RO k 1 1 10000 1 RESERVE 34998 MS", "1 2 0 1 44999 -1"},
		{0, "GO.THROTTLE_RO k 1 1 10 1 RESERVE 30", "1 2 0 5 45 -1"},
		// A peek is that of a call without RESERVE, whatever maxwait.
		{0, "GO.THROTTLE k 1 1 10 0 RESERVE 1000", "1 2 0 25 45 -1"},
		{0, "GO.THROTTLE k 1 1 10 0", "1 2 0 25 45"},
		// A quantity above the limit is never admitted.
		{0, "GO.THROTTLE k 1 1 10 3 RESERVE 1000", "1 2 0 -1 45 -1"},
		// A call that does not reserve gets nothing while others queue, nor does a smaller burst.
		{0, "GO.THROTTLE k 1 1 10", "1 2 0 35 45"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 0", "1 2 0 35 45 -1"},
		{0, "GO.THROTTLE k 0 1 10 1 RESERVE 35", "1 1 0 10 45 -1"},
		// A negative quantity cancels, and its units go to later callers.
		{0, "GO.THROTTLE k 1 1 10 -2 RESERVE 5", "0 2 0 -1 25 0"},
		{0, "GO.THROTTLE k 1 1 10 1 RESERVE 15", "0 2 0 -1 35 15"},
		{0, "GO.THROTTLE k 1 1 10 -9 RESERVE 0", "0 2 2 -1 0 0"},
		{0, "GO.THROTTLE k 1 1 10 -9 RESERVE 0", "0 2 2 -1 0 0"},
		{0, "GO.THROTTLE k 1 1 10 0 RESERVE 0", "0 2 2 -1 0 0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is in use, and these are left: %s", s.dump())
	}
}

// A slot is taken in debt, too, and what is in use carries over to another rate.
func TestReserve_debtAndRates(t *testing.T) {
	converse(t, []step{
		{0, "GO.THROTTLE k 0 1 10 4 FORCE", "0 1 0 -1 40"},
		{0, "GO.THROTTLE k 0 1 10 1 RESERVE 39", "1 1 0 1 40 -1"},
		{0, "GO.THROTTLE k 0 1 10 1 RESERVE 40", "0 1 0 -1 50 40"},
		// At 5 s a unit, five units are 25 s. The limited call writes the new rate.
		{0, "GO.THROTTLE k 0 1 5 1 RESERVE 24", "1 1 0 1 25 -1"},
		{0, "GO.THROTTLE k 0 1 10 0", "1 1 0 40 50"},
		{1000, "GO.THROTTLE k 0 1 5 1 RESERVE 24", "0 1 0 -1 29 24"},
	})
	text := text("1800000002500000000") // redis-cell's: in use for 2.5 s more
	s, err := onKey(t, text, "GO.THROTTLE k 0 30 60000 1 RESERVE 2500 MS")
	if got, want := replyText(s.call, err), "[0 1 0 -1 4500 2500]"; got != want {
		t.Errorf("adopted: %s, want %s", got, want)
	}
	if got, want := s.effect(), "t=4500000000 p=2 expire+4500..5500"; got != want {
		t.Errorf("adopted: %s, want %s", got, want)
	}
}

// INFO counts a reserved call as admitted, a cancel as other.
func TestReserve_outcomes(t *testing.T) {
	s := newStore(t)
	for _, row := range []struct {
		line string
		want Outcome
	}{
		{"GO.THROTTLE k 0 1 60 RESERVE 60", Admitted},
		{"GO.THROTTLE k 0 1 60 RESERVE 60", Admitted},
		{"GO.THROTTLE k 0 1 60 RESERVE 60", Limited},
		{"GO.THROTTLE k 0 1 60 0 RESERVE 60", Other},
		{"GO.THROTTLE k 0 1 60 -1 RESERVE 60", Other},
	} {
		s.must(row.line)
		if s.call.Outcome != row.want {
			t.Errorf("%s: outcome %d, want %d", row.line, s.call.Outcome, row.want)
		}
	}
}

// A maxwait may be 100 years. A slot after 2262 is an error that changes nothing.
func TestReserve_bounds(t *testing.T) {
	const century, millis = "3153600000", 3153600000 * 1000
	s := converse(t, []step{
		{0, "GO.THROTTLE k 0 1 3153600000 RESERVE 3153600000", "0 1 0 -1 3153600000 0"},
		{0, "GO.THROTTLE k 0 1 3153600000000 RESERVE 3153600000000 MS", "0 1 0 -1 6307200000000 3153600000000"},
		{0, "GO.THROTTLE k 0 1 3153600000 RESERVE 3153600000", "1 1 0 3153600000 6307200000 -1"},
		{millis, "GO.THROTTLE_RO k 0 1 3153600000 1", "1 1 0 3153600000 3153600000"},
	})
	before := s.dump()
	line := "GO.THROTTLE k 0 1 " + century + " 1 RESERVE " + century
	if got, want := s.told(line), ErrDebtTooLong.Text(); got != want {
		t.Errorf("a slot in 2227 that drains by 2327: %s, want %s", got, want)
	}
	if after := s.dump(); after != before {
		t.Errorf("the keys were\n%s\nand are\n%s", before, after)
	}
}

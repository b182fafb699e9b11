package commands

import (
	"strings"
	"testing"
)

// A denied call counts each key of a limited clause once. Calls that are admitted, peeks, read-only
// calls and errors count for nothing.
func TestTop(t *testing.T) {
	s := newStore(t)
	for _, line := range []string{
		"GO.THROTTLE a 0 1 60", "GO.WINDOW w 1 60", "GO.QUOTA q 1 60", "GO.LEASE l 1 60 x", // admitted
		"GO.THROTTLE a 0 1 60", "GO.THROTTLE a 0 1 60", "CL.THROTTLE a 0 1 60", // a: 3
		"GO.WINDOW w 1 60", "GO.WINDOW w 1 60", // w: 2
		"GO.LEASE l 1 60 y", // l: 1
		// Of the two cells of a one denies, then both; w denies, and q has room: a 5, w 4.
		"GO.ALL a THROTTLE 0 1 60 THROTTLE 9 9 9 KEY w WINDOW 1 60 KEY q QUOTA 9 60",
		"GO.ALL a THROTTLE 0 1 60 1 THROTTLE 9 9 9 11 KEY w WINDOW 1 60 KEY q QUOTA 9 60",
		// Nothing.
		"GO.THROTTLE a 0 1 60 0", "GO.THROTTLE a 0 1 60 -1", "GO.THROTTLE_RO w2 0 1 60 2", "GO.QUOTA_RO q 1 60",
		"GO.QUOTA q 1 60 x", "GO.QUOTA w 1 60", "GO.QUOTA q 1 60 FORCE", "GO.ALL_RO q QUOTA 1 60 9", "GO.RELEASE l z",
	} {
		s.told(line)
	}
	for _, row := range []struct{ line, want string }{
		{"GO.TOP", "[[0:a 5 0] [0:w 4 0] [0:l 1 0]]"},
		{"GO.TOP 2", "[[0:a 5 0] [0:w 4 0]]"},
		{"GO.TOP 1 reset", "[[0:a 5 0]]"},
		{"GO.TOP", "[]"},
		{"GO.TOP RESET RESET", "ERR unknown option 'RESET'"},
		{"GO.TOP 1 2", "ERR unknown option '2'"},
		{"GO.TOP all RESET", "ERR unknown option 'all'"},
		{"GO.TOP RESET 5", "ERR unknown option '5'"},
		{"GO.TOP +010", "[]"},
	} {
		if got := s.told(row.line); got != row.want {
			t.Errorf("%s: %s, want %s", row.line, got, row.want)
		}
	}
}

// A call that asks for no key counts where the table is off: nowhere.
func TestTop_off(t *testing.T) {
	s := newStore(t)
	s.must("GO.QUOTA q 1 60")
	CountDenials(0)
	s.must("GO.QUOTA q 1 60")
	if got := s.told("GO.TOP"); got != ErrTopOff.Text() {
		t.Errorf("off: %s", got)
	}
	CountDenials(1)
	s.must("GO.QUOTA q 1 60")
	if got := s.told("GO.TOP"); got != "[[0:q 1 0]]" {
		t.Errorf("on again: %s", got)
	}
}

// Counting a denial allocates nothing, also where a key takes the place of another.
func TestTop_allocatesNothing(t *testing.T) {
	s := newStore(t)
	CountDenials(1)
	c, err := s.run(strings.Fields("GO.QUOTA q 1 60 2")...)
	if err != NoError {
		t.Fatal(err.Text())
	}
	if n := testing.AllocsPerRun(100, func() {
		c.DB++
		c.countDenial()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

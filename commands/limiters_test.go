package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// step is one line of a conversation: after some ms, a command and its reply.
type step struct {
	wait  int64 // ms
	line  string
	reply string
}

// converse runs steps on a fresh store, and returns it.
func converse(t *testing.T, steps []step) *store {
	t.Helper()
	s := newStore(t)
	for i, step := range steps {
		s.now += step.wait * 1000
		reply, err := s.do(step.line)
		got := strings.Trim(fmt.Sprint(reply), "[]")
		if err != NoError {
			got = err.Text()
		}
		if got != step.reply {
			t.Errorf("step %d: %s: %s, want %s", i, step.line, got, step.reply)
		}
	}
	return s
}

func TestWindow(t *testing.T) {
	s := converse(t, []step{
		// What fits fits, two calls at one instant are two, denied ones leave no trace.
		{0, "GO.WINDOW k 5 60", "0 5 4 -1 60"},
		{0, "GO.WINDOW k 5 60", "0 5 3 -1 60"},
		{10_000, "GO.WINDOW k 5 60 3", "0 5 0 -1 60"},
		{0, "GO.WINDOW k 5 60", "1 5 0 50 60"},
		{0, "GO.WINDOW k 5 60 3", "1 5 0 60 60"},
		{0, "GO.WINDOW k 5 60 6", "1 5 0 -1 60"},
		// A peek says the same and takes nothing; UPTO takes what is left.
		{0, "GO.WINDOW k 5 60 0", "0 5 0 -1 60"},
		{0, "GO.WINDOW k 6 60 9 UPTO", "0 6 0 -1 60 1"},
		{0, "GO.WINDOW k 6 60 9 UPTO", "1 6 0 50 60 0"},
		{0, "GO.WINDOW_RO k 7 60 9 UPTO MS", "0 7 0 -1 60 3"},
		// At the end of its period a unit leaves.
		{49_999, "GO.WINDOW k 6 60", "1 6 0 1 11"},
		{1, "GO.WINDOW k 6 60", "0 6 1 -1 60"},
		// A refund takes the oldest; a full window leaves no key.
		{0, "GO.WINDOW k 6 60 -2 UPTO", "0 6 3 -1 60 -2"},
		{9_999, "GO.WINDOW k 6 60000 4 MS", "1 6 3 1 50001"},
		{1, "GO.WINDOW k 6 60000 4 MS", "0 6 1 -1 60000"},
		{0, "GO.WINDOW k 6 60 -9 UPTO", "0 6 6 -1 0 -5"},
	})
	if len(s.keys) != 0 {
		t.Errorf("a full window left %v", s.keys)
	}
}

// A large limit shares entries, a changed option set finds what the other left.
func TestWindow_options(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.WINDOW k 100 60 90", "0 100 10 -1 60"},
		{30_000, "GO.WINDOW k 10000 60 9000", "0 10000 910 -1 60"},
		{100, "GO.WINDOW k 10000 60 900", "0 10000 10 -1 60"},
		{0, "GO.WINDOW k 10000 60 11", "1 10000 10 30 60"},
		{100, "GO.WINDOW k 10000 60 10 EXACT", "0 10000 0 -1 60"},
		{0, "GO.WINDOW k 100 60", "1 100 0 60 60"},
		{29_800, "GO.WINDOW k 10000 60000 90 MS", "0 10000 0 -1 60000"},
		// A longer period goes on with what the shorter one kept, a shorter one forgets.
		{0, "GO.WINDOW k 10000 120 1", "1 10000 0 91 120"},
		{0, "GO.WINDOW k 10000 10 1", "0 10000 9909 -1 10"},
	})
	if n := len(s.keys["k"].set); n > 3 {
		t.Errorf("%d entries", n)
	}
}

// The limit counts, not how often was asked: at most 121 entries, each checked.
func TestWindow_memory(t *testing.T) {
	s := newStore(t)
	most, size := 0, 0
	for range 20_000 {
		s.now += 4000
		if reply, err := s.do("GO.WINDOW k 1000000 60 66"); err != NoError || reply[0] != 0 {
			t.Fatal(reply, err.Text())
		}
		if set := s.keys["k"].set; len(set) > most {
			most, size = len(set), 0
			for _, e := range set {
				size += len(e.Member) + 2 + 10 // as the server packs it
			}
		}
	}
	if most > 121 || size > 3500 {
		t.Errorf("%d entries of %d bytes", most, size)
	}
}

func TestQuota(t *testing.T) {
	s := converse(t, []step{
		// The window starts with the first admitted call and ends for all at once.
		{0, "GO.QUOTA k 10 60 11", "1 10 10 -1 0"},
		{0, "GO.QUOTA k 10 60 4", "0 10 6 -1 60"},
		{30_000, "GO.QUOTA k 10 60 6", "0 10 0 -1 30"},
		{0, "GO.QUOTA k 10 60", "1 10 0 30 30"},
		{0, "GO.QUOTA k 10 3600 0", "0 10 0 -1 30"},
		{0, "GO.QUOTA k 8 60 0", "1 8 0 30 30"},
		{0, "GO.QUOTA k 12 60 5 UPTO", "0 12 0 -1 30 2"},
		{0, "GO.QUOTA k 12 60 -5 UPTO", "0 12 5 -1 30 -5"},
		{29_999, "GO.QUOTA_RO k 12 60000 6 MS", "1 12 5 1 1"},
		{1, "GO.QUOTA k 12 60 12", "0 12 0 -1 60"},
		{0, "GO.QUOTA k 12 60 -99 UPTO", "0 12 12 -1 0 -12"},
	})
	if len(s.keys) != 0 {
		t.Errorf("a full quota left %v", s.keys)
	}
	// The epoch second of the tests' clock is a multiple of 3600; 2027-01-15 08:00 UTC.
	converse(t, []step{
		{0, "GO.QUOTA day 10 86400 1 ALIGN 0", "0 10 9 -1 57600"},
		{0, "GO.QUOTA hour 10 3600 1 ALIGN 0", "0 10 9 -1 3600"},
		{1, "GO.QUOTA half 10 3600000 1 MS ALIGN 1800000", "0 10 9 -1 1799999"},
		{0, "GO.QUOTA past 10 3600 1 ALIGN -7201", "0 10 9 -1 3599"},
	})
}

func TestMThrottle(t *testing.T) {
	s := converse(t, []step{
		// One key, two cells: 10/s and 100 per hour.
		{0, "GO.MTHROTTLE 2 k k 9 10 1 1 99 100 3600 98", "0 -1 -1 0 10 9 -1 1 0 100 2 -1 3528"},
		{0, "GO.MTHROTTLE 2 k k 9 10 1 1 99 100 3600 3", "1 36 1 0 10 9 -1 1 1 100 2 36 3528"},
		{0, "GO.THROTTLE k 9 10 1 9", "0 10 0 -1 1"},
		{0, "GO.MTHROTTLE 2 k k 9 10 1 1 99 100 3600 3 MS", "1 36 1 1 10 0 1 1 1 100 2 36 3528"},
	})
	_ = s
	// Of equals the first decides; what can never be is the longest wait.
	converse(t, []step{
		{0, "GO.MTHROTTLE 3 a b c 0 1 60 1 0 1 60 1 0 1 60 1", "0 -1 -1 0 1 0 -1 60 0 1 0 -1 60 0 1 0 -1 60"},
		{0, "GO.MTHROTTLE 3 a b c 0 1 60 1 0 1 60 1 0 1 60 1", "1 60 0 1 1 0 60 60 1 1 0 60 60 1 1 0 60 60"},
		{0, "GO.MTHROTTLE 3 a b c 0 1 60 1 0 1 60 2 0 1 60 3", "1 -1 1 1 1 0 60 60 1 1 0 -1 60 1 1 0 -1 60"},
		{0, "GO.MTHROTTLE 2 a d 0 1 60 0 4 1 60 5", "0 -1 -1 0 1 0 -1 60 0 5 0 -1 300"},
		{0, "GO.MTHROTTLE 2 a d 0 1 60 -1 4 1 60 5", "1 300 1 0 1 0 -1 60 1 5 0 300 300"},
		{0, "GO.MTHROTTLE 2 a d 0 1 60 -1 4 1 60 -2", "0 -1 -1 0 1 1 -1 0 0 5 2 -1 180"},
	})
}

// A cell behind one that was never used does not leave a gap in the hash.
func TestMThrottle_gap(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.MTHROTTLE 3 k k k 9 10 1 0 9 1 7 0 9 7 60 1", "0 -1 -1 0 10 10 -1 0 0 10 10 -1 0 0 10 9 -1 9"},
		{0, "GO.THROTTLE k 9 10 1", "0 10 9 -1 1"},
		{0, "GO.MTHROTTLE 3 k k k 9 10 1 -5 9 1 7 -5 9 7 60 0", "0 -1 -1 0 10 10 -1 0 0 10 10 -1 0 0 10 9 -1 9"},
		{0, "GO.MTHROTTLE 3 k k k 9 10 1 -5 9 1 7 -5 9 7 60 -1", "0 -1 -1 0 10 10 -1 0 0 10 10 -1 0 0 10 10 -1 0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("all cells are void, and %v is left", s.keys["k"])
	}
}

// A denied call changes nothing in any of its keys, while rates stay the same.
func TestMThrottle_nothingOnDenial(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.MTHROTTLE 3 a b a 9 10 60 5 4 7 60 4 99 7 3600 90", "0 -1 -1 0 10 5 -1 30 0 5 1 -1 35 0 100 10 -1 46286"},
	})
	before := fmt.Sprint(*s.keys["a"], *s.keys["b"])
	for _, line := range []string{
		"GO.MTHROTTLE 3 a b a 9 10 60 5 4 7 60 -1 99 7 3600 11",
		"GO.MTHROTTLE 3 a b a 9 10 60 -5 4 7 60 2 99 7 3600 -90",
		"GO.MTHROTTLE 4 a b a new 9 10 60 1 4 7 60 1 99 7 3600 1 1 1 1 3",
	} {
		if reply, _ := s.do(line); reply[0] != 1 {
			t.Errorf("%s: %v", line, reply)
		}
	}
	if after := fmt.Sprint(*s.keys["a"], *s.keys["b"]); after != before || len(s.keys) != 2 {
		t.Errorf("was %s, is %s", before, after)
	}
}

func TestLease(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.LEASE k 2 60 a", "0 2 1 -1 60"},
		{10_000, "GO.LEASE k 2 60 b", "0 2 0 -1 60"},
		{0, "GO.LEASE k 2 60 c", "1 2 0 50 -1"},
		// The holder renews, also over a lowered limit; others wait for as many as it takes.
		{0, "GO.LEASE k 1 90000 a MS", "0 1 0 -1 90000"},
		{0, "GO.LEASE k 1 60 c", "1 1 0 90 -1"},
		// A crashed holder's slot lapses, to the µs.
		{59_999, "GO.LEASE k 2 60 c MS", "1 2 0 1 -1"},
		{1, "GO.LEASE k 2 60 c", "0 2 0 -1 60"},
		{0, "GO.LEASE k 2 5 d", "1 2 0 30 -1"},
		// Releasing what is not held, or held no more, counts for nothing.
		{0, "GO.RELEASE k b x c c", "1"},
		{0, "GO.LEASE k 2 5 d", "0 2 0 -1 5"},
		{6_000, "GO.RELEASE k d", "0"},
		{0, "GO.RELEASE k a", "1"},
		{0, "GO.RELEASE k a", "0"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is held, and %v is left", s.keys["k"])
	}
}

// The expiry follows the last lease, also when that one is shortened or released.
func TestLease_expiry(t *testing.T) {
	s := newStore(t)
	for _, row := range []struct {
		line string
		ends int64 // s
	}{
		{"GO.LEASE k 9 10 a", 10},
		{"GO.LEASE k 9 1000 b", 1000},
		{"GO.LEASE k 9 100 c", 1000},
		{"GO.LEASE k 9 20 b", 100},
		{"GO.RELEASE k c", 20},
	} {
		if _, err := s.do(row.line); err != NoError {
			t.Fatal(err.Text())
		}
		end := s.now/1000 + row.ends*1000
		if at := s.keys["k"].expire; at < end || at > end+end/4-s.now/4000+1000 {
			t.Errorf("%s: expires %d ms after the end", row.line, at-end)
		}
	}
}

// A read-only twin replies what the command would, and takes no lock on anything.
func TestReadOnly(t *testing.T) {
	for _, c := range Table {
		if strings.HasSuffix(c.Name, "_RO") == c.Writes() {
			t.Errorf("%s: writes is %v", c.Name, c.Writes())
		}
	}
	for _, line := range []string{
		"GO.THROTTLE k 4 1 60 3 UPTO", "GO.WINDOW k 5 60 3 EXACT UPTO", "GO.QUOTA k 5 60 3 MS ALIGN 7 UPTO",
	} {
		s := newStore(t)
		twin := strings.Replace(line, " ", "_RO ", 1)
		for range 3 {
			told, _ := s.do(twin)
			told = slices.Clone(told)
			before := fmt.Sprint(s.keys["k"])
			again, _ := s.do(twin)
			if !slices.Equal(told, again) || fmt.Sprint(s.keys["k"]) != before {
				t.Errorf("%s: %v, then %v", twin, told, again)
			}
			if done, _ := s.do(line); !slices.Equal(done, told) {
				t.Errorf("%s: %v, but the twin told %v", line, done, told)
			}
		}
	}
}

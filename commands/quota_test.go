package commands

import "testing"

func TestQuota(t *testing.T) {
	s := converse(t, []step{
		// The window starts with the first admitted call and ends for all at once.
		{0, "GO.QUOTA k 10 60 11", "1 10 10 -1 0"},
		{0, "GO.QUOTA k 10 60 4", "0 10 6 -1 60"},
		{30_000, "GO.QUOTA k 10 60 6", "0 10 0 -1 30"},
		{0, "GO.QUOTA k 10 60", "1 10 0 30 30"},
		{0, "GO.QUOTA k 10 3600 0", "0 10 0 -1 30"},
		{0, "GO.QUOTA k 8 60 0", "1 8 0 30 30"},
		{0, "GO.QUOTA k 12 60 5 UPTO", "0 12 0 30 30 2"},
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

// The text of a quota has 19 digits for its end, also in 1970.
func TestQuota_text(t *testing.T) {
	s := newStore(t)
	s.must("GO.QUOTA k 1000000000000 60 1000000000000")
	if got, want := s.keys["k"].text, "1000000000000@1800000060000000000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.now = 1
	s.must("GO.QUOTA l 5 1")
	if got, want := s.keys["l"].text, "1@0000000001000001000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := s.told("GO.QUOTA l 5 1"); got != "[0 5 3 -1 1]" {
		t.Errorf("the second call: %s", got)
	}
}

// A text that no call writes is not ours.
func TestQuota_foreignTexts(t *testing.T) {
	for _, row := range []struct {
		text string
		ours bool
	}{
		{"1@1800000060000000000", true},
		{"1000000000000@1800000060000000000", true},
		{"1@9007199254740992000", true},
		{"1@0000000000000001000", true},
		{"1@9007199254740993000", false}, // after 2^53
		{"1@0000000000000000000", false},
		{"1@1800000060000000001", false}, // no whole µs
		{"0@1800000060000000000", false},
		{"01@1800000060000000000", false},
		{"+1@1800000060000000000", false},
		{"-1@1800000060000000000", false},
		{"1000000000000000@1800000060000000000", true},  // debt
		{"1000000000000001@1800000060000000000", false}, // more than can be in use
		{"@1800000060000000000", false},
		{"@11800000060000000000", false},
		{"1@180000006000000000", false},
		{"1@18000000600000000000", false},
		{"1@180000006000000000x", false},
		{"1@+180000006000000000", false},
		{"1:1800000060000000", false},
		{"x@1800000060000000000", false},
		{"", false},
	} {
		s := newStore(t)
		s.keys["k"] = text(row.text)
		if _, err := s.do("GO.QUOTA k 5 60 0"); err != NoError && err != ErrForeignString || (err == NoError) != row.ours {
			t.Errorf("%q: %q", row.text, err.Text())
		}
	}
}

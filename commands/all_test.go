package commands

import (
	"fmt"
	"strings"
	"testing"
)

func TestAll(t *testing.T) {
	s := converse(t, []step{
		// All four kinds in one call. The slot has the least remaining, so it decides.
		{0, "GO.ALL r THROTTLE 9 10 1 THROTTLE 99 100 3600 98 KEY w WINDOW 5 60 2 KEY q QUOTA 10 60 3 KEY l LEASE 2 60 a",
			"[0 2 1 -1 60 4 [0 10 9 -1 1] [0 100 2 -1 3528] [0 5 3 -1 60] [0 10 7 -1 60] [0 2 1 -1 60 0]]"},
		// Two clauses deny, and the longer wait decides. The others tell what they have left.
		{0, "GO.ALL r THROTTLE 9 10 1 THROTTLE 99 100 3600 3 KEY w WINDOW 5 60 4 KEY q QUOTA 10 60 3 KEY l LEASE 2 60 b",
			"[1 5 3 60 60 2 [0 10 9 -1 1] [1 100 2 36 3528] [1 5 3 60 60] [0 10 7 -1 60] [0 2 1 -1 60 0]]"},
		// The keys hold what the commands of one limiter hold.
		{0, "GO.THROTTLE r 9 10 1 0", "[0 10 9 -1 1]"},
		{0, "GO.WINDOW w 5 60 0", "[0 5 3 -1 60]"},
		{0, "GO.QUOTA q 10 60 0", "[0 10 7 -1 60]"},
		{0, "GO.LEASE_RO l 2 60 a", "[0 2 1 -1 60 1]"},
		// Each of the four denies alone.
		{0, "GO.ALL r THROTTLE 9 10 1 10 KEY q QUOTA 10 60", "[1 10 9 1 1 0 [1 10 9 1 1] [0 10 7 -1 60]]"},
		{0, "GO.ALL w WINDOW 5 60 4 KEY q QUOTA 10 60", "[1 5 3 60 60 0 [1 5 3 60 60] [0 10 7 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 10 1 KEY q QUOTA 10 60 8", "[1 10 7 60 60 1 [0 10 9 -1 1] [1 10 7 60 60]]"},
		{0, "GO.ALL r THROTTLE 9 10 1 KEY l LEASE 1 60 b", "[1 1 0 60 60 1 [0 10 9 -1 1] [1 1 0 60 60 0]]"},
	})
	if len(s.keys) != 4 {
		t.Errorf("keys: %s", s.dump())
	}
}

// A denied call takes, gives back, holds and renews nothing.
func TestAll_deniedChangesNothing(t *testing.T) {
	s := newStore(t)
	s.must("GO.ALL r THROTTLE 9 10 60 5 THROTTLE 99 7 3600 90 KEY w WINDOW 5 60 2 KEY q QUOTA 10 60 3 KEY l LEASE 2 60 a")
	before := s.dump()
	for _, row := range []struct{ line, want string }{
		{"GO.ALL r THROTTLE 9 10 60 5 THROTTLE 99 7 3600 11 KEY new QUOTA 5 60",
			"[1 100 10 515 46286 1 [0 10 5 -1 30] [1 100 10 515 46286] [0 5 5 -1 0]]"},
		{"GO.ALL r THROTTLE 9 10 60 6 KEY w WINDOW 5 60 3 KEY q QUOTA 10 60 7 KEY l LEASE 2 60 b",
			"[1 10 5 6 30 0 [1 10 5 6 30] [0 5 3 -1 60] [0 10 7 -1 60] [0 2 1 -1 60 0]]"},
		// Refunds are admitted by their own clauses. They are not given back.
		{"GO.ALL r THROTTLE 9 10 60 -5 THROTTLE 99 7 3600 -90 KEY w WINDOW 5 60 -2 KEY q QUOTA 10 60 8",
			"[1 10 7 60 60 3 [0 10 5 -1 30] [0 100 10 -1 46286] [0 5 3 -1 60] [1 10 7 60 60]]"},
		{"GO.ALL q QUOTA 10 60 -3 KEY w WINDOW 5 60 4", "[1 5 3 60 60 1 [0 10 7 -1 60] [1 5 3 60 60]]"},
		// A slot that is held counts as renewed, and keeps its time.
		{"GO.ALL l LEASE 2 600 a KEY w WINDOW 5 60 4", "[1 5 3 60 60 1 [0 2 1 -1 60 1] [1 5 3 60 60]]"},
		{"GO.ALL l LEASE 1 600 a KEY w WINDOW 5 60 4", "[1 5 3 60 60 1 [0 1 0 -1 60 1] [1 5 3 60 60]]"},
		// A denied slot is not held.
		{"GO.ALL l LEASE 1 60 b KEY q QUOTA 10 60", "[1 1 0 60 60 0 [1 1 0 60 60 0] [0 10 7 -1 60]]"},
		// A clause that admits at a new rate tells usage in that rate, and stores nothing.
		{"GO.ALL r THROTTLE 9 20 60 KEY w WINDOW 5 60 4", "[1 5 3 60 60 1 [0 10 5 -1 15] [1 5 3 60 60]]"},
	} {
		if got := s.told(row.line); got != row.want {
			t.Errorf("%s: %s, want %s", row.line, got, row.want)
		}
		if after := s.dump(); after != before {
			t.Fatalf("%s: the keys were\n%s\nand are\n%s", row.line, before, after)
		}
	}
}

// A refund in a denied call is told as admitted, also where more than the limit is in use.
func TestAll_refundAboveLimitInDeniedCall(t *testing.T) {
	converse(t, []step{
		{0, "GO.ALL r THROTTLE 9 1 1 9 KEY w WINDOW 9 60 9 KEY q QUOTA 9 60 9 KEY l LEASE 1 60 a",
			"[0 9 0 -1 60 1 [0 10 1 -1 9] [0 9 0 -1 60] [0 9 0 -1 60] [0 1 0 -1 60 0]]"},
		{0, "GO.ALL r THROTTLE 4 1 1 -1 KEY w WINDOW 5 60 -1 KEY q QUOTA 5 60 -1 KEY l LEASE 1 60 b",
			"[1 1 0 60 60 3 [0 5 0 -1 9] [0 5 0 -1 60] [0 5 0 -1 60] [1 1 0 60 60 0]]"},
	})
}

func TestAll_decider(t *testing.T) {
	converse(t, []step{
		// Admitted: the least remaining, of equals the first.
		{0, "GO.ALL a THROTTLE 2 1 60 KEY b QUOTA 2 60 KEY c WINDOW 2 60",
			"[0 2 1 -1 60 1 [0 3 2 -1 60] [0 2 1 -1 60] [0 2 1 -1 60]]"},
		{0, "GO.ALL d THROTTLE 0 1 60 KEY e THROTTLE 0 1 60", "[0 1 0 -1 60 0 [0 1 0 -1 60] [0 1 0 -1 60]]"},
		// Limited: the longest wait, of equals the first. A clause that admits never decides.
		{0, "GO.ALL d THROTTLE 0 1 60 KEY e THROTTLE 0 1 60", "[1 1 0 60 60 0 [1 1 0 60 60] [1 1 0 60 60]]"},
		{0, "GO.ALL f THROTTLE 0 1 1 KEY d THROTTLE 0 1 60 KEY e THROTTLE 0 1 60",
			"[1 1 0 60 60 1 [0 1 1 -1 0] [1 1 0 60 60] [1 1 0 60 60]]"},
		// Never is longer than any wait. Of two that are never, the first decides.
		{0, "GO.ALL d THROTTLE 0 1 60 KEY f QUOTA 2 60 3 KEY g WINDOW 2 60 3",
			"[1 2 2 -1 0 1 [1 1 0 60 60] [1 2 2 -1 0] [1 2 2 -1 0]]"},
		// Waits count as they are told. Here 1.2 s and 1.9 s are both told as 2 s.
		{0, "GO.ALL h THROTTLE 0 1 1200 KEY i QUOTA 1 1900 MS", "[0 1 0 -1 1200 0 [0 1 0 -1 1200] [0 1 0 -1 1900]]"},
		{0, "GO.ALL h THROTTLE 0 5 6 KEY i QUOTA 1 2", "[1 1 0 2 2 0 [1 1 0 2 2] [1 1 0 2 2]]"},
		{0, "GO.ALL h THROTTLE 0 1 1200 KEY i QUOTA 1 1900 MS", "[1 1 0 1900 1900 1 [1 1 0 1200 1200] [1 1 0 1900 1900]]"},
		// More in use than the limit: nothing remains, and a peek is limited.
		{0, "GO.ALL j QUOTA 9 60 9 KEY k QUOTA 9 60", "[0 9 0 -1 60 0 [0 9 0 -1 60] [0 9 8 -1 60]]"},
		{0, "GO.ALL k QUOTA 9 60 KEY j QUOTA 8 60 0", "[1 8 0 60 60 1 [0 9 8 -1 60] [1 8 0 60 60]]"},
	})
}

// Lapsed leases are removed in a denied call too. What is not lapsed stays.
func TestAll_deniedRemovesLapsedLeases(t *testing.T) {
	s := newStore(t)
	s.must("GO.LEASE l 9 1 a")
	s.must("GO.LEASE l 9 60 b")
	s.must("GO.LEASE m 9 1 a")
	s.must("GO.QUOTA q 1 60")
	s.now += 1_000_000
	want := "[1 1 0 59 59 2 [0 9 8 -1 59 0] [0 9 9 -1 0 0] [1 1 0 59 59]]"
	if got := s.told("GO.ALL l LEASE 9 60 a KEY m LEASE 9 60 a KEY q QUOTA 1 60"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if left := s.keys["l"].set; len(left) != 1 || left[0].Member != "\x02b" || s.keys["m"] != nil {
		t.Errorf("left: %s", s.dump())
	}
	// The slot that lapses last decides when the call is admitted: a renewed one is no longer free.
	if got := s.told("GO.ALL l LEASE 1 60 b KEY q QUOTA 2 60"); got != "[0 1 0 -1 60 0 [0 1 0 -1 60 1] [0 2 0 -1 59]]" {
		t.Errorf("renewed: %s", got)
	}
	if end := s.keys["l"].set[0].Time; end != s.now+60_000_000 {
		t.Errorf("the renewed slot lapses in %d µs", end-s.now)
	}
}

// A denied clause at a new rate rewrites its state, whoever else denies: otherwise its wait
// would be wrong.
func TestAll_deniedAtNewRate(t *testing.T) {
	s := newStore(t)
	s.must("GO.ALL r THROTTLE 9 1 1 10 THROTTLE 9 1 1 10 KEY q QUOTA 1 60")
	want := "[1 1 0 60 60 2 [1 10 0 2 20] [1 10 0 1 10] [1 1 0 60 60]]"
	if got := s.told("GO.ALL r THROTTLE 9 1 2 THROTTLE 9 1 1 KEY q QUOTA 1 60"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want = "map[0:1800000020000000000 1:2 4:1800000010000000000 5:1]"
	if got := fmt.Sprint(s.keys["r"].fields); got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	if expire := s.keys["r"].expire; expire < nowMicros/1000+20_000 {
		t.Errorf("expires at %d", expire)
	}
}

func TestAll_peeksAndRefunds(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.ALL r THROTTLE 9 1 1 0 KEY w WINDOW 5 60 0 KEY q QUOTA 5 60 0", "[0 5 5 -1 0 1 [0 10 10 -1 0] [0 5 5 -1 0] [0 5 5 -1 0]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 9 KEY w WINDOW 5 60 5 KEY q QUOTA 5 60 5", "[0 5 0 -1 60 1 [0 10 1 -1 9] [0 5 0 -1 60] [0 5 0 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 -4 KEY w WINDOW 5 60 -2 KEY q QUOTA 5 60 -3", "[0 5 2 -1 60 1 [0 10 5 -1 5] [0 5 2 -1 60] [0 5 3 -1 60]]"},
		// One clause gives back what another one takes.
		{0, "GO.ALL r THROTTLE 9 1 1 -1 KEY w WINDOW 5 60 2 KEY q QUOTA 5 60 0", "[0 5 0 -1 60 1 [0 10 6 -1 4] [0 5 0 -1 60] [0 5 3 -1 60]]"},
		{0, "GO.ALL r THROTTLE 9 1 1 -99 KEY w WINDOW 5 60 -99 KEY q QUOTA 5 60 -99", "[0 5 5 -1 0 1 [0 10 10 -1 0] [0 5 5 -1 0] [0 5 5 -1 0]]"},
	})
	if len(s.keys) != 0 {
		t.Errorf("nothing is in use, and these are left: %s", s.dump())
	}
}

// INFO counts a call as admitted or limited only if a clause asks for units.
func TestAll_outcome(t *testing.T) {
	for _, row := range []struct {
		line string
		want Outcome
	}{
		{"GO.ALL a QUOTA 5 60 0 KEY b WINDOW 5 60 -1", Other},
		{"GO.ALL a QUOTA 5 60 0 KEY b WINDOW 5 60 1", Admitted},
		{"GO.ALL a QUOTA 5 60 0 KEY b LEASE 5 60 x", Admitted},
		{"GO.ALL a QUOTA 5 60 0 KEY b THROTTLE 5 1 60 7", Limited},
		{"GO.ALL a QUOTA 5 60 6 KEY b THROTTLE 5 1 60 0", Limited},
		{"GO.ALL full QUOTA 4 60 0", Other}, // a limited peek
	} {
		s := newStore(t)
		s.must("GO.QUOTA full 5 60 5")
		if s.must(row.line); s.call.Outcome != row.want {
			t.Errorf("%s: outcome %d, want %d", row.line, s.call.Outcome, row.want)
		}
	}
}

// The THROTTLE clauses of a key are its cells, in order.
func TestAll_cells(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.ALL k THROTTLE 9 10 1 THROTTLE 99 100 3600 98", "[0 100 2 -1 3528 1 [0 10 9 -1 1] [0 100 2 -1 3528]]"},
		{0, "GO.ALL k THROTTLE 9 10 1 THROTTLE 99 100 3600 3", "[1 100 2 36 3528 1 [0 10 9 -1 1] [1 100 2 36 3528]]"},
		{0, "GO.THROTTLE k 9 10 1 9", "[0 10 0 -1 1]"},
		{0, "GO.ALL k THROTTLE 9 10 1 THROTTLE 99 100 3600 3 MS", "[1 100 2 36 3528 1 [1 10 0 1 1] [1 100 2 36 3528]]"},
	})
	if got := len(s.keys["k"].fields); got != 4 {
		t.Errorf("%d fields, want 4", got)
	}
}

// A cell behind a cell that was never used does not leave a gap in the hash.
func TestAll_gaps(t *testing.T) {
	s := converse(t, []step{
		{0, "GO.ALL k THROTTLE 9 10 1 0 THROTTLE 9 1 7 0 THROTTLE 9 7 60", "[0 10 9 -1 9 2 [0 10 10 -1 0] [0 10 10 -1 0] [0 10 9 -1 9]]"},
		{0, "GO.THROTTLE k 9 10 1", "[0 10 9 -1 1]"},
		{0, "GO.ALL k THROTTLE 9 10 1 -5 THROTTLE 9 1 7 -5 THROTTLE 9 7 60 0", "[0 10 9 -1 9 2 [0 10 10 -1 0] [0 10 10 -1 0] [0 10 9 -1 9]]"},
		{0, "GO.ALL k THROTTLE 9 10 1 0 THROTTLE 9 1 7 0 THROTTLE 9 7 60 0 THROTTLE 1 1 1 0 THROTTLE 1 1 1",
			"[0 2 1 -1 1 4 [0 10 10 -1 0] [0 10 10 -1 0] [0 10 9 -1 9] [0 2 2 -1 0] [0 2 1 -1 1]]"},
		{0, "GO.ALL k THROTTLE 9 10 1 -5 THROTTLE 9 1 7 -5 THROTTLE 9 7 60 -1 THROTTLE 1 1 1 0 THROTTLE 1 1 1 -1",
			"[0 2 2 -1 0 3 [0 10 10 -1 0] [0 10 10 -1 0] [0 10 10 -1 0] [0 2 2 -1 0] [0 2 2 -1 0]]"},
	})
	if len(s.keys) != 0 {
		t.Errorf("all cells are void, and these are left: %s", s.dump())
	}
}

// A key lives as long as the last of its cells, also of those that the call does not name.
func TestAll_expiry(t *testing.T) {
	s := newStore(t)
	for _, row := range []struct {
		line string
		ends int64 // s
	}{
		{"GO.ALL k THROTTLE 9 1 1 THROTTLE 9 1 1000 THROTTLE 9 1 100", 1000},
		{"GO.THROTTLE k 9 1 1", 1000},
		{"GO.ALL k THROTTLE 9 1 1 THROTTLE 9 1 1000 -1", 100},
		{"GO.ALL k THROTTLE 9 1 1 -9 THROTTLE 9 1 1000 0 THROTTLE 9 1 100", 200},
	} {
		s.must(row.line)
		end := int64(s.now/1000) + row.ends*1000
		if at := s.keys["k"].expire; at < end || at > end+row.ends*250+1000 {
			t.Errorf("%s: expires %d ms after the end", row.line, at-end)
		}
	}
}

// The slack of the expiry follows the smallest window of the cells that change.
func TestAll_expirySlack(t *testing.T) {
	for _, row := range []struct{ line, want string }{
		{"GO.ALL k THROTTLE 9 1 1000 THROTTLE 9 1 8", "expire+1000000..1002000"},
		{"GO.ALL k THROTTLE 9 1 8 THROTTLE 9 1 1000", "expire+1000000..1002000"},
		{"GO.ALL k THROTTLE 9 1 1000 THROTTLE 9 1 8 0", "expire+1000000..1250000"},
	} {
		s, _ := onKey(t, nil, row.line)
		if got := s.effect(); !strings.HasSuffix(got, row.want) {
			t.Errorf("%s: %s, want %s", row.line, got, row.want)
		}
	}
}

// The first cell of a redis-cell key is its TAT. A call that writes makes it a hash.
func TestAll_adopted(t *testing.T) {
	tat := fmt.Sprint(inMillis(2500))
	for _, row := range []struct{ line, reply, fields string }{
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 1", "[0 10 9 -1 1 1 [0 16 13 -1 5] [0 10 9 -1 1]]",
			"map[0:1800000004500000000 1:2 4:1800000001000000000 5:1]"},
		{"GO.ALL k THROTTLE 15 30 60 0 THROTTLE 9 1 1", "[0 10 9 -1 1 1 [0 16 14 -1 3] [0 10 9 -1 1]]",
			"map[0:1800000002500000000 1:2 4:1800000001000000000 5:1]"},
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 1 0", "[0 10 10 -1 0 1 [0 16 13 -1 5] [0 10 10 -1 0]]",
			"map[0:1800000004500000000 1:2]"},
		{"GO.ALL k THROTTLE 15 30 60 0 THROTTLE 9 1 1 0", "[0 10 10 -1 0 1 [0 16 14 -1 3] [0 10 10 -1 0]]", ""},
		{"GO.ALL k THROTTLE 15 30 60 THROTTLE 9 1 1 11", "[1 10 10 -1 0 1 [0 16 14 -1 3] [1 10 10 -1 0]]", ""},
		{"GO.ALL k THROTTLE 0 30 60 THROTTLE 9 1 1", "[1 1 0 3 3 0 [1 1 0 3 3] [0 10 10 -1 0]]", ""},
	} {
		s, err := onKey(t, text(tat), row.line)
		if got := replyText(s.call, err); got != row.reply {
			t.Errorf("%s: %s, want %s", row.line, got, row.reply)
		}
		switch v := s.keys["k"]; {
		case row.fields == "" && v.text != tat:
			t.Errorf("%s: the string became %+v", row.line, *v)
		case row.fields != "" && fmt.Sprint(v.fields) != row.fields:
			t.Errorf("%s: fields %v, want %s", row.line, v.fields, row.fields)
		}
	}
	s, _ := onKey(t, text(tat), "GO.ALL k THROTTLE 15 30 60 -9 THROTTLE 9 1 1 -1")
	if len(s.keys) != 0 {
		t.Errorf("refunded to nothing: %s", s.dump())
	}
}

// MS stands once and is for all clauses: periods, ttl, offsets and the times of the reply.
func TestAll_millis(t *testing.T) {
	converse(t, []step{
		{0, "GO.ALL r THROTTLE 9 10 1000 KEY w WINDOW 5 60000 KEY q QUOTA 10 60000 1 ALIGN 1500 KEY l LEASE 2 60000 a MS",
			"[0 2 1 -1 60000 3 [0 10 9 -1 100] [0 5 4 -1 60000] [0 10 9 -1 1500] [0 2 1 -1 60000 0]]"},
		{0, "GO.ALL q QUOTA 10 60 10 ms", "[1 10 9 1500 1500 0 [1 10 9 1500 1500]]"},
	})
}

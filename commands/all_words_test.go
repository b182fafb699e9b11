package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Keywords may be in any case. A key or an id may have the name of a keyword.
func TestAll_names(t *testing.T) {
	for _, row := range []struct {
		line, reply string
		keys        []string
	}{
		{"GO.ALL KEY LEASE 1 60 KEY KEY MS LEASE 1 60 MS KEY THROTTLE THROTTLE 0 1 1 KEY WINDOW WINDOW 1 1 KEY QUOTA QUOTA 1 1",
			"[0 1 0 -1 60 0 [0 1 0 -1 60 0] [0 1 0 -1 60 0] [0 1 0 -1 1] [0 1 0 -1 1] [0 1 0 -1 1]]",
			[]string{"KEY", "MS", "QUOTA", "THROTTLE", "WINDOW"}},
		{"GO.ALL MS LEASE 1 60 MS MS", "[0 1 0 -1 60 0 [0 1 0 -1 60 0]]", []string{"MS"}},
		{"GO.ALL LEASE LEASE 1 60 WINDOW KEY EXACT QUOTA 1 1 KEY ALIGN LEASE 1 1 THROTTLE",
			"[0 1 0 -1 60 0 [0 1 0 -1 60 0] [0 1 0 -1 1] [0 1 0 -1 1 0]]", []string{"ALIGN", "EXACT", "LEASE"}},
		{"GO.ALL k throttle 0 1 1 Throttle 0 1 1 key l wIndow 1 1 exact kEY q quota 1 1 align 0 ms",
			"[0 1 0 -1 1 0 [0 1 0 -1 1] [0 1 0 -1 1] [0 1 0 -1 1] [0 1 0 -1 1]]", []string{"k", "l", "q"}},
	} {
		s := newStore(t)
		if got := s.told(row.line); got != row.reply {
			t.Errorf("%s: %s, want %s", row.line, got, row.reply)
		}
		keys := []string{}
		for name := range s.keys {
			keys = append(keys, name)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, row.keys) {
			t.Errorf("%s: keys %q, want %q", row.line, keys, row.keys)
		}
	}
}

// 32 clauses fit, at one key or at 32 keys.
func TestAll_most(t *testing.T) {
	cell := "[0 2 1 -1 1]"
	s := newStore(t)
	want := "[0 2 1 -1 1 0" + strings.Repeat(" "+cell, 32) + "]"
	if got := s.told("GO.ALL k" + strings.Repeat(" THROTTLE 1 1 1", 32)); got != want || len(s.keys["k"].fields) != 64 {
		t.Errorf("one key: %s", got)
	}
	line := "GO.ALL k0 QUOTA 2 1"
	for i := range 31 {
		line += fmt.Sprintf(" KEY k%d QUOTA 2 1", i+1)
	}
	s = newStore(t)
	if got := s.told(line + " MS"); got != want || len(s.keys) != 32 {
		t.Errorf("32 keys: %s", got)
	}
}

func TestAll_errors(t *testing.T) {
	long := strings.Repeat("x", 300)
	most := "GO.ALL k" + strings.Repeat(" THROTTLE 1 1 1", 31)
	for _, row := range []struct{ line, want string }{
		// A call that ends too early.
		{"GO.ALL k THROTTLE 1 1", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1", "ERR wrong number of arguments"},
		{"GO.ALL k LEASE 1 1", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1 1 KEY", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1 1 KEY l", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1 1 KEY l WINDOW", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1 1 KEY l WINDOW 1", "ERR wrong number of arguments"},
		{"GO.ALL k THROTTLE 1 1 1 THROTTLE 1 1", "ERR wrong number of arguments"},
		{"GO.ALL k QUOTA 1 1 KEY l LEASE 1 1 KEY", "OK"}, // an id
		{"GO.ALL k QUOTA 1 1 KEY l LEASE 1 1 KEY KEY", "ERR wrong number of arguments"},
		// Words that are no clause and no option.
		{"GO.ALL k MS QUOTA 1 1", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'MS'"},
		{"GO.ALL k KEY l QUOTA 1 1", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'KEY'"},
		{"GO.ALL k QUOTA 1 1 KEY l MS", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'MS'"},
		{"GO.ALL k 1 QUOTA 1 1", "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not '1'"},
		{"GO.ALL k QUOTA 1 1 MS KEY l QUOTA 1 1", "ERR unknown option 'KEY'"},
		{"GO.ALL k QUOTA 1 1 UPTO", "ERR unknown option 'UPTO'"},
		{"GO.ALL k QUOTA 1 1 EXACT", "ERR unknown option 'EXACT'"},
		{"GO.ALL k WINDOW 1 1 ALIGN 0", "ERR unknown option 'ALIGN'"},
		{"GO.ALL k LEASE 1 1 a 1", "ERR unknown option '1'"},
		{"GO.ALL k THROTTLE 1 1 1 1 1", "ERR unknown option '1'"},
		{"GO.ALL k THROTTLE 1 1 1 EXACT", "ERR unknown option 'EXACT'"},
		{"GO.ALL k WINDOW 1 1 EXACT 1", "ERR unknown option '1'"}, // a quantity stands before
		{"GO.ALL k WINDOW 1 1 EXACT EXACT", "ERR option 'EXACT' given more than once"},
		{"GO.ALL k QUOTA 1 1 ALIGN 0 align 0", "ERR option 'align' given more than once"},
		{"GO.ALL k QUOTA 1 1 MS MS", "ERR option 'MS' given more than once"},
		{"GO.ALL k QUOTA 1 1 ALIGN", "ERR ALIGN needs an offset"},
		{"GO.ALL k QUOTA 1 1 ALIGN MS", "ERR offset is not an integer"},
		{"GO.ALL k QUOTA 1 1 ALIGN KEY l QUOTA 1 1", "ERR unknown option 'l'"},
		// Keys.
		{"GO.ALL k QUOTA 1 1 KEY l QUOTA 1 1 KEY k QUOTA 1 1", "ERR a key may be named only once"},
		{"GO.ALL " + long + " QUOTA 1 1 KEY " + long + "y QUOTA 1 1 KEY " + long + " QUOTA 1 1", "ERR a key may be named only once"},
		{"GO.ALL k THROTTLE 1 1 1 KEY k THROTTLE 1 1 1", "ERR a key may be named only once"},
		{"GO.ALL k THROTTLE 1 1 1 QUOTA 1 1", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone"},
		{"GO.ALL k WINDOW 1 1 THROTTLE 1 1 1", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone"},
		{"GO.ALL k WINDOW 1 1 WINDOW 1 1", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone"},
		{"GO.ALL k WINDOW 1 1 LEASE 1 1 a", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone"},
		{"GO.ALL k LEASE 1 60 THROTTLE THROTTLE 0 1 1", "ERR a WINDOW, QUOTA or LEASE clause must have its key alone"},
		{most + " THROTTLE 1 1 1 THROTTLE 1 1 1", "ERR at most 32 clauses"},
		{most + " THROTTLE 1 1 1 KEY l QUOTA 1 1", "ERR at most 32 clauses"},
		// The words of a clause, wherever it stands.
		{"GO.ALL k THROTTLE x 1 1", "ERR max_burst is not an integer"},
		{"GO.ALL k THROTTLE 1 1 1 THROTTLE 1 0 1", "ERR count must be between 1 and 1000000000000"},
		{"GO.ALL k THROTTLE 1 1 1 THROTTLE 1 1 1 1x", "ERR quantity is not an integer"},
		{"GO.ALL k THROTTLE 1 1 3153600000", "ERR (max_burst + 1) x period / count must not exceed 100 years"},
		{"GO.ALL k QUOTA 1 1 KEY l WINDOW 0 1", "ERR limit must be between 1 and 1000000000000"},
		{"GO.ALL k QUOTA 1 0", "ERR period must be between 1 and 3153600000 seconds"},
		{"GO.ALL k QUOTA 1 1 KEY l WINDOW 1 0 MS", "ERR period must be between 1 and 3153600000000 milliseconds"},
		{"GO.ALL k QUOTA 1 1 1000000000002", "ERR quantity must be between -1000000000001 and 1000000000001"},
		{"GO.ALL k QUOTA 1 1 ALIGN 3153600001", "ERR offset must be within 100 years either way"},
		{"GO.ALL k LEASE 1 0 a", "ERR ttl must be between 1 and 3153600000 seconds"},
		{"GO.ALL k LEASE 1 0 a MS", "ERR ttl must be between 1 and 3153600000000 milliseconds"},
		{"GO.ALL k LEASE 1 1 " + strings.Repeat("x", 513), "ERR an id must not exceed 512 bytes"},
	} {
		s := newStore(t)
		got := s.told(row.line)
		if row.want == "OK" {
			got = strings.Repeat("OK", len(s.keys)/2)
		} else if len(s.keys) > 0 {
			t.Errorf("%.80s: an error left %s", row.line, s.dump())
		}
		if got != row.want {
			t.Errorf("%.80s: %s, want %s", row.line, got, row.want)
		}
	}
}

// One damaged key among several is an error, and no key changes. A cell that the call does not
// name counts.
func TestAll_damagedKeys(t *testing.T) {
	for _, row := range []struct {
		key  *value
		line string
		want ErrorCode
	}{
		{hash(inMillis(1), 1, none, none, inMillis(1), 0), "GO.ALL l QUOTA 5 60 KEY k THROTTLE 1 1 1", ErrDamaged},
		{hash(inMillis(1), 1, none, none, inMillis(1), 1, none, none, inMillis(1), 0), "GO.ALL k THROTTLE 1 1 1 THROTTLE 1 1 1", ErrDamaged},
		{hash(none, none, none, none, inMillis(1), 1), "GO.ALL k THROTTLE 1 1 1 THROTTLE 1 1 1", ErrForeignHash},
		{hash(inMillis(1), 1).with("9", "1"), "GO.ALL l WINDOW 5 60 KEY k THROTTLE 1 1 1 THROTTLE 1 1 1 THROTTLE 1 1 1", ErrForeignHash},
	} {
		s, err := onKey(t, row.key, row.line)
		if err != row.want || len(s.keys) != 1 {
			t.Errorf("%s: %q, want %q; keys %s", row.line, err.Text(), row.want.Text(), s.dump())
		}
	}
}

// Long names have checksums that tell them apart, so that the names need not be compared one with
// another.
func TestChecksum(t *testing.T) {
	for _, n := range []int{256, 10_000} {
		name := strings.Repeat("x", n)
		if checksum(name) != checksum(strings.Clone(name)) || checksum(name) == checksum(name[1:]+"y") {
			t.Errorf("names of %d bytes", n)
		}
	}
}

package commands

import (
	"fmt"
	"strings"
	"testing"
)

// modes are the options that exclude each other, with their operands.
var modes = []string{"UPTO", "FORCE", "RESERVE 5", "LOCKOUT 5"}

// Two modes in one call are an error that names both: the later one as it was written.
func TestModes_excludeEachOther(t *testing.T) {
	all := func(name, words string) {
		for _, first := range modes {
			for _, second := range modes {
				keyword, _, _ := strings.Cut(first, " ")
				word, _, _ := strings.Cut(strings.ToLower(second), " ")
				want := fmt.Sprintf("ERR option '%s' cannot be combined with %s", word, keyword)
				if first == second {
					want = fmt.Sprintf("ERR option '%s' given more than once", word)
				}
				for _, between := range []string{" ", " ms "} {
					line := name + " k " + words + " " + first + between + strings.ToLower(second)
					if got := newStore(t).told(line); got != want {
						t.Errorf("%s: %s, want %s", line, got, want)
					}
				}
			}
		}
	}
	all("GO.THROTTLE", "15 30 60")
	all("GO.THROTTLE", "15 30 60 3")
	all("GO.THROTTLE_RO", "15 30 60")
	wantTold(t, []toldRow{
		{"GO.ALL k QUOTA 5 60 FORCE FORCE", "ERR option 'FORCE' given more than once"},
		{"GO.ALL k QUOTA 5 60 FORCE MS force", "ERR option 'force' given more than once"},
	})
}

// Options stand after the quantity in any order and any case, and each operand after its own word.
func TestModes_words(t *testing.T) {
	const force, reserve = "[0 16 15 -1 2000]", "[0 16 15 -1 2000 0]"
	for _, row := range []struct{ words, want string }{
		{"15 30 60000 FORCE MS", force},
		{"15 30 60000 ms Force", force},
		{"15 30 60000 1 mS fORCE", force},
		{"15 30 60000 RESERVE 5 MS", reserve},
		{"15 30 60000 MS reserve 5", reserve},
		{"15 30 60000 1 rEserve +005 MS", reserve},
		{"15 30 60000 MS RESERVE -0", reserve},
		{"15 30 60000 MS RESERVE 3153600000000", reserve},
		{"15 30 60 RESERVE 3153600000", "[0 16 15 -1 2 0]"},

		{"15 30 60 FORCE 1", "ERR unknown option '1'"},
		{"15 30 60 RESERVE 5 1", "ERR unknown option '1'"},
		{"15 30 60 FORCED", "ERR unknown option 'FORCED'"},
		{"15 30 60 5 5", "ERR unknown option '5'"},
		{"15 30 60 RESERVE", "ERR RESERVE needs a maxwait"},
		{"15 30 60 1 MS RESERVE", "ERR RESERVE needs a maxwait"},
		{"15 30 60 RESERVE MS", "ERR maxwait is not an integer"},
		{"15 30 60 RESERVE 1.5", "ERR maxwait is not an integer"},
		{"15 30 60 RESERVE 5s", "ERR maxwait is not an integer"},
		{"15 30 60 RESERVE -1", "ERR maxwait must be at least 0 and at most 100 years"},
		{"15 30 60 RESERVE 3153600001", "ERR maxwait must be at least 0 and at most 100 years"},
		{"15 30 60 MS RESERVE 3153600000001", "ERR maxwait must be at least 0 and at most 100 years"},
		{"15 30 60 RESERVE 9223372036854775808", "ERR maxwait must be at least 0 and at most 100 years"},
	} {
		for _, name := range []string{"GO.THROTTLE", "GO.THROTTLE_RO"} {
			s := newStore(t)
			if got := s.told(name + " k " + row.words); got != row.want {
				t.Errorf("%s k %s: %s, want %s", name, row.words, got, row.want)
			}
			if row.want[0] == 'E' && len(s.keys) > 0 {
				t.Errorf("%s: an error left %s", row.words, s.dump())
			}
		}
	}
}

// A command knows its own options only. GO.ALL has FORCE after all clauses, for all of them, and
// with no LEASE clause.
func TestModes_ofEachCommand(t *testing.T) {
	wantTold(t, []toldRow{
		{"CL.THROTTLE k 15 30 60 FORCE", "ERR quantity is not an integer"},
		{"CL.THROTTLE k 15 30 60 1 FORCE", "ERR wrong number of arguments"},
		{"GO.ALL k THROTTLE 15 30 60 UPTO", "ERR unknown option 'UPTO'"},
		{"GO.ALL k THROTTLE 15 30 60 RESERVE 5", "ERR unknown option 'RESERVE'"},
		{"GO.ALL k THROTTLE 15 30 60 FORCE KEY l QUOTA 5 60", "ERR unknown option 'KEY'"},
		{"GO.ALL k THROTTLE 15 30 60 FORCE THROTTLE 15 30 60", "ERR unknown option 'THROTTLE'"},
		{"GO.ALL k LEASE 5 60 a FORCE", "ERR FORCE cannot be combined with a LEASE clause"},
		{"GO.ALL k LEASE 5 60 a KEY l QUOTA 5 60 MS FORCE", "ERR FORCE cannot be combined with a LEASE clause"},
		{"GO.ALL_RO l QUOTA 5 60 KEY k LEASE 5 60 a FORCE", "ERR FORCE cannot be combined with a LEASE clause"},
		{"GO.ALL k LEASE 5 60 FORCE", "[0 5 4 -1 60 0 [0 5 4 -1 60 0]]"}, // an id
		{"GO.ALL FORCE QUOTA 5 60 KEY k LEASE 5 60 FORCE", "[0 5 4 -1 60 0 [0 5 4 -1 60] [0 5 4 -1 60 0]]"},
		{"GO.ALL k QUOTA 5 60000 force ms", "[0 5 4 -1 60000 0 [0 5 4 -1 60000]]"},
		{"GO.ALL k WINDOW 5 60000 EXACT ms Force", "[0 5 4 -1 60000 0 [0 5 4 -1 60000]]"},
	})
}

// A read-only twin gives the reply that the call then gets, and changes nothing.
func TestModes_readOnly(t *testing.T) {
	for _, prepare := range []string{"", "GO.THROTTLE k 1 7 60 2", "GO.THROTTLE k 1 7 60 9 FORCE", "GO.THROTTLE k 0 7 60 1 RESERVE 99", "LOCKED"} {
		for _, mode := range append(modes, "", "RESERVE 0", "RESERVE 10", "LOCKOUT 1000") {
			for _, quantity := range []string{"0", "1", "2", "3", "-1", "-99"} {
				s := newStore(t)
				switch prepare {
				case "":
				case "LOCKED":
					s.must("GO.THROTTLE k 0 7 60")
					s.must("GO.THROTTLE k 0 7 60 1 LOCKOUT 77")
				default:
					s.must(prepare)
				}
				words := " k 1 7 60 " + quantity + " " + mode
				before := s.dump()
				would := s.told("GO.THROTTLE_RO" + words)
				if after := s.dump(); after != before {
					t.Errorf("GO.THROTTLE_RO%s changed\n%s\nto\n%s", words, before, after)
				}
				if got := s.told("GO.THROTTLE" + words); got != would || strings.HasPrefix(got, "ERR") {
					t.Errorf("after %q: GO.THROTTLE%s: %s, GO.THROTTLE_RO said %s", prepare, words, got, would)
				}
			}
		}
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gothrottle/commands"
)

// names returns the names of all calls of a schedule, with blanks between.
func names(s *schedule) (all string) {
	for _, st := range s.Steps {
		for _, w := range st.Calls {
			all += " " + w[0]
		}
	}
	return all + " "
}

// Shrinking leaves the steps and the calls that a failure needs, and nothing else.
func TestShrink(t *testing.T) {
	for _, wanted := range []string{" 0.0 ", " 99.9 ", " 3.4 3.5 70.1 ", " 10.0 11.9 50.5 51.0 80.8 "} {
		s, runs := schedule{}, 0
		for i := range 100 {
			s.Steps = append(s.Steps, step{Do: "calls"})
			for j := range 10 {
				s.Steps[i].Calls = append(s.Steps[i].Calls, words{fmt.Sprintf("%d.%d", i, j)})
			}
		}
		needed := regexp.MustCompile(strings.ReplaceAll(wanted, " ", " (.* )?"))
		s = shrink(s, -1, func(s *schedule) bool {
			runs++
			return needed.MatchString(names(s))
		})
		if left := names(&s); left != wanted || runs > 600 {
			t.Errorf("%q is left of %q, after %d runs", left, wanted, runs)
		}
	}
}

// A schedule is the same after it was written and read. A seed always gives the same schedule.
func TestSchedule_writeAndRead(t *testing.T) {
	s := generate(12345, 300, "")
	if !reflect.DeepEqual(s, generate(12345, 300, "")) {
		t.Fatal("a seed gives two schedules")
	}
	s.Steps = append(s.Steps, step{Do: "calls", Calls: []words{{"GO.LEASE", "\x00\xff\"\\ ", "", "\u017f"}}})
	file := filepath.Join(t.TempDir(), "s.json")
	if err := s.write(file); err != nil {
		t.Fatal(err)
	}
	got, err := readSchedule(file)
	if err != nil || !reflect.DeepEqual(s, got) {
		t.Errorf("%v: %v is read, %v was written", err, got, s)
	}
}

// All faults, ways to send calls, and commands come up.
func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(15) {
		for _, st := range generate(seed+20, 250, "").Steps {
			seen[st.Do], seen[st.Via] = true, true
			for _, w := range st.Calls {
				seen[strings.ToUpper(w[0])] = true
				if st.Via == "multi" && st.Do == "calls" && tooFew(w) {
					t.Fatalf("seed %d: the server refuses %q in a transaction", seed, w)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1)) // the rarest fault is 1 of 110, and few steps are faults
	for range 3000 {
		seen[drawFault(r, "", func(f *fault) int { return f.weight }).Do] = true
	}
	wanted := []string{"calls", "clock", "foreign", "plain", "multi", "eval", "fcall", "parallel", "replica"}
	for _, f := range faults {
		if f.weight > 0 {
			wanted = append(wanted, f.name)
		}
	}
	for _, c := range commands.Table {
		if c.Name != "GO.HELP" { // it reads and changes nothing
			wanted = append(wanted, c.Name)
		}
	}
	for _, name := range wanted {
		if !seen[name] {
			t.Errorf("%s does not come up", name)
		}
	}
}

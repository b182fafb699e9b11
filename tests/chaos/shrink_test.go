package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
)

// needs returns a judge of schedules: a schedule fails if it has these calls in this order.
func needs(runs *int, wanted ...string) func(*schedule) bool {
	return func(s *schedule) bool {
		*runs++
		i := 0
		for _, st := range s.Steps {
			for _, w := range st.Calls {
				if i < len(wanted) && w[0] == wanted[i] {
					i++
				}
			}
		}
		return i == len(wanted)
	}
}

func numbered(steps, calls int) (s schedule) {
	for i := range steps {
		st := step{Do: "calls"}
		for j := range calls {
			st.Calls = append(st.Calls, words{fmt.Sprintf("%d.%d", i, j)})
		}
		s.Steps = append(s.Steps, st)
	}
	return s
}

// Shrinking leaves the steps and the calls that a failure needs, and nothing else.
func TestShrink(t *testing.T) {
	for _, wanted := range [][]string{{"0.0"}, {"99.9"}, {"3.4", "3.5", "70.1"}, {"10.0", "11.9", "50.5", "51.0", "80.8"}} {
		runs := 0
		s := shrink(numbered(100, 10), -1, needs(&runs, wanted...))
		var left []string
		for _, st := range s.Steps {
			for _, w := range st.Calls {
				left = append(left, w[0])
			}
		}
		if !slices.Equal(left, wanted) || runs > 600 {
			t.Errorf("%q is left of %q, after %d runs", left, wanted, runs)
		}
	}
}

// A schedule is the same after it was written and read. A seed always gives the same schedule.
func TestSchedule_writeAndRead(t *testing.T) {
	s := generate(12345, 300)
	if !reflect.DeepEqual(s, generate(12345, 300)) {
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
	seen := map[string]int{}
	for seed := range uint64(12) {
		s := generate(seed, 250)
		for _, st := range s.Steps {
			seen[st.Do]++
			seen["via "+st.Via]++
			for _, w := range st.Calls {
				seen[strings.ToUpper(w[0])]++
				if st.Via == "multi" && st.Do == "calls" && tooFew(w) {
					t.Fatalf("seed %d: the server refuses %q in a transaction", seed, w)
				}
			}
		}
	}
	wanted := []string{"calls", "clock", "foreign", "via plain", "via multi", "via eval", "via fcall", "via parallel", "via replica"}
	for _, f := range faults {
		wanted = append(wanted, f.name)
	}
	for _, c := range commands.Table {
		wanted = append(wanted, c.Name)
	}
	for _, name := range wanted {
		if seen[name] < 1 {
			t.Errorf("%s: %d", name, seen[name])
		}
	}
}

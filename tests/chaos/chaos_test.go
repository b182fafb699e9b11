package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
)

// A seed always gives the same schedule. Shrinking leaves the calls that a failure needs, and nothing else.
func TestSchedule(t *testing.T) {
	s := generate(12345, 60, "")
	if !reflect.DeepEqual(s, generate(12345, 60, "")) {
		t.Fatal("a seed gives two schedules")
	}
	needed := [2]words{{"GO.LEASE", "k"}, {"GO.INFO", "last"}}
	s.Steps[20].Calls, s.Steps[40].Calls = append(s.Steps[20].Calls, needed[0]), append(s.Steps[40].Calls, needed[1], needed[1])
	short := shrink(s, func(s *schedule) bool {
		has := func(w words) bool {
			return slices.ContainsFunc(s.Steps, func(st step) bool {
				return slices.ContainsFunc(st.Calls, func(one words) bool { return slices.Equal(one, w) })
			})
		}
		return has(needed[0]) && has(needed[1])
	})
	if len(short.Steps) != 2 || len(short.Steps[0].Calls) != 1 || len(short.Steps[1].Calls) != 1 {
		t.Errorf("left are %v", short.Steps)
	}
}

// All faults, ways to send calls, and commands come up.
func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(15) {
		for _, st := range generate(seed, 150, "").Steps {
			seen[st.Do], seen[st.Via] = true, true
			for _, w := range st.Calls {
				seen[strings.ToUpper(w[0])] = true
			}
		}
	}
	wanted := strings.Fields("calls clock foreign plain multi eval parallel replica")
	for _, f := range faults() {
		wanted = append(wanted, f.name)
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

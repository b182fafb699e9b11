package cgo_test

// No transcript has the documents that these tests compare with the module.

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// section returns a section of the reference.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// The reference's table of effects names just the commands that are replicated, and just the events.
func TestReference_effects(t *testing.T) {
	effects := section(t, "Effects")
	cell := func(h *fakehost.Host) { h.Put("k", textOf(tat(h, 2_500_000_000))) }
	for row, calls := range map[string][]struct {
		before func(*fakehost.Host)
		line   string
	}{
		"admitted, new key":                                {{nil, "GO.THROTTLE k 15 30 60"}},
		"admitted, expiry still good":                      {{run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60"}},
		"the rate changed":                                 {{run(0, "GO.THROTTLE k 15 7 60 5"), "GO.THROTTLE k 15 30 60"}},
		"denied, a lockout begins":                         {{run(0, "GO.THROTTLE k 0 30 60"), "GO.THROTTLE k 0 30 60 LOCKOUT 60"}},
		"admitted, a lockout has ended":                    {{run(3*second, "GO.THROTTLE k 0 30 60", "GO.THROTTLE k 0 30 60 LOCKOUT 1"), "GO.THROTTLE k 0 30 60"}},
		"refund to full, no lockout":                       {{run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 -1"}, {run(0, "GO.QUOTA k 9 60"), "GO.QUOTA k 9 60 -1"}},
		"redis-cell's string taken over":                   {{cell, "GO.THROTTLE k 15 30 60"}},
		"GO.WINDOW, GO.LEASE":                              {{run(2*second, "GO.WINDOW k 9 1"), "GO.WINDOW k 9 1"}, {run(2*second, "GO.LEASE k 9 1 a"), "GO.LEASE k 9 1 b"}},
		"GO.QUOTA":                                         {{nil, "GO.QUOTA k 9 60"}, {run(0, "GO.QUOTA k 9 60"), "GO.QUOTA k 9 60"}},
		"GO.RELEASE":                                       {{run(0, "GO.LEASE k 9 60 a", "GO.LEASE k 9 9 b"), "GO.RELEASE k a"}, {run(0, "GO.LEASE k 9 60 a"), "GO.RELEASE k a"}},
		"GO.LEASE denied, slots have lapsed":               {{run(2*second, "GO.LEASE k 9 1 a", "GO.LEASE k 9 60 b"), "GO.LEASE k 1 60 c"}},
		"otherwise denied, peek, refund of nothing, error": {{run(0, "GO.QUOTA k 1 60"), "GO.QUOTA k 1 60"}, {run(0, "GO.QUOTA k 1 60"), "GO.QUOTA k 1 60 0"}, {run(2*second, "GO.ALL k THROTTLE 9 9 9 THROTTLE 1 1 9"), "GO.THROTTLE k 9 9 9 -1"}, {nil, "GO.QUOTA k x 1"}},
	} {
		_, rest, found := strings.Cut(effects, "\n| "+row+" | ")
		cells := strings.Split(rest, " | ")
		if !found || len(cells) < 2 {
			t.Errorf("the reference has no row %q", row)
			continue
		}
		var replicated, heard []string
		for _, c := range calls {
			h := loaded(t)
			if c.before != nil {
				c.before(h)
			}
			call(h, c.line)
			for _, words := range h.Effects() {
				replicated = append(replicated, words[0])
			}
			for _, event := range h.Events() {
				heard = append(heard, event.Name)
			}
		}
		events, _, _ := strings.Cut(cells[1], "|")
		wantNames(t, row+": effects", replicated, cells[0], "[A-Z]{3,}")
		wantNames(t, row+": events", heard, events, "hset|hdel|zadd|zrem|set|del|expire")
	}
}

// wantNames compares names with those in a cell of a table, in any order.
func wantNames(t *testing.T, what string, names []string, cell, name string) {
	t.Helper()
	listed := regexp.MustCompile(`\b(`+name+`)\b`).FindAllString(cell, -1)
	listed = slices.DeleteFunc(listed, func(word string) bool { return slices.Contains([]string{"PXAT", "KEEPTTL"}, word) })
	slices.Sort(listed)
	slices.Sort(names)
	if !slices.Equal(slices.Compact(listed), slices.Compact(names)) {
		t.Errorf("%s: the reference has %q, the module has %q", what, listed, names)
	}
}

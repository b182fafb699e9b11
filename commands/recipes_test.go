package commands

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
)

// A recipe is a limiter that people build themselves, as a small model. It is asked for
// n units at now, in µs, and tells what is left then, or unknown. docs/migrating.md has
// a section for each.
type recipe func(now, n int64) (admitted bool, left int64)

const unknown = -1

// burst is some calls that come at once, and how many of them either side admits.
type burst struct {
	at              time.Duration // since nowMicros
	calls, quantity int64
	recipe, ours    int64
}

// compare runs a schedule through a recipe and through the command that replaces it.
// %d in the command is the quantity.
func compare(t *testing.T, take recipe, command string, bursts []burst) *store {
	t.Helper()
	s := newStore(t)
	for i, b := range bursts {
		s.now = nowMicros + funnel.Micros(b.at.Microseconds())
		recipe, ours := int64(0), int64(0)
		for range b.calls {
			if admitted, _ := take(int64(s.now), b.quantity); admitted {
				recipe++
			}
			if s.must(fmt.Sprintf(command, b.quantity))[0] == 0 {
				ours++
			}
		}
		if recipe != b.recipe || ours != b.ours {
			t.Errorf("%s, burst %d at %v: the recipe admits %d, ours %d; want %d, %d",
				command, i, b.at, recipe, ours, b.recipe, b.ours)
		}
	}
	return s
}

// agree runs random calls through both, which must decide alike and have the same left.
// The gaps are multiples of grain below most x grain, the quantities 1 to quantity.
func agree(t *testing.T, take recipe, command string, grain time.Duration, most, quantity int64) {
	t.Helper()
	s := newStore(t)
	random := rand.New(rand.NewPCG(1, 2))
	counts := map[bool]int{}
	for i := range 500 {
		n := 1 + random.Int64N(quantity)
		admitted, left := take(int64(s.now), n)
		reply := s.must(fmt.Sprintf(command, n))
		if admitted != (reply[0] == 0) || left != unknown && left != reply[2] {
			t.Fatalf("%s, call %d, quantity %d: the recipe says %v with %d left, ours %v", command, i, n, admitted, left, reply)
		}
		counts[admitted]++
		s.now += funnel.Micros(random.Int64N(most) * grain.Microseconds())
	}
	if min(counts[true], counts[false]) < 50 {
		t.Errorf("%s: the schedule tests little: %v", command, counts)
	}
}

// Every command of the page runs as it stands and replies what the page says, every row
// of its table leads to a section, and every test that it names exists.
func TestMigrating(t *testing.T) {
	file, err := os.ReadFile("../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(file)
	s := newStore(t)
	ran := map[string]int{} // by section
	var heading string
	var block [][]int64 // the replies of the last block
	fenced := false     // in a block for a shell, which tests/swap_test.go runs
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		switch {
		case fenced:
		case strings.HasPrefix(line, "## "):
			heading, block = line[3:], nil
		case strings.HasPrefix(line, "    "):
			block = append(block, s.paste(line))
			ran[heading]++
		case strings.HasPrefix(line, "Replies: "):
			replies := spans(line)
			if len(replies) != len(block) {
				t.Errorf("%q belongs to a block of %d commands", line, len(block))
				continue
			}
			for i, want := range replies {
				if got := strings.Trim(fmt.Sprint(block[i]), "[]"); got != want {
					t.Errorf("%s: reply %d is %s, the page says %s", heading, i, got, want)
				}
			}
		case strings.Count(line, "`")%2 == 1:
			t.Errorf("a code span goes over the end of %q", line)
		case line != "":
			block = nil
			for _, span := range spans(line) {
				if isCall(span) {
					s.paste(span)
				}
			}
		}
	}

	rows := regexp.MustCompile(`(?m)^\| \[(.*?)\]\(#(.*?)\) \| .(GO|CL)\.`).FindAllStringSubmatch(page, -1)
	if len(rows) != 9 {
		t.Errorf("%d recipes in the table", len(rows))
	}
	for _, row := range rows {
		anchor := strings.ReplaceAll(strings.ToLower(regexp.MustCompile(`[^\w -]`).ReplaceAllString(row[1], "")), " ", "-")
		if ran[row[1]] == 0 || anchor != row[2] {
			t.Errorf("row %q: no section with commands, or its anchor is not #%s", row[1], anchor)
		}
	}

	tests := ""
	for _, name := range []string{"recipes_window", "recipes_counter", "recipes_bucket", "recipes_gcra", "../tests/swap"} {
		source, err := os.ReadFile(name + "_test.go")
		if err != nil {
			t.Fatal(err)
		}
		tests += string(source)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1)
	if len(named) < len(rows)+4 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, match := range named {
		if !strings.Contains(tests, "func "+match[1]+"(") {
			t.Errorf("the page names %s, which does not exist", match[1])
		}
	}
}

// paste runs a line as a person would: also DEL.
func (s *store) paste(line string) []int64 {
	s.t.Helper()
	words := strings.Fields(line)
	if words[0] == "DEL" && len(words) == 2 {
		found := int64(0)
		if s.keys[words[1]] != nil {
			found = 1
		}
		delete(s.keys, words[1])
		return []int64{found}
	}
	return slices.Clone(s.must(line))
}

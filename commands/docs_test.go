package commands

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page is one file of documentation.
type page string

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return page(text)
}

// section returns what stands under a heading, up to the next one.
func (p page) section(t *testing.T, heading string) page {
	t.Helper()
	_, text, found := strings.Cut(string(p), "\n## "+heading+"\n")
	if !found {
		t.Errorf("no section %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return page("\n" + text)
}

// prose returns the text in one line, so that a sentence may go over several.
func (p page) prose() string { return strings.Join(strings.Fields(string(p)), " ") }

// tables returns the rows of all tables whose first heading is given, cell by cell.
func (p page) tables(heading string) (rows [][]string) {
	inside := false
	for line := range strings.Lines(string(p)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasPrefix(line, "|---"):
		case cells[0] == heading:
			inside = true
		case inside:
			rows = append(rows, cells)
		}
	}
	return rows
}

// spans returns what stands between backquotes in a line.
func spans(line string) (s []string) {
	for i, part := range strings.Split(line, "`") {
		if i%2 == 1 {
			s = append(s, part)
		}
	}
	return s
}

// isCall reports whether a code span is a whole call, not only a command's name.
func isCall(span string) bool {
	name, _, more := strings.Cut(span, " ")
	return more && findCommand(name) != nil
}

// The README's annotated call replies what the README says, with the reference's names.
func TestReadme_call(t *testing.T) {
	section := readPage(t, "../README.md").section(t, "A call")
	call := regexp.MustCompile(`(?m)^    (GO\..*)$`).FindStringSubmatch(string(section))
	rows := regexp.MustCompile(`(?m)^    (\d)\) \(integer\) (-?\d+) +(\w+) `).FindAllStringSubmatch(string(section), -1)
	names := readPage(t, "../docs/commands.md").section(t, "GO.THROTTLE").tables("#")
	if call == nil || len(rows) != 5 || len(names) != 5 {
		t.Fatalf("the README has the call %q and %d integers, the reference names %d", call, len(rows), len(names))
	}
	want := []string{}
	for i, row := range rows {
		want = append(want, row[2])
		if row[1] != names[i][0] || row[3] != names[i][1] {
			t.Errorf("integer %d is %s, in the reference it is %v", i+1, row[1:], names[i])
		}
	}
	if got := newStore(t).told(call[1]); got != "["+strings.Join(want, " ")+"]" {
		t.Errorf("%s: %s, the README says %s", call[1], got, want)
	}
}

// Every call in the README and in the reference runs as it stands, and is admitted on new keys.
func TestDocs_calls(t *testing.T) {
	for path, least := range map[string]int{"../README.md": 10, "../docs/commands.md": 7} {
		calls := []string{}
		text := strings.ReplaceAll(string(readPage(t, path)), "\\\n", " ")
		for line := range strings.Lines(text) {
			if block, indented := strings.CutPrefix(line, "    "); indented {
				calls = append(calls, strings.TrimPrefix(strings.TrimSpace(block), "redis-cli "))
			}
			calls = append(calls, spans(line)...)
		}
		calls = slices.DeleteFunc(calls, func(call string) bool {
			return !isCall(call) || strings.Contains(call, " key ") || findCommand(call[:strings.Index(call, " ")]).Syntax() == call
		})
		for _, call := range calls {
			s := newStore(t)
			s.setPolicies(examplePolicies(t))
			if got := s.told(call); strings.HasPrefix(got, "[1") || strings.HasPrefix(got, "ERR") {
				t.Errorf("%s: %s: %s", path, call, got)
			}
		}
		if len(calls) < least {
			t.Errorf("%s has %d calls", path, len(calls))
		}
	}
}

// examplePolicies returns the policies that the reference has as its example.
func examplePolicies(t *testing.T) string {
	t.Helper()
	example := regexp.MustCompile(`(?m)^    gothrottle\.policies "(.*)"$`).FindStringSubmatch(string(reference(t).section(t, "Policies")))
	if example == nil {
		t.Fatal("the reference has no example of policies")
	}
	return example[1]
}

// The policies of the example are what the reference says of them.
func TestReference_policies(t *testing.T) {
	s := newStore(t)
	s.setPolicies(examplePolicies(t))
	if len(policies.byName) != 4 {
		t.Errorf("%q: %d policies", policies.Text(), len(policies.byName))
	}
	section := reference(t).section(t, "Policies").prose()
	_, err := ParsePolicies("login QUOTA 1 1s; api THROTTLE")
	if err == nil || !strings.Contains(section, "`"+err.Error()+"`") {
		t.Errorf("the reference lacks the error %q", err)
	}
	// GO.POLICY is GO.ALL with the clauses of the policy.
	prose := reference(t).section(t, "GO.POLICY").prose()
	same := regexp.MustCompile("with the policy `(.*?)`, the call `(.*?)` is `(.*?)`").FindStringSubmatch(prose)
	if same == nil {
		t.Fatal("the reference does not compare GO.POLICY with GO.ALL")
	}
	s.setPolicies(same[1])
	if a, b := s.told(same[2]), newStore(t).told(same[3]); a != b {
		t.Errorf("%s: %s, %s: %s", same[2], a, same[3], b)
	}
}

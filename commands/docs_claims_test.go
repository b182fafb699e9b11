package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
)

// The examples of ALIGN in the reference and in the README end where the table says: at midnight of the time zone, and on
// Mondays.
func TestReference_calendar(t *testing.T) {
	rows := reference(t).section(t, "GO.QUOTA").tables("command")
	for _, row := range readPage(t, "../README.md").section(t, "Which limiter for what").tables("you want") {
		if row[0] == "N per day, anew at midnight in UTC" {
			rows = append(rows, []string{row[1], "days in UTC"})
		}
	}
	if len(rows) != 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		m := regexp.MustCompile(`^(days|weeks from (\w+)) in UTC([+-]\d+)?$`).FindStringSubmatch(row[1])
		if m == nil {
			t.Fatalf("no such windows: %q", row[1])
		}
		hours, _ := strconv.Atoi(m[3])
		s := newStore(t)
		s.must(strings.Trim(row[0], "`"))
		for key := range s.keys {
			_, digits, _ := strings.Cut(s.keys[key].text, "@")
			nanos, _ := strconv.ParseInt(digits, 10, 64)
			end := time.Unix(0, nanos).UTC().Add(time.Duration(hours) * time.Hour)
			if end.Hour() != 0 || end.Truncate(time.Hour) != end || m[2] != "" && end.Weekday().String() != m[2] {
				t.Errorf("%s: %s, but a window ends at %v of that zone", row[0], row[1], end)
			}
		}
	}
}

// The README's limiter for an interval admits one call in it.
func TestReadme_interval(t *testing.T) {
	for _, row := range readPage(t, "../README.md").section(t, "Which limiter for what").tables("you want") {
		m := regexp.MustCompile(`^never two within an interval of (\d+) s$`).FindStringSubmatch(row[0])
		if m == nil {
			continue
		}
		seconds, _ := strconv.Atoi(m[1])
		s := newStore(t)
		call := strings.Trim(row[1], "`")
		for i, step := range []funnel.Micros{0, funnel.Micros(seconds)*1_000_000 - 1, 1} {
			s.now += step
			if got := s.must(call); got[0] != int64(i%2) {
				t.Errorf("%s, call %d: %v", call, i, got)
			}
		}
		return
	}
	t.Error("the README has no limiter for an interval")
}

// The README tells how much GCRA admits in the first minute.
func TestReadme_firstMinute(t *testing.T) {
	prose := readPage(t, "../README.md").section(t, "Which limiter for what").prose()
	m := regexp.MustCompile("with `(.*?)` up to (\\d+) in the first minute \\((\\d+) at once and (\\d+) that drain\\), then (\\d+) a minute").FindStringSubmatch(prose)
	if m == nil {
		t.Fatal("the README does not tell what the first minute admits")
	}
	s := newStore(t)
	admitted := []string{} // at once, and in each of the next two minutes
	sum := 0
	for second := range 121 {
		sum += int(s.must("GO.THROTTLE k " + m[1] + " 1000 UPTO")[5])
		if second%60 == 0 {
			admitted = append(admitted, strconv.Itoa(sum))
			sum = 0
		}
		s.now += 1_000_000
	}
	once, _ := strconv.Atoi(m[3])
	drained, _ := strconv.Atoi(m[4])
	if !slices.Equal(admitted, m[3:]) || m[2] != strconv.Itoa(once+drained) {
		t.Errorf("admitted %q, the README says %q", admitted, m[2:])
	}
}

// The README lists the commands that must not be renamed: those that load.c looks for.
func TestReadme_neededCommands(t *testing.T) {
	_, source, _ := strings.Cut(loadC(t), "needed[] = {")
	source, _, _ = strings.Cut(source, "};")
	var needed []string
	for _, m := range regexp.MustCompile(`"([A-Z]+)"`).FindAllStringSubmatch(source, -1) {
		needed = append(needed, m[1])
	}
	_, text, _ := strings.Cut(readPage(t, "../README.md").prose(), "Do not rename ")
	text, _, _ = strings.Cut(text, ":")
	same(t, "commands that are needed", spans(text), needed)
}

// The reference names the commands that are slow, the category and the tips.
func TestReference_acl(t *testing.T) {
	slow := []string{}
	for _, c := range Table {
		if !strings.HasSuffix(c.Flags, " fast") {
			slow = append(slow, c.Name)
		}
	}
	prose := reference(t).section(t, "ACL").prose()
	category := regexp.MustCompile(`acl_category\[\] = "(\w+)"`).FindStringSubmatch(loadC(t))
	for _, want := range []string{
		"and `@fast` (" + strings.Join(slow, ", ") + " in `@slow`)",
		"they have a category of their own, `@" + category[1] + "`.",
		"the tips `" + strings.ReplaceAll(Tips, " ", "` and `") + "` for every command",
	} {
		if !strings.Contains(prose, want) {
			t.Errorf("the reference lacks %q", want)
		}
	}
}

// The reference and the README tell the same of retry_after: it is -1 if there is nothing to wait for.
func TestReference_retryAfter(t *testing.T) {
	row := reference(t).section(t, "GO.THROTTLE").tables("#")[3]
	if !strings.HasPrefix(row[2], "-1 if admitted, or if this quantity can never be; else ") || !strings.HasSuffix(row[2], ", never 0") {
		t.Errorf("the reference says %q", row[2])
	}
	s := newStore(t)
	for _, step := range []struct {
		call string
		want int64
	}{{"GO.THROTTLE k 0 1000000000 1", -1}, {"GO.THROTTLE k 0 1000000000 1", 1}, {"GO.THROTTLE k 0 1000000000 1 2", -1}} {
		if got := s.must(step.call); got[3] != step.want {
			t.Errorf("%s: %v", step.call, got)
		}
	}
}

// Every link within the repository leads to a file, and to a heading of it.
func TestDocs_links(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, path := range append(pages, more...) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(readPage(t, path)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(m[1], "#")
			file := path
			if name != "" {
				file = filepath.Join(filepath.Dir(path), name)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if anchor != "" && !slices.Contains(anchors(readPage(t, file)), anchor) {
				t.Errorf("%s: %s has no heading #%s", path, file, anchor)
			}
		}
	}
	if links < 10 {
		t.Errorf("%d links", links)
	}
}

// anchors returns what links call the headings of a page.
func anchors(p page) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(p), -1) {
		name := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// The bounds that SECURITY.md promises are those of the code. Where it denies the writers by name, it
// names those of its table, and they are writers.
func TestSecurity_bounds(t *testing.T) {
	text := readPage(t, "../SECURITY.md")
	prose := text.prose()
	_, denied, _ := strings.Cut(prose, "Deny them by name: `")
	denied, _, _ = strings.Cut(denied, "`")
	permitted := []string{}
	for _, row := range text.tables("permitted") {
		for _, span := range spans(row[0]) {
			if name, found := strings.CutPrefix(span, "+"); found {
				permitted = append(permitted, "-"+name)
				if c := findCommand(name); c == nil || !c.Writes() {
					t.Errorf("%s is no writer", name)
				}
			}
		}
	}
	same(t, "denied writers", strings.Fields(denied), permitted)
	want := fmt.Sprintf("clear at most %d entries per key, an id is at most %d bytes, GO.RELEASE takes at most %d ids, GO.ALL at most %d clauses",
		clearMost, maxIDLen, maxIDs, MaxClauses)
	if !strings.Contains(prose, want) {
		t.Errorf("SECURITY.md lacks %q", want)
	}
}

// Each field of INFO that a page names exists, and so does each load argument of the README.
func TestDocs_fieldsAndLoadArguments(t *testing.T) {
	exist := []string{}
	for _, row := range reference(t).section(t, "INFO gothrottle").tables("field") {
		exist = append(exist, strings.Trim(row[0], "`"))
	}
	named := 0
	for _, path := range []string{"../README.md", "../SECURITY.md", "../docs/stability.md", "../docs/migrating.md"} {
		for _, span := range spans(readPage(t, path).prose()) {
			if strings.HasPrefix(span, "gothrottle_") {
				if named++; !slices.Contains(exist, span) {
					t.Errorf("%s: INFO has no field %s", path, span)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no page names a field")
	}

	_, text, _ := strings.Cut(string(readPage(t, "../README.md")), "Load arguments: ")
	text, _, _ = strings.Cut(text, "\n")
	arguments := spans(text)
	rows := reference(t).section(t, "Load arguments").tables("argument")
	if len(arguments) != len(rows) {
		t.Fatalf("the README has the load arguments %q, the reference has %d", arguments, len(rows))
	}
	for i, row := range rows {
		name, values, _ := strings.Cut(arguments[i], " ")
		if "`"+name+"`" != row[0] {
			t.Errorf("the README has the load argument %s, the reference has %s", name, row[0])
		}
		for value := range strings.SplitSeq(values, "|") {
			if !slices.Contains(spans(row[1]), value) {
				t.Errorf("%s takes no value %s", name, value)
			}
		}
	}
}

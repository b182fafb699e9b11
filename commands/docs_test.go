package commands_test

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

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// These tests hold the documents to the code, and to each other. TestPages_calls in package tests runs the calls of all pages
// as transcripts.

// A page is one file of documentation, or a part of it.
type page string

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return page(text)
}

// section returns what is under a heading, up to the next one.
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

// column returns a column of the tables whose first heading is given.
func (p page) column(heading string, i int) (cells []string) {
	for _, row := range p.tables(heading) {
		cells = append(cells, row[i])
	}
	return cells
}

// spans returns what is between backquotes in a line.
func spans(line string) (all []string) {
	for i, part := range strings.Split(line, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// same compares what a page has with what there is, in any order.
func same(t *testing.T, what string, documented, exist []string) {
	t.Helper()
	slices.Sort(documented)
	slices.Sort(exist)
	if len(exist) == 0 || !slices.Equal(documented, exist) {
		t.Errorf("%s: the page has\n%s\nthe code has\n%s", what, strings.Join(documented, "\n"), strings.Join(exist, "\n"))
	}
}

// The figures of the README and of docs/choosing.md are those of docs/benchmarks.md, of the server that is first there.
func TestDocs_figures(t *testing.T) {
	rowOf := map[string]string{
		"`GO.THROTTLE`, admitted":        "GO.THROTTLE",
		"`GO.THROTTLE`, denied, one key": "GO.THROTTLE denied",
		"`GO.WINDOW`, limit 100":         "GO.WINDOW 100",
		"`GO.QUOTA`":                     "GO.QUOTA",
		"GCRA in Lua":                    "GCRA in Lua",
		"redis-cell 0.5.0, admitted":     "CL.THROTTLE of redis-cell",
		"sliding window in Lua":          "zset window in Lua",
		"INCR + EXPIRE in Lua":           "INCR + EXPIRE in Lua",
	}
	cpu := readPage(t, "../docs/benchmarks.md").section(t, "CPU")
	measured := map[string]string{}
	for _, row := range cpu.tables("") {
		measured[row[0]] = row[1]
	}
	check := func(row, figure string) {
		n, err := strconv.ParseFloat(measured[row], 64)
		if want := fmt.Sprintf("%.1f", n); err != nil || figure != want {
			t.Errorf("%s: %s, the bench says %s, %v", row, figure, want, err)
		}
	}
	_, server, _ := strings.Cut(string(cpu), "\n|  | ")
	server, _, _ = strings.Cut(server, " |")
	costs := readPage(t, "../README.md").section(t, "What it costs")
	if version := strings.Fields(server); len(version) != 2 ||
		!strings.Contains(string(costs), version[0]+" "+version[1][:strings.LastIndex(version[1], ".")]+" on a small virtual machine") {
		t.Errorf("the README does not name the server %q", server)
	}
	rows := costs.tables("gothrottle")
	for _, row := range rows {
		for i := 0; i < len(row); i += 2 {
			check(rowOf[row[i]], row[i+1])
		}
	}
	figures := regexp.MustCompile(`([0-9.]+) µs[^("]*\("([^"]+)"\)`).FindAllStringSubmatch(readPage(t, "../docs/choosing.md").prose(), -1)
	for _, figure := range figures {
		check(figure[2], figure[1])
	}
	if len(rows) != 4 || len(figures) != 14 {
		t.Errorf("the README has %d rows, docs/choosing.md %d figures", len(rows), len(figures))
	}
}

// The reference's table of ALIGN and the README's row of a day end where they say: at midnight of the zone, and on Mondays.
func TestDocs_calendar(t *testing.T) {
	rows := readPage(t, reference).section(t, "GO.QUOTA").tables("command")
	for _, row := range readPage(t, "../README.md").section(t, "Which limiter for what").tables("you want") {
		if strings.Contains(row[0], "midnight in UTC") {
			rows = append(rows, []string{row[1], "days in UTC"})
		}
	}
	if len(rows) != 6 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		m := regexp.MustCompile(`^(?:days|months|months from the 17th|weeks from (\w+)) in UTC([+-]\d+)?$`).FindStringSubmatch(row[1])
		reply, err := memory.NewServer().Do(corpus.Epoch, strings.Fields(strings.Trim(row[0], "`"))...)
		if m == nil || err != nil {
			t.Errorf("%q: %v", row, err)
			continue
		}
		hours, _ := strconv.Atoi(m[2])
		end := time.UnixMicro(corpus.Epoch).UTC().Add(time.Duration(reply.([]any)[4].(int64))*time.Second + time.Duration(hours)*time.Hour)
		if end != end.Truncate(24*time.Hour) || m[1] != "" && end.Weekday().String() != m[1] {
			t.Errorf("%s: %s, but a window ends at %v of that zone", row[0], row[1], end)
		}
	}
}

// Every link within the repository leads to a file, and to a heading of it.
func TestDocs_links(t *testing.T) {
	pages, _ := filepath.Glob("../*.md")
	more, _ := filepath.Glob("../docs/*.md")
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
			} else if anchor != "" && !slices.Contains(readPage(t, file).anchors(), anchor) {
				t.Errorf("%s: %s has no heading #%s", path, file, anchor)
			}
		}
	}
	if links < 10 {
		t.Errorf("%d links", links)
	}
}

// anchors returns what links call the headings of a page.
func (p page) anchors() (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(p), -1) {
		name := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// Where SECURITY.md denies the writers by name, it names those of its table, and they are writers.
func TestSecurity_writers(t *testing.T) {
	text := readPage(t, "../SECURITY.md")
	_, denied, _ := strings.Cut(text.prose(), "Deny them by name: `")
	denied, _, _ = strings.Cut(denied, "`")
	permitted := []string{}
	for _, cell := range text.column("permitted", 0) {
		for _, span := range spans(cell) {
			if name, found := strings.CutPrefix(span, "+"); found {
				permitted = append(permitted, "-"+name)
				if c := commands.Find(name); c == nil || !c.Writes() {
					t.Errorf("%s does not write", name)
				}
			}
		}
	}
	same(t, "denied writers", strings.Fields(denied), permitted)
}

// Each field of INFO that a page names is in the reference.
func TestDocs_fields(t *testing.T) {
	exist, named := readPage(t, reference).section(t, "INFO gothrottle").column("field", 0), 0
	for _, path := range []string{"../docs/operating.md", "../SECURITY.md", "../docs/stability.md", "../docs/migrating.md"} {
		for _, span := range spans(readPage(t, path).prose()) {
			if strings.HasPrefix(span, "gothrottle_") {
				if named++; !slices.Contains(exist, "`"+span+"`") {
					t.Errorf("%s: INFO has no field %s", path, span)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no page names a field")
	}
}

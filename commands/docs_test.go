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
	"gothrottle/funnel"
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

// between returns what is between two texts, "" if there is no first one.
func (p page) between(begin, end string) page {
	_, text, _ := strings.Cut(string(p), begin)
	text, _, _ = strings.Cut(text, end)
	return page(text)
}

// section returns what is under a heading, up to the next one.
func (p page) section(t *testing.T, heading string) page {
	t.Helper()
	text := p.between("\n## "+heading+"\n", "\n## ")
	if text == "" {
		t.Errorf("no section %q", heading)
	}
	return "\n" + text
}

// prose returns the text in one line, so that a sentence may go over several.
func (p page) prose() page { return page(strings.Join(strings.Fields(string(p)), " ")) }

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

// column returns a column of the tables whose first heading is given, a cell per line.
func (p page) column(heading string, i int) (cells page) {
	for _, row := range p.tables(heading) {
		cells += page(row[i] + "\n")
	}
	return cells
}

// spans returns what is between backquotes.
func (p page) spans() []string { return p.found("`([^`]*)`") }

// found returns what a pattern's group matches.
func (p page) found(pattern string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(p), -1) {
		all = append(all, m[1])
	}
	return all
}

// same compares what a page has with what there is, in any order.
func same(t *testing.T, what string, documented, exist []string) {
	t.Helper()
	slices.Sort(documented)
	slices.Sort(exist)
	if len(exist) == 0 || !slices.Equal(documented, slices.Compact(exist)) {
		t.Errorf("%s: the page has\n%s\nthe code has\n%s", what, strings.Join(documented, "\n"), strings.Join(exist, "\n"))
	}
}

const reference = "../docs/commands.md"

// The lists of the pages have just those things that the code has.
func TestDocs_lists(t *testing.T) {
	text, security, load := readPage(t, reference), readPage(t, "../SECURITY.md"), readPage(t, "../cgo/load.c")
	var twins, writers, names []string
	for _, c := range commands.Table {
		if strings.HasSuffix(c.Name, "_RO") {
			twins = append(twins, c.Name)
		}
		if c.Writes() {
			writers = append(writers, strings.ToLower(c.Name))
		}
		if strings.Contains(c.Name, ".THROTTLE") {
			names = append(names, "`"+c.InfoName()+"` of "+c.Name)
		}
	}
	arguments, parsed := text.section(t, "Load arguments"), load.between("static int parse_load_args(", "\n}\n")
	for what, lists := range map[string]struct{ documented, exist []string }{
		"read-only commands": {text.between("\n## Read-only commands\n", " reply what").spans(), twins},
		"fields of GO.INFO": {text.section(t, "GO.INFO").column("field", 0).spans(),
			readPage(t, "info.go").found(`reply(?:Pair|Name)\("(\w+)"`)},
		"fields of a hash's first cell": {text.section(t, "State").column("field", 0).spans(), []string{"0", "1", "2", "3", "128"}},
		"commands in INFO":              {text.section(t, "INFO gothrottle").prose().found("(`\\w+` of [A-Z]+\\.[A-Z_]+)"), names},
		"load arguments":                {arguments.column("argument", 0).spans(), parsed.found(`strcasecmp\(name, "(.*?)"\)`)},
		"values of load arguments":      {arguments.column("argument", 1).spans(), parsed.found(`strcasecmp\(value, "(.*?)"\)`)},
		"commands to deny":              {security.prose().between("Deny them by name: `", "`").found(`-(\S+)`), writers},
		"commands to permit":            {security.column("permitted", 0).found("`\\+(\\S+)`"), writers},
		"commands not to rename": {readPage(t, "../docs/operating.md").prose().between("Don't rename ", ":").spans(),
			load.between("needed[] = {", "};").found(`"([A-Z]+)"`)},
	} {
		same(t, what, lists.documented, lists.exist)
	}
}

// Every command but the read-only twins, which have one section, has its section: synopsis and summary as in the row.
// Every section that is named like a command is of a command. The section's table has only arguments of the command, and some
// table has each; a keyword may be explained beside the tables.
func TestReference_sections(t *testing.T) {
	text, onePage := readPage(t, reference), readPage(t, "../docs/one-page.md")
	explained, taken, besides := map[string]bool{}, map[string]bool{}, regexp.MustCompile("(?m)^    .*$").ReplaceAllString(string(text), "")
	for _, c := range commands.Table {
		if strings.HasSuffix(c.Name, "_RO") {
			continue
		}
		section := text.section(t, c.Name)
		for _, want := range []string{"\n    " + c.Syntax() + "\n", "\n" + c.Summary + "\n"} {
			if !strings.Contains(string(section), want) {
				t.Errorf("%s: the reference lacks %q", c.Name, want)
			}
		}
		if !strings.Contains(string(onePage), "\n"+c.Syntax()+"\n") {
			t.Errorf("docs/one-page.md lacks %q", c.Syntax())
		}
		rows := argRows(c.Args)
		for _, row := range rows {
			taken[row] = true
		}
		for _, cells := range section.tables("argument") {
			row := strings.Join(cells, " | ")
			if explained[row] = true; !slices.Contains(rows, row) {
				t.Errorf("%s: the reference explains %q, which isn't an argument", c.Name, row)
			}
		}
	}
	for row := range taken {
		name := strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune("` ", r) })[0]
		if keyword := strings.HasSuffix(row, " | "); !explained[row] && !(keyword && strings.Contains(besides, name)) {
			t.Errorf("the reference lacks the argument %q", row)
		}
	}
	for _, heading := range text.found(`(?m)^## ([A-Z]+\.\S+)$`) {
		if commands.Find(heading) == nil {
			t.Errorf("the reference has a section for %s, which isn't a command", heading)
		}
	}
}

// argRows returns how the reference explains arguments.
func argRows(args []commands.Arg) (rows []string) {
	for _, a := range args {
		if a.Type == commands.ArgOneOf && a.Bounds == "" {
			rows = append(rows, argRows(a.Sub)...)
			continue
		}
		name := a.Name
		if a.Type == commands.ArgBlock {
			name = strings.TrimSpace(a.Token + commands.Synopsis(a.Sub))
		}
		rows = append(rows, strings.Join([]string{"`" + name + "`", a.Summary, a.Bounds}, " | "))
		rows = append(rows, argRows(a.Sub)...)
	}
	return rows
}

// The sections name the bounds of the code.
func TestReference_numbers(t *testing.T) {
	for heading, numbers := range commands.DocumentedNumbers {
		prose := readPage(t, reference).section(t, heading).prose()
		for _, n := range numbers {
			if !regexp.MustCompile(`(^|[^0-9.])` + fmt.Sprint(n) + `([^0-9]|$)`).MatchString(string(prose)) {
				t.Errorf("%s: the reference lacks %d", heading, n)
			}
		}
	}
}

// The table of errors has errors that need an explanation, and no text that isn't one. A row with a placeholder in angle brackets
// is a family.
func TestReference_errors(t *testing.T) {
	exist := ""
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		exist += "`" + e.Text() + "`\n"
	}
	rows := readPage(t, reference).section(t, "Errors").column("text", 0).found("(.*)\n")
	for _, row := range rows {
		family := regexp.MustCompile(`<(limiter|type)>`).ReplaceAllString(regexp.QuoteMeta(row), ".+")
		if members := len(page(exist).found("(?m)^(" + family + ")$")); members == 0 || members > 1 && !strings.Contains(family, ".+") {
			t.Errorf("the reference has %s, which are %d errors", row, members)
		}
	}
	if len(rows) < 5 {
		t.Errorf("the reference has %d errors", len(rows))
	}
}

// The figures of the README are those of docs/benchmarks.md, of the server that is first there.
func TestDocs_figures(t *testing.T) {
	cpu := readPage(t, "../docs/benchmarks.md").section(t, "CPU")
	measured := map[string]string{}
	for _, row := range cpu.tables("") {
		n, err := strconv.ParseFloat(row[1], 64)
		if measured[row[0]] = fmt.Sprintf("%.1f", n); err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
	}
	costs := readPage(t, "../README.md").section(t, "What it costs")
	for _, want := range []string{
		fmt.Sprintf("in µs, %s on a small virtual machine", cpu.found(`\n\|  \| (\w+ \d+\.\d+)\.`)[0]),
		fmt.Sprintf("| `GO.THROTTLE`, admitted | %s | GCRA in Lua, admitted | %s |\n", measured["GO.THROTTLE"], measured["GCRA in Lua"]),
		fmt.Sprintf("| `GO.THROTTLE`, denied, one key | %s | redis-cell 0.5.0, denied, one key | %s |\n",
			measured["GO.THROTTLE denied"], measured["CL.THROTTLE of redis-cell denied"]),
	} {
		if !strings.Contains(string(costs), want) || len(costs.tables("gothrottle")) != 2 {
			t.Errorf("the README lacks %q, or has other rows", want)
		}
	}
}

// The reference's table of ALIGN and the choice of a day end where they say: at midnight of the zone, and on Mondays.
func TestDocs_calendar(t *testing.T) {
	rows := readPage(t, reference).section(t, "GO.QUOTA").tables("command")
	for _, row := range readPage(t, "../docs/choosing.md").tables("you want") {
		if strings.Contains(row[0], "midnight") {
			rows = append(rows, []string{row[1], "days in UTC"})
		}
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		m := regexp.MustCompile(`^(?:days|weeks from (\w+)) in UTC([+-]\d+)?$`).FindStringSubmatch(row[1])
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

// Guesses every second for six hours, as docs/recipes.md counts them: the calls of a page are too few to show it.
func TestDocs_growingLockout(t *testing.T) {
	section := readPage(t, "../docs/recipes.md").section(t, "Lockouts that grow")
	for call, want := range map[string]string{
		section.found(`> (GO\.ALL .*)`)[0]:         section.found(`gets (\d+) guesses in six hours`)[0],
		"GO.THROTTLE login:bob 4 5 5m LOCKOUT 15m": section.found(`alone\s+allow (\d+)\.`)[0],
	} {
		admitted, server := 0, memory.NewServer()
		for second := range 6 * 3600 {
			reply, err := server.Do(corpus.Epoch+funnel.Micros(second)*1_000_000, strings.Fields(call)...)
			if err == nil && reply.([]any)[0] == int64(0) {
				admitted++
			}
		}
		if strconv.Itoa(admitted) != want {
			t.Errorf("%s: %d, not %s", call, admitted, want)
		}
	}
}

// Every link within the repository leads to a file, and to a heading of it.
func TestDocs_links(t *testing.T) {
	pages, _ := filepath.Glob("../*.md")
	more, _ := filepath.Glob("../docs/*.md")
	links := 0
	for _, path := range append(pages, more...) {
		for _, link := range readPage(t, path).found(`\]\(([^)\s]+)\)`) {
			if strings.Contains(link, "://") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(link, "#")
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
	for _, heading := range p.found(`(?m)^#+ (.*)$`) {
		name := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(heading), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// Each field of INFO that a page names is in the reference.
func TestDocs_fields(t *testing.T) {
	exist, named := readPage(t, reference).section(t, "INFO gothrottle").column("field", 0).spans(), 0
	for _, path := range []string{"../docs/operating.md", "../SECURITY.md", "../docs/stability.md", "../docs/migrating.md"} {
		for _, field := range readPage(t, path).prose().found("`(gothrottle_[^`]*)`") {
			if named++; !slices.Contains(exist, field) {
				t.Errorf("%s: INFO has no field %s", path, field)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a field")
	}
}

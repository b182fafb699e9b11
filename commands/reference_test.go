package commands

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
)

func reference(t *testing.T) page { return readPage(t, "../docs/commands.md") }

// Every command has its section: synopsis, summary, complexity, version and flags as in the row.
// Every section that is named like a command is of a command.
func TestReference_sections(t *testing.T) {
	text := reference(t)
	for _, c := range Table {
		section := string(text.section(t, c.Name))
		for _, want := range []string{
			"\n    " + c.Syntax() + "\n",
			"\n" + c.Summary + "\n",
			"\nComplexity: " + c.Complexity + ". Since " + c.Since + ". Flags: " + c.Flags + ".\n",
		} {
			if !strings.Contains(section, want) {
				t.Errorf("%s: the reference lacks %q", c.Name, want)
			}
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^## ([A-Z]+\.\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if findCommand(heading[1]) == nil {
			t.Errorf("the reference has a section for %s, which is no command", heading[1])
		}
	}
}

// Every argument is explained, with its bounds, in the section of a command that takes it. No
// section explains anything else.
func TestReference_arguments(t *testing.T) {
	text := reference(t)
	explained := map[string]bool{}
	for _, c := range Table {
		taken := argRows(c)
		for _, cells := range text.section(t, c.Name).tables("argument") {
			row := strings.Join(cells, " | ")
			explained[row] = true
			if !slices.Contains(taken, row) {
				t.Errorf("%s: the reference explains %q, which is no argument", c.Name, row)
			}
		}
	}
	for _, c := range Table {
		for _, row := range argRows(c) {
			if !explained[row] {
				t.Errorf("%s: the reference lacks %q", c.Name, row)
			}
		}
	}
}

// argRows returns how the reference explains the arguments of a command.
func argRows(c Command) (rows []string) {
	eachArg(c.Args, func(a Arg) {
		name := a.Name
		if a.Type == ArgBlock {
			name = strings.TrimSpace(a.Token + synopsis(a.Sub))
		}
		rows = append(rows, strings.Join([]string{"`" + name + "`", a.Summary, a.Bounds}, " | "))
	})
	return rows
}

// The numbers in the reference's sentences are those of the code.
func TestReference_numbers(t *testing.T) {
	text := reference(t)
	for heading, sentences := range map[string][]string{
		"GO.THROTTLE": {fmt.Sprintf("That time is at most %d years.", maxPeriod/(365*86400*funnel.Second))},
		"GO.WINDOW": {
			fmt.Sprintf("with a limit up to %d every call has its entry", funnel.WindowParts),
			fmt.Sprintf("there are at most %d entries: the calls in the same %dth part of a period share one", funnel.WindowParts+1, funnel.WindowParts),
			fmt.Sprintf("up to 1/%d of a period longer", funnel.WindowParts),
			fmt.Sprintf("up to %d units may be in use", int64(funnel.MaxInUse)),
			fmt.Sprintf("at most %d entries that do not count any more", clearMost),
			fmt.Sprintf("A window of more than %d entries that is full again stays", clearMost),
		},
		"GO.LEASE": {fmt.Sprintf("removes at most %d lapsed slots", clearMost)},
		"GO.ALL":   {fmt.Sprintf("removes up to %d lapsed slots", clearMost)},
		"Effects":  {fmt.Sprintf("`ZREM` of at most %d lapsed slots", clearMost)},
		"Errors":   {fmt.Sprintf("cut at %d bytes", maxErrorWord)},
		"State": {
			fmt.Sprintf("Cell i, from 0 to %d, has the fields %di to %di + %d, and %d + i.", MaxCells-1, fieldLocked, fieldLocked, fieldCount, fieldLocked*MaxCells),
			fmt.Sprintf("The second cell has the fields `%d` to `%d` and `%d`, the third `%d` to `%d` and `%d`", 4, 7, 129, 8, 11, 130),
			fmt.Sprintf("A member is the byte %#02x and then, with colons between, these numbers of base %d:", windowPrefix, base),
			fmt.Sprintf("A member is the byte %#02x and the id.", leasePrefix),
			fmt.Sprintf("a string of %d decimal digits: a TAT in ns, not before %s, which is 10^18 ns", AdoptedLen,
				time.Unix(0, minTAT).UTC().Format(time.DateOnly)),
			fmt.Sprintf("GO.QUOTA looks only at strings of %d to %d bytes, GO.THROTTLE only at strings of %d bytes.", MinQuotaLen, MaxQuotaLen, AdoptedLen),
			"at most a quarter of the period, or 1 s if that is longer, after it",
		},
	} {
		prose := text.section(t, heading).prose()
		prose = strings.NewReplacer("0x1 ", "0x01 ", "0x2 ", "0x02 ").Replace(prose)
		for _, sentence := range sentences {
			if !strings.Contains(prose, sentence) {
				t.Errorf("%s: the reference lacks %q", heading, sentence)
			}
		}
	}
}

// The fields of a hash and the parts of the other states are as the State tables say, and the
// section's examples are what calls store.
func TestReference_state(t *testing.T) {
	section := reference(t).section(t, "State")
	fields := section.tables("field")
	for i, want := range [MaxFields]string{fieldTAT: "TAT", fieldPeriod: "the period", fieldFrac: "the fraction", fieldCount: "the count", fieldLocked: "the end of the lockout"} {
		if len(fields) != MaxFields || fields[i][0] != "`"+fieldName(i, 0)+"`" || !strings.HasPrefix(fields[i][1], want) {
			t.Errorf("field %d, %s: the reference has %q", i, want, fields)
		}
	}

	examples := regexp.MustCompile(`With (\d+) per (\d+) s [^.]*?(-?\d+)(?:, and field .(\d). is (\d+))?\.`).FindAllStringSubmatch(section.prose(), -1)
	if len(examples) != 3 {
		t.Errorf("the reference has %d examples of rates", len(examples))
	}
	for _, e := range examples {
		s := newStore(t)
		s.must(fmt.Sprintf("GO.THROTTLE k 9 %s %s", e[1], e[2]))
		stored := s.keys["k"].fields
		if stored[fieldName(fieldPeriod, 0)] != e[3] || stored[e[4]] != e[5] || len(stored) != 2 && e[4] == "" {
			t.Errorf("%q, but the fields are %v", e[0], stored)
		}
	}

	parts := section.tables("part")
	s := newStore(t)
	s.must("GO.QUOTA k 5 60 3")
	used, end, _ := strings.Cut(s.keys["k"].text, "@")
	if len(parts) != 2 || parts[0][0] != "used" || parts[1][0] != "end" || used != "3" || !strings.Contains(string(section), "a string, `used@end`") ||
		!strings.Contains(parts[1][1], fmt.Sprintf("in ns since the Unix epoch: %d digits", len(end))) {
		t.Errorf("%q, but the string is %q", parts, s.keys["k"].text)
	}

	numbers := section.tables("number")
	for range 2 {
		s.must("GO.WINDOW w 50 60 20")
	}
	s.must("GO.WINDOW w 50 60 -3")
	member := strings.Split(s.keys["w"].set[0].Member[1:], ":")
	if len(numbers) != 3 || numbers[0][0] != "total" || numbers[1][0] != "units" || numbers[2][0] != "in use" ||
		!slices.Equal(member, []string{"14", "14", "11"}) { // 40, 40 and 37
		t.Errorf("%q, but the member is %q", numbers, member)
	}
}

// A reply has as many integers as its table has rows.
func TestReference_replies(t *testing.T) {
	text := reference(t)
	for name, call := range map[string]string{"GO.THROTTLE": "GO.THROTTLE k 1 1 1", "GO.LEASE": "GO.LEASE k 1 1 a"} {
		rows := text.section(t, name).tables("#")
		if got := newStore(t).must(call); len(got) != len(rows) {
			t.Errorf("%s: %v, the reference has %d integers", name, got, len(rows))
		}
		for i, row := range rows {
			if row[0] != fmt.Sprint(i+1) {
				t.Errorf("%s: integer %d is numbered %s", name, i+1, row[0])
			}
		}
	}
	// The example of two callers that disagree on a window's period.
	prose := text.section(t, "GO.WINDOW").prose()
	calls := regexp.MustCompile("After `(.*?)` the limiter is full; `(.*?)`, sent a second later, is admitted").FindStringSubmatch(prose)
	if calls == nil {
		t.Fatal("the reference has no example of two periods")
	}
	s := newStore(t)
	if got := s.must(calls[1]); got[2] != 0 {
		t.Errorf("%s: %v is not full", calls[1], got)
	}
	s.now += 1_000_000
	if got := s.must(calls[2]); got[0] != 0 || got[2] != 4 {
		t.Errorf("%s: %v", calls[2], got)
	}
}

// The table of errors has every error and no other.
func TestReference_errors(t *testing.T) {
	documented := []string{}
	for _, row := range reference(t).section(t, "Errors").tables("text") {
		documented = append(documented, strings.Trim(row[0], "`"))
	}
	exist := []string{}
	for e := NoError + 1; e < NumErrors; e++ {
		if e != ErrArity { // the server's own text, with the command's name
			exist = append(exist, e.Text())
		}
	}
	same(t, "errors", documented, exist)
}

// The table of INFO has the fields that load.c adds.
func TestReference_info(t *testing.T) {
	section := reference(t).section(t, "INFO gothrottle")
	_, source, _ := strings.Cut(loadC(t), "static void info(")
	source, _, _ = strings.Cut(source, "\n}\n")
	exist := []string{}
	for _, m := range regexp.MustCompile(`InfoAddField\w+\(ctx, "(\w+)"`).FindAllStringSubmatch(source, -1) {
		exist = append(exist, "`gothrottle_"+m[1]+"`")
	}
	for _, m := range regexp.MustCompile(`\{"(\w+)", (?:c->|n\[)\w+\]?\}`).FindAllStringSubmatch(source, -1) {
		exist = append(exist, "`gothrottle_<c>_"+m[1]+"`")
	}
	documented := []string{}
	for _, row := range section.tables("field") {
		documented = append(documented, row[0])
	}
	same(t, "fields of INFO", documented, exist)

	// The rule of <c> gives the name of every command.
	rule := regexp.MustCompile("without `(.*?)` and with `(.*?)` for a dot").FindStringSubmatch(section.prose())
	if rule == nil {
		t.Fatal("the reference does not tell the names of commands in INFO")
	}
	examples := regexp.MustCompile("`(\\w+)` of ([A-Z]+\\.[A-Z_]+)").FindAllStringSubmatch(section.prose(), -1)
	for i := range Table {
		name := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(Table[i].Name), rule[1]), ".", rule[2])
		if got := Table[i].InfoName(); got != name {
			t.Errorf("%s is %s in INFO, by the reference's rule it is %s", Table[i].Name, got, name)
		}
	}
	for _, e := range examples {
		if c := findCommand(e[2]); c == nil || c.InfoName() != e[1] {
			t.Errorf("the reference says %s", e[0])
		}
	}
	if len(examples) != 3 {
		t.Errorf("the reference has %d examples of names in INFO", len(examples))
	}
}

// The reference explains each field of GO.INFO's replies, and no other.
func TestReference_goInfo(t *testing.T) {
	source, err := os.ReadFile("info.go")
	if err != nil {
		t.Fatal(err)
	}
	exist, documented := []string{}, []string{}
	for _, m := range regexp.MustCompile(`reply(?:Pair|Name)\("(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if name := "`" + m[1] + "`"; !slices.Contains(exist, name) {
			exist = append(exist, name)
		}
	}
	section := reference(t).section(t, "GO.INFO")
	for _, row := range section.tables("field") {
		documented = append(documented, row[0])
	}
	same(t, "fields of GO.INFO", documented, exist)
	if !strings.Contains(section.prose(), fmt.Sprintf("If more than %d slots are held, it has the %d that lapse last.", maxHolders, maxHolders)) {
		t.Error("the reference does not say how many holders GO.INFO lists")
	}
}

// The table of load arguments has the names and values that load.c takes.
func TestReference_loadArguments(t *testing.T) {
	source := loadC(t)
	_, names, _ := strings.Cut(source, "static int parse_load_args(")
	names, _, _ = strings.Cut(names, "\n}\n")
	_, values, _ := strings.Cut(source, "static const char *parse_load_arg(")
	values, _, _ = strings.Cut(values, "\n}\n")
	exist := []string{}
	for _, m := range regexp.MustCompile(`strcasecmp\(name, "(.*?)"\)`).FindAllStringSubmatch(names, -1) {
		exist = append(exist, "`"+m[1]+"`")
	}
	taken := []string{}
	for _, m := range regexp.MustCompile(`return "(\S+) or (\S+)";`).FindAllStringSubmatch(values, -1) {
		taken = append(taken, "`"+m[1]+"`, `"+m[2]+"`")
		for _, value := range m[1:] {
			if !strings.Contains(values, `(value, "`+value+`")`) && !strings.Contains(source, `_name[] = "`+value+`"`) {
				t.Errorf("load.c takes no value %s", value)
			}
		}
	}
	documentedNames, documentedValues := []string{}, []string{}
	for _, row := range reference(t).section(t, "Load arguments").tables("argument") {
		documentedNames = append(documentedNames, row[0])
		documentedValues = append(documentedValues, row[1])
	}
	same(t, "load arguments", documentedNames, exist)
	same(t, "values of load arguments", documentedValues, taken)
}

func loadC(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../cgo/load.c")
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// same compares what the reference has with what there is, in any order.
func same(t *testing.T, what string, documented, exist []string) {
	t.Helper()
	slices.Sort(documented)
	slices.Sort(exist)
	if len(exist) == 0 || !slices.Equal(documented, exist) {
		t.Errorf("%s: the reference has\n%s\nthe code has\n%s", what, strings.Join(documented, "\n"), strings.Join(exist, "\n"))
	}
}

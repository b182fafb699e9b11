package commands_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

// These tests hold docs/commands.md to the code.

const reference = "../docs/commands.md"

// Every command has its section: synopsis, summary, complexity, version and flags as in the row. The read-only twins have one
// section, and differ from their commands as it says. Every section that is named
// like a command is of a command. The section explains only arguments of the command, and some section explains each.
func TestReference_sections(t *testing.T) {
	text := readPage(t, reference)
	explained, taken, twins := map[string]bool{}, map[string]bool{}, []string{}
	for _, c := range commands.Table {
		if name, isTwin := strings.CutSuffix(c.Name, "_RO"); isTwin {
			same(t, c.Name, []string{c.Summary, c.Complexity, c.Since, c.Flags, c.Syntax()}, twinRow(commands.Find(name)))
			twins = append(twins, c.Name)
			continue
		}
		section := text.section(t, c.Name)
		for _, want := range []string{
			"\n    " + c.Syntax() + "\n",
			"\n" + c.Summary + "\n",
			"\nComplexity: " + c.Complexity + ". Since " + c.Since + ". Flags: " + c.Flags + ".\n",
		} {
			if !strings.Contains(string(section), want) {
				t.Errorf("%s: the reference lacks %q", c.Name, want)
			}
		}
		rows := argRows(c.Args)
		for _, row := range rows {
			taken[row] = true
		}
		for _, cells := range section.tables("argument") {
			row := strings.Join(cells, " | ")
			if explained[row] = true; !slices.Contains(rows, row) {
				t.Errorf("%s: the reference explains %q, which is no argument", c.Name, row)
			}
		}
	}
	twinsText, _, _ := strings.Cut(text.section(t, "Read-only commands").prose(), " reply what ")
	same(t, "read-only commands", spans(twinsText), twins)
	for row := range taken {
		if !explained[row] {
			t.Errorf("the reference lacks the argument %q", row)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^## ([A-Z]+\.\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if commands.Find(heading[1]) == nil {
			t.Errorf("the reference has a section for %s, which isn't a command", heading[1])
		}
	}
}

// twinRow returns the row of a command's read-only twin, as the reference describes them all at once.
func twinRow(c *commands.Command) []string {
	return []string{"Replies what " + c.Name + " would reply; changes nothing.", c.Complexity, c.Since,
		strings.Replace(c.Flags, "write deny-oom", "readonly", 1), strings.Replace(c.Syntax(), c.Name, c.Name+"_RO", 1)}
}

// argRows returns how the reference explains arguments.
func argRows(args []commands.Arg) (rows []string) {
	for _, a := range args {
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
			if !regexp.MustCompile(`(^|[^0-9.])` + fmt.Sprint(n) + `([^0-9]|$)`).MatchString(prose) {
				t.Errorf("%s: the reference lacks %d", heading, n)
			}
		}
	}
}

// The table of a hash has the names of the first cell's fields.
func TestReference_state(t *testing.T) {
	fields := readPage(t, reference).section(t, "State").tables("field")
	for i, want := range [commands.MaxFields]string{"TAT", "the period", "the fraction", "the count", "the end of the lockout"} {
		if len(fields) != commands.MaxFields || fields[i][0] != "`"+memory.FieldName(0, i)+"`" || !strings.HasPrefix(fields[i][1], want) {
			t.Errorf("field %d, %s: the reference has %q", i, want, fields)
		}
	}
}

// The tables of errors have every error and no other. A row with a placeholder in angle brackets, other than those of the texts
// themselves, is a family.
func TestReference_errors(t *testing.T) {
	exist := []string{}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		if e != commands.ErrArity { // the server's own text, with the command's name
			exist = append(exist, "`"+e.Text()+"`")
		}
	}
	documented := []string{}
	for _, row := range readPage(t, reference).section(t, "Errors").column("text", 0) {
		family := regexp.MustCompile(`<(argument|examples|least|limiter|most|option|type)>`).ReplaceAllString(regexp.QuoteMeta(row), ".+")
		members := slices.DeleteFunc(slices.Clone(exist), func(text string) bool { return !regexp.MustCompile("^" + family + "$").MatchString(text) })
		documented = append(documented, members...)
		if len(members) == 0 || len(members) > 1 && !strings.Contains(family, ".+") {
			t.Errorf("the reference has %s, which are %d errors", row, len(members))
		}
	}
	same(t, "errors", documented, exist)
}

// The names of commands in INFO are as the reference says.
func TestReference_info(t *testing.T) {
	section := readPage(t, reference).section(t, "INFO gothrottle")
	examples := regexp.MustCompile("`(\\w+)` of ([A-Z]+\\.[A-Z_]+)").FindAllStringSubmatch(section.prose(), -1)
	for _, e := range examples {
		if c := commands.Find(e[2]); c == nil || c.InfoName() != e[1] {
			t.Errorf("the reference says %s", e[0])
		}
	}
	if len(examples) != 3 {
		t.Errorf("the reference has %d examples of names in INFO", len(examples))
	}
}

// The reference explains each field of GO.INFO's replies, and no other.
func TestReference_goInfo(t *testing.T) {
	exist := found(string(readPage(t, "info.go")), `reply(?:Pair|Name)\("(\w+)"`, "`%s`")
	slices.Sort(exist)
	same(t, "fields of GO.INFO", readPage(t, reference).section(t, "GO.INFO").column("field", 0), slices.Compact(exist))
}

// The table of load arguments has the names and values that load.c takes.
func TestReference_loadArguments(t *testing.T) {
	section := readPage(t, reference).section(t, "Load arguments")
	names := found(function(t, "../cgo/load.c", "static int parse_load_args("), `strcasecmp\(name, "(.*?)"\)`, "`%s`")
	same(t, "load arguments", section.column("argument", 0), names)
	values := function(t, "../cgo/load.c", "static const char *parse_load_arg(")
	taken := regexp.MustCompile(`return "(\S+) or (\S+)";`).ReplaceAllString(values, "return \"`$1`, `$2`\";")
	same(t, "values of load arguments", section.column("argument", 1), found(taken, "return \"(`.*`)\";", "%s"))
	for _, value := range spans(strings.Join(section.column("argument", 1), " ")) {
		if !strings.Contains(values, `(value, "`+value+`")`) && !strings.Contains(string(readPage(t, "../cgo/load.c")), `_name[] = "`+value+`"`) {
			t.Errorf("load.c takes no value %s", value)
		}
	}
}

// docs/operating.md lists the commands that must not be renamed: those that load.c looks for.
func TestOperating_neededCommands(t *testing.T) {
	_, source, _ := strings.Cut(string(readPage(t, "../cgo/load.c")), "needed[] = {")
	source, _, _ = strings.Cut(source, "};")
	_, text, _ := strings.Cut(readPage(t, "../docs/operating.md").prose(), "Do not rename ")
	text, _, _ = strings.Cut(text, ":")
	same(t, "commands that are needed", spans(text), found(source, `"([A-Z]+)"`, "%s"))
}

// function returns the text of a C function.
func function(t *testing.T, path, begin string) string {
	_, source, _ := strings.Cut(string(readPage(t, path)), begin)
	source, _, _ = strings.Cut(source, "\n}\n")
	return source
}

// found returns what a pattern's group matches in a text, each in a format.
func found(text, pattern, format string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, fmt.Sprintf(format, m[1]))
	}
	return all
}

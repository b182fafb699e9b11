package commands

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The reference says what the table says.
func TestReference(t *testing.T) {
	file, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	for _, c := range Table {
		_, section, found := strings.Cut(text, "\n## "+c.Name+"\n")
		if !found {
			t.Errorf("no section for %s", c.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, want := range []string{
			"\n    " + c.Syntax() + "\n",
			"\n" + c.Summary + "\n",
			"Complexity: " + c.Complexity + ". Since " + c.Since + ". Flags: " + c.Flags + ".",
		} {
			if !strings.Contains(section, want) {
				t.Errorf("%s: the reference lacks %q", c.Name, want)
			}
		}
		args := c.Args
		for _, a := range c.Args {
			args = append(args[:len(args):len(args)], a.Sub...)
		}
		for _, a := range args {
			if a.Type == ArgBlock {
				continue
			}
			if row := "| `" + a.Name + "` | " + a.Summary + " |"; !strings.Contains(text, row) {
				t.Errorf("%s: the reference lacks %q", c.Name, row)
			}
		}
	}

	_, section, _ := strings.Cut(text, "\n## Errors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Z]+ .*?)` \\|").FindAllStringSubmatch(section, -1) {
		documented[match[1]] = true
	}
	for e := NoError + 1; e < NumErrors; e++ {
		if e == ErrArity { // the server's own text, with the command's name
			continue
		}
		if !documented[e.Text()] {
			t.Errorf("the reference lacks the error %q", e.Text())
		}
		delete(documented, e.Text())
	}
	for text := range documented {
		t.Errorf("the reference has an error that does not exist: %q", text)
	}
}

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gothrottle/cgo"
)

// A new command takes four things: its file, its row in the table, its section in the reference, and
// its line in the changelog. This test adds a command so, to a copy of the sources, and runs the
// tests there.

const toyFile = `package commands

// GO.TOY takes toys from a box. The box is empty after the first call, for a minute.
var toy = Command{
	Name:       "GO.TOY",
	Summary:    "Takes toys from a box.",
	Complexity: "O(1)",
	Since:      "VERSION",
	Flags:      writeFast,
	Arity:      -3,
	Args:       []Arg{argKey, {Name: "toys", Type: ArgInteger, Bounds: "1 to 9", Summary: "How many toys."}, argMS},
	State:      KindString,
	Handler:    runToy,
	Sample:     Sample{"GO.TOY KEY 5", "5", "0", "SET"},
	Wrong:      []WrongCall{{"GO.TOY KEY x", ErrLimitNotInteger}, {"GO.TOY KEY 5 UPTO", ErrUnknownOption}},
}

func runToy(c *Call) ErrorCode {
	toys, err := intArg(c.Args[1], 1, 9, ErrLimitNotInteger, ErrLimitRange)
	if err != NoError {
		return err
	}
	opts, _, err := c.options(2, optMS)
	if err != NoError {
		return err
	}
	k := &c.Keys[0]
	if k.Kind != KindAbsent && k.Kind != KindString {
		return ErrWrongType
	}
	c.Shape = Integer
	if k.Kind == KindString {
		c.count(true, true)
		return NoError
	}
	c.count(true, false)
	c.Reply[0] = toys
	k.Becomes, k.NewLen = String, int32(copy(k.NewText[:], "empty"))
	k.expire(c.Now.Nanos()+60*opts.unit(), 60*opts.unit())
	return NoError
}
`

const toySection = `
## GO.TOY

    GO.TOY key toys [MS]

Takes toys from a box.

| argument | meaning | bounds |
|---|---|---|
| ` + "`toys`" + ` | How many toys. | 1 to 9 |

Complexity: O(1). Since VERSION. Flags: write deny-oom fast.
`

func TestNewCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module again")
	}
	folder := copySources(t)
	change(t, folder, "commands/toy.go", func(string) string { return strings.Replace(toyFile, "VERSION", cgo.Version, 1) })
	change(t, folder, "commands/table.go", func(old string) string {
		const start = "var Table = []Command{\n"
		return strings.Replace(old, start, start+"\ttoy,\n", 1)
	})
	if out, err := goIn(folder, "test", "./commands/"); err == nil || !strings.Contains(out, `no section "GO.TOY"`) {
		t.Fatalf("without its section: %v\n%s", err, out)
	}
	change(t, folder, "docs/commands.md", func(old string) string {
		return old + strings.Replace(toySection, "VERSION", cgo.Version, 1)
	})
	if out, err := goIn(folder, "test", "-run", "TestVersion", "./module/"); err == nil || !strings.Contains(out, "the changelog does not name the command") {
		t.Fatalf("without its line in the changelog: %v\n%s", err, out)
	}
	// The module's version may be a release by now: the line stands in every section.
	const line = "\n- `GO.TOY` takes toys from a box.\n"
	change(t, folder, "CHANGELOG.md", func(old string) string { return strings.ReplaceAll(old, "\n## ", line+"\n## ") + line })
	for _, words := range [][]string{
		{"vet", "./commands/...", "./cgo/...", "./module/..."},
		{"test", "-short", "./commands/...", "./cgo/...", "./module/..."},
	} {
		if out, err := goIn(folder, words...); err != nil {
			t.Fatalf("go %s: %v\n%s", words[0], err, out)
		}
	}
}

// copySources copies all but what git and make keep. It returns the copy's folder.
func copySources(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".git" || path == "build/out":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// change rewrites a file, which may be new.
func change(t *testing.T, folder, name string, edit func(old string) string) {
	t.Helper()
	path := filepath.Join(folder, name)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(edit(string(old))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func goIn(folder string, words ...string) (out string, err error) {
	command := exec.Command("go", words...)
	command.Dir = folder
	b, err := command.CombinedOutput()
	return string(b), err
}

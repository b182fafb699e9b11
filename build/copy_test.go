package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests change a copy of the sources.

// copySources copies what git and make do not keep. It returns the copy's folder.
func copySources(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the sources again")
	}
	folder := t.TempDir()
	runIn(t, "..", "sh", "-c", `tar -c --exclude=./.git --exclude=./build/out --exclude=node_modules . | tar -x -C "$1"`, "sh", folder)
	return folder
}

// tryIn runs a command in a folder.
func tryIn(folder string, words ...string) (string, error) {
	command := exec.Command(words[0], words[1:]...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	return string(out), err
}

func runIn(t *testing.T, folder string, words ...string) string {
	t.Helper()
	out, err := tryIn(folder, words...)
	require.NoError(t, err, "%q: %s", words, out)
	return out
}

// edit replaces a text of a file, once.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from, path)
	write(t, path, strings.Replace(string(text), from, to, 1))
}

const toyCalls = `# GO.TOY is a second GO.QUOTA.

@sample
> GO.TOY k 5 60  0 5 4 -1 60
  writes SET k 1@T+60s/ns PXAT T+75s
> GO.TOY k x 60  ERR limit is not an integer
`

const toyOptions = `
@replies
> GO.TOY k 5 60 1 MS UPTO ALIGN +00:00  0 5 4 -1 60 1
> GO.TOY k 5 60 9 FORCE MS              0 5 0 -1 60
> GO.TOY k 5 60 RAISE MS                0 5 0 -1 60 0
`

// A new command is a file, a row of the table, a section of the reference, a transcript and a line of the changelog. If
// it writes, SECURITY.md names it, too. The tests name what is missing.
func TestNewCommand(t *testing.T) {
	folder, version, reference, file := copySources(t), moduleVersion(t), read(t, "docs/commands.md"), read(t, "commands/quota.go")
	path := func(name string) string { return filepath.Join(folder, name) }
	since := find(t, file, `Since: +"(.*)"`)
	toy := strings.NewReplacer("var quota", "var toy", "GO.QUOTA", "GO.TOY", `"`+since+`"`, `"`+version+`"`)
	write(t, path("commands/toy.go"), toy.Replace("package commands\n"+find(t, file, `(?s)(\nvar quota = .*?\n}\n)`)))
	edit(t, path("commands/table.go"), "var Table = []Command{\n", "var Table = []Command{\n\ttoy,\n")
	lacks := func(want string, args ...string) {
		out, err := tryIn(folder, append([]string{"go", "test", "-vet=off", "-short"}, args...)...)
		require.Error(t, err, want)
		require.Contains(t, out, want)
	}
	lacks(`no section "GO.TOY"`, "./commands")
	write(t, path("docs/commands.md"), reference+toy.Replace(find(t, reference, `(?s)(\n## GO.QUOTA\n.*?\n)\n## `)))
	lacks("docs/one-page.md lacks \"GO.TOY ", "./commands")
	onePage := read(t, "docs/one-page.md")
	write(t, path("docs/one-page.md"), onePage+"\n"+toy.Replace(find(t, onePage, `\n(GO.QUOTA .*\n)`)))
	lacks("the changelog does not name the command", "-run", "TestVersion", "./build")
	lacks("no transcript has a case with @sample of GO.TOY", "./commands")
	write(t, path("tests/corpus/toy.txt"), toyCalls)
	lacks("no transcript has a call of GO.TOY with UPTO", "./commands")
	write(t, path("tests/corpus/toy.txt"), toyCalls+toyOptions)
	lacks("commands to deny: the page has", "./commands")
	edit(t, path("SECURITY.md"), " -go.policy`", " -go.policy -go.toy`")
	edit(t, path("SECURITY.md"), "\n| `+go.policy` |", "\n| `+go.toy` | the same |\n| `+go.policy` |")
	// If the version is released already, the line belongs there.
	changelog := strings.ReplaceAll(read(t, "CHANGELOG.md"), "\n## ", "\n- `GO.TOY`.\n\n## ")
	write(t, path("CHANGELOG.md"), changelog+"\n- `GO.TOY`.\n")
	runIn(t, folder, "go", "test", "-short", "./commands", "./build")
	runIn(t, folder, "go", "test", "-vet=off", "-short", "-run", "Corpus|Random|Access|Load", "./cgo")

	// An option is in the world, which compares it with the models, and in the script.
	everywhere := []string{"-run", "TestOptions_everywhere", "./commands"}
	edit(t, path("commands/options.go"), "\n)\n\n// optionRows", "\n\toptToy\n)\n\n// optionRows")
	edit(t, path("commands/options.go"), "ErrShareWithoutWeight},\n", "ErrShareWithoutWeight},\n\t{\"TOY\", NoError, NoError},\n")
	edit(t, path("commands/quota.go"), "argMode, argAlign}", `argMode, argAlign, {Name: "TOY", Type: ArgToken, Optional: true}}`)
	lacks("tests/world makes no call of GO.QUOTA with TOY that its reader knows", everywhere...)
	edit(t, path("tests/world/generate.go"), "option = append(option, \"UPTO\")", "option = append(option, Pick(g.Rand, \"UPTO\", \"TOY\"))")
	lacks("tests/world makes no call of GO.QUOTA with TOY that its reader knows", everywhere...)
	edit(t, path("tests/world/call.go"), "\tcase option == \"UPTO\"", "\tcase option == \"TOY\":\n\tcase option == \"UPTO\"")
	lacks("script/gothrottle.lua has no option TOY", everywhere...)
	runIn(t, folder, "go", "generate", "./script")
	runIn(t, folder, append([]string{"go", "test", "-vet=off"}, everywhere...)...)
}

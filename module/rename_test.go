package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mixedFile has imports that gofmt sorts in another way after a rename, and texts that are no paths of this module.
const mixedFile = `package tests

import (
	_ "github.com/stretchr/testify/assert"
	_ "OLD/commands"
)

var _ = []string{"gothrottle", "gothrottle/README.md", "exampleXcom/xYy/commands", "/usr/share/OLD/commands"}
`

// make rename changes every place that names the module's path, also a second time. The result
// builds, and nothing names the old path.
func TestRename(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module again")
	}
	old := modulePath(t)
	const first, second = "example.com/x.y", "other.example/gothrottle/z"
	twice, once := copySources(t), copySources(t)
	for _, folder := range []string{twice, once} {
		change(t, folder, "tests/mixed_test.go", func(string) string { return strings.ReplaceAll(mixedFile, "OLD", old) })
	}
	rename(t, twice, first)
	wantNoPath(t, twice, old)
	for _, words := range [][]string{
		{"vet", "./..."}, {"mod", "tidy", "-diff"},
		{"-C", "bench", "vet", "./..."}, {"-C", "bench", "mod", "tidy", "-diff"},
		{"-C", "deploy", "mod", "tidy", "-diff"}, {"-C", "examples/go", "mod", "tidy", "-diff"},
		{"-C", "playground", "mod", "tidy", "-diff"},
		{"test", "-run", "^(TestImports|TestDockerignore_.*)$", "./build", "./module"},
	} {
		if out, err := goIn(twice, words...); err != nil {
			t.Errorf("go %q: %v\n%s", words, err, out)
		}
	}
	if out, err := exec.Command("gofmt", "-l", twice).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt would change %s, %v", out, err)
	}

	rename(t, twice, second)
	wantNoPath(t, twice, first)
	rename(t, once, second)
	if out, err := exec.Command("diff", "-r", twice, once).CombinedOutput(); err != nil {
		t.Errorf("renamed twice and renamed once are not the same: %s", out)
	}
}

// make rename refuses what is no path of a module. Then nothing is changed.
func TestRename_refuses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the go command often")
	}
	old := modulePath(t)
	folder := copySources(t)
	for module, want := range map[string]string{
		"":                  "MODULE is missing",
		old:                 "is " + old + " already",
		"x":                 "must begin with a domain",
		"x/example.com":     "must begin with a domain",
		"example.com/":      "no path of a Go module",
		"example.com/a b":   "no path of a Go module",
		"example.com/../a":  "no path of a Go module",
		"example.com/a#b":   "no path of a Go module",
		"example.com/x/v2":  "no path of a Go module",
		"/example.com/x":    "no path of a Go module",
		"-example.com/x":    "no path of a Go module",
		"https://a.example": "no path of a Go module",
	} {
		if out, err := renameTo(folder, module); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s", module, err, out)
		}
	}
	if out, err := exec.Command("diff", "-r", folder, copySources(t)).CombinedOutput(); err != nil {
		t.Errorf("a refused rename changes files: %s", out)
	}
}

func renameTo(folder, module string) (out string, err error) {
	command := exec.Command("bash", "build/rename.sh")
	command.Dir, command.Env = folder, append(os.Environ(), "MODULE="+module)
	b, err := command.CombinedOutput()
	return string(b), err
}

func rename(t *testing.T, folder, module string) {
	t.Helper()
	if out, err := renameTo(folder, module); err != nil {
		t.Fatalf("%s: %v, %s", module, err, out)
	}
}

// wantNoPath finds places that name a package or a module of the path: a word of a go.mod, an import
// or another string in a .go file, a word of a script.
func wantNoPath(t *testing.T, folder, path string) {
	t.Helper()
	names := func(word string) bool {
		inner, found := strings.CutPrefix(word, path+"/")
		top, _, _ := strings.Cut(inner, "/")
		files, _ := os.ReadDir(filepath.Join(folder, top))
		return found && top != "" && slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), ".go") })
	}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var words []string
		switch base := filepath.Base(name); {
		case base == "go.mod":
			words = strings.Fields(string(text))
		case strings.HasSuffix(base, ".go"):
			words = literals(t, name)
		case strings.HasSuffix(base, ".sh") || strings.HasSuffix(base, ".yml") || base == "Makefile" || base == "Dockerfile" || base == "run":
			words = strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\n\"'=:;()", r) })
		}
		for _, word := range words {
			if names(word) || word == path && filepath.Base(name) == "go.mod" {
				t.Errorf("%s names %s", name, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// literals returns the strings in a Go file, those of imports included.
func literals(t *testing.T, name string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			values = append(values, strings.Trim(l.Value, "\"`"))
		}
		return true
	})
	return values
}

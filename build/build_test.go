// Package build_test holds the rules of the repository: who imports whom, that only tests/server starts servers, and what
// must be the same in two places.
package build_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rule says what a folder may import beside the standard library, and what it must not import. Packages of this repository
// are named by their folder.
type rule struct{ allowed, forbidden []string }

// readRules returns the rules of build/folders.txt by folder.
func readRules(t *testing.T) map[string]rule {
	t.Helper()
	rules := map[string]rule{}
	for line := range strings.Lines(read(t, "build/folders.txt")) {
		cells := strings.Split(line, "|")
		if strings.HasPrefix(line, "#") || !assert.Len(t, cells, 4, line) {
			continue
		}
		folder, forbidden := strings.TrimSpace(cells[0]), strings.Fields(cells[3])
		assert.NotContains(t, rules, folder, "twice in the rules")
		if len(forbidden) == 0 {
			forbidden = []string{"C", "unsafe"}
		}
		rules[folder] = rule{strings.Fields(cells[2]), forbidden}
	}
	return rules
}

// quoted returns the words between backquotes.
func quoted(text string) (words []string) {
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	require.NoError(t, err)
	return string(text)
}

// find returns the first group of the first match.
func find(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, "there is no %s", pattern)
	return m[1]
}

// modulePath is the path that the imports of this repository's packages begin with.
func modulePath(t *testing.T) string {
	t.Helper()
	return find(t, read(t, "go.mod"), `^module (\S+)\n`)
}

// walk parses the Go files of the repository. Their names begin with their folder.
func walk(t *testing.T, mode parser.Mode, visit func(name string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err == nil {
			visit(strings.TrimPrefix(filepath.ToSlash(path), "../"), file)
		}
		return err
	})
	require.NoError(t, err)
}

// build/folders.txt has each folder of the repository's root, and no folder that isn't there.
func TestFolders(t *testing.T) {
	rules := readRules(t)
	for folder := range rules {
		assert.DirExists(t, filepath.Join("..", folder))
	}
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, e := range entries {
		assert.True(t, !e.IsDir() || strings.HasPrefix(e.Name(), ".") || rules[e.Name()].forbidden != nil, "%s isn't in build/folders.txt", e.Name())
	}
}

// The C files of cgo are layers: none uses a name of a file that uses one of its own, however far
// below. What Go calls or is called by does not count.
func TestCgo_layers(t *testing.T) {
	defined := regexp.MustCompile(`(?m)^\w.*?\b(shim_\w+)(?:\)?[[(;]| =)`)
	files, err := filepath.Glob("../cgo/*.c")
	require.NoError(t, err)
	text, home, uses := map[string]string{}, map[string]string{}, map[string][]string{}
	for _, file := range files {
		text[file] = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(read(t, strings.TrimPrefix(file, "../")), "")
		for _, m := range defined.FindAllStringSubmatch(text[file], -1) {
			if !strings.HasPrefix(m[0], "static") {
				home[m[1]] = file
			}
		}
	}
	for name, file := range home {
		for user := range text {
			if user != file && regexp.MustCompile(`\b`+name+`\b`).MatchString(text[user]) {
				uses[user] = append(uses[user], file)
			}
		}
	}
	require.Greater(t, len(home), 30)
	for len(text) > 0 { // takes away the files that use none of those that are left
		left := len(text)
		for file := range text {
			if !slices.ContainsFunc(uses[file], func(used string) bool { return text[used] != "" }) {
				delete(text, file)
			}
		}
		require.NotEqual(t, left, len(text), "a circle: %v", slices.Sorted(maps.Keys(text)))
	}
}

// oracle is a package of models. Only tests import it, and the packages that the rules permit to.
const oracle = "funnel/oracle"

// Each package imports what the rules permit. Test files may import more; those in tests may not. So the shared object holds no
// package but ours and the standard library's, and has no other licences than ours and Go's.
func TestImports(t *testing.T) {
	rules, checked, own := readRules(t), map[string]int{}, modulePath(t)+"/"
	walk(t, parser.ImportsOnly, func(path string, file *ast.File) {
		folder, _, _ := strings.Cut(path, "/")
		if _, found := rules[filepath.ToSlash(filepath.Dir(path))]; found {
			folder = filepath.ToSlash(filepath.Dir(path))
		}
		r := rules[folder]
		assert.NotEmpty(t, r.forbidden, "%s: build/folders.txt has no rule for Go files in %s", path, folder)
		checked[folder]++
		test := strings.HasSuffix(path, "_test.go")
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			name, ours := strings.CutPrefix(name, own)
			first, _, _ := strings.Cut(name, "/")
			standard := !ours && !strings.Contains(first, ".")
			within := func(a string) bool { return name == a || strings.HasPrefix(name, a+"/") }
			switch {
			case test && standard:
			case slices.Contains(r.forbidden, name), !test && name == oracle && !slices.Contains(r.allowed, oracle):
				t.Errorf("%s must not import %s", path, name)
			case !standard && name != folder && !slices.ContainsFunc(r.allowed, within):
				if !test || strings.HasPrefix(folder, "tests") {
					t.Errorf("%s must not import %s", path, name)
				}
			}
		}
	})
	for folder, r := range rules {
		assert.Equal(t, !slices.Contains(r.allowed, "-"), checked[folder] > 0, "%s: it has Go files, or -", folder)
	}
}

// startsServer matches the strings by which a program starts a server: its name, the variable that names it, its arguments.
var startsServer = regexp.MustCompile(`^((redis|valkey)-(server|sentinel)|GOTHROTTLE_SERVER|--port|--bind)$`)

// otherwise has the files that may have such strings, by the beginning of their names, and why.
var otherwise = map[string]string{
	"tests/server/":       "the launcher",
	"build/image_test.go": "words that the image's entrypoint gets",
	"tests/image_test.go": "words that the image's entrypoint gets",
}

// Servers are started by tests/server only, which makes them listen on 127.0.0.1 alone and end with their tests.
func TestServers_oneLauncher(t *testing.T) {
	used := map[string]bool{}
	walk(t, parser.SkipObjectResolution, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			word, _ := strconv.Unquote(l.Value)
			if !startsServer.MatchString(word) {
				return true
			}
			for begin := range otherwise {
				if strings.HasPrefix(path, begin) {
					used[begin] = true
					return true
				}
			}
			t.Errorf("%s has %q: start the server by tests/server", path, word)
			return true
		})
	})
	for begin, reason := range otherwise {
		assert.True(t, used[begin], "%s (%s) needs no exception", begin, reason)
	}
}

// A server that lacks a function of the table cannot load the module, so the table holds no function that nobody calls.
func TestAPI_everyFunctionIsUsed(t *testing.T) {
	sources, err := filepath.Glob("../cgo/*.c")
	require.NoError(t, err)
	calls := ""
	for _, name := range sources {
		calls += read(t, name[len("../"):])
	}
	rows := regexp.MustCompile(`X\((?:REQUIRED|OPTIONAL|VALKEY), "[0-9.]+", [\w *]+, (\w+),`).FindAllStringSubmatch(read(t, "cgo/api.h"), -1)
	for _, m := range rows {
		assert.True(t, regexp.MustCompile(`\bapi\.`+m[1]+`\b`).MatchString(calls), "%s is not called", m[1])
	}
	assert.GreaterOrEqual(t, len(rows), 40)
}

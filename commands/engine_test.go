package commands_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// No reply shows which state engines share. A variable of package commands is a row, a list of rows or texts, a text, or the
// seed of checksum. All have their value from the start on, and it isn't empty, a number or a pointer.
func TestEngine_ownsTheState(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	vars := 0
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, _ := d.(*ast.GenDecl); g != nil && g.Tok == token.VAR && !strings.HasSuffix(name, "_test.go") {
				for _, spec := range g.Specs {
					vars++
					if s := spec.(*ast.ValueSpec); len(s.Values) != len(s.Names) || slices.ContainsFunc(s.Values, mayChange) {
						t.Errorf("%s: the variable %v may change: an Engine is its place", name, s.Names)
					}
				}
			}
		}
	}
	if vars < 40 {
		t.Errorf("%d variables", vars)
	}
}

func mayChange(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CompositeLit:
		return len(v.Elts) == 0
	case *ast.BinaryExpr: // parts of a text
		return v.Op != token.ADD
	case *ast.CallExpr:
		function := regexp.MustCompile(`\w+$`).FindString(types.ExprString(v.Fun))
		return !slices.Contains([]string{"Sprintf", "optional", "mode", "MakeSeed"}, function)
	}
	return true
}

// No transcript has two servers. They share neither what GO.TOP counts nor policies.
func TestMemory_serversShareNothing(t *testing.T) {
	servers := []*memory.Server{memory.NewServer(), memory.NewServer()}
	for _, step := range []struct {
		server     int
		line, want string
	}{
		{0, "CONFIG SET gothrottle.top-keys 10", "OK"},
		{0, "GO.QUOTA k 1 1h 2", "1 1 1 -1 0"},
		{1, "GO.TOP", "ERR no denials are counted: set gothrottle.top-keys to more than 0"},
		{1, "CONFIG SET gothrottle.top-keys 10", "OK"},
		{0, "GO.TOP", "[[0:k 1 0]]"},
		{1, "GO.TOP", "[]"},
		{0, "CONFIG SET gothrottle.top-keys 0", "OK"},
		{1, "GO.TOP", "[]"},
		{0, "CONFIG SET gothrottle.policies a_QUOTA_1_1h", "OK"},
		{1, "GO.POLICY a:k", "ERR no policy for the key 'a:k': its name, up to the first colon, is not in gothrottle.policies"},
		{0, "GO.POLICY a:k", "0 1 0 -1 3600 0 [0 1 0 -1 3600]"},
	} {
		words := strings.Fields(step.line)
		for w := range words {
			words[w] = strings.ReplaceAll(words[w], "_", " ")
		}
		reply, err := servers[step.server].Do(corpus.Epoch, words...)
		if err != nil {
			reply = err
		}
		if got := corpus.ReplyText(reply); got != step.want {
			t.Errorf("%s: %s, want %s", step.line, got, step.want)
		}
	}
}

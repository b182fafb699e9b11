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

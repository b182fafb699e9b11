package commands_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// No reply shows which state engines share. All variables of package commands have a value from the start on, which isn't a
// pointer and never changes, except that Table grows before the first call.
func TestEngine_ownsTheState(t *testing.T) {
	vars, files := map[string]bool{}, parseFiles(t)
	for _, f := range files {
		for _, d := range f.Decls {
			g, _ := d.(*ast.GenDecl)
			if g == nil || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.ValueSpec)
				for i, name := range s.Names {
					vars[name.Name] = true
					if len(s.Values) != len(s.Names) || !isConstant(s.Values[i]) {
						t.Errorf("%s: a variable of this package", name.Name)
					}
				}
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			var changed []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					changed = n.Lhs
				}
			case *ast.IncDecStmt:
				changed = []ast.Expr{n.X}
			case *ast.FuncDecl:
				return n.Name.Name != "init"
			}
			for _, e := range changed {
				if name := rootOf(e); name != nil && vars[name.Name] && isGlobal(name) {
					t.Errorf("%s is changed", name.Name)
				}
			}
			return true
		})
	}
	if len(vars) < 50 {
		t.Errorf("%d variables", len(vars))
	}
}

func parseFiles(t *testing.T) (files []*ast.File) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// isConstant reports whether the value of a variable is a literal, or that of a function that makes texts, rows or a seed.
func isConstant(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CompositeLit, *ast.BasicLit, *ast.BinaryExpr:
		return true
	case *ast.CallExpr:
		switch f := v.Fun.(type) {
		case *ast.SelectorExpr:
			return f.Sel.Name == "Sprintf" || f.Sel.Name == "readOnly" || f.Sel.Name == "MakeSeed"
		case *ast.Ident:
			return f.Name == "optional" || f.Name == "mode"
		}
	}
	return false
}

// rootOf returns the x of x[i].f; nil if there is none.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// isGlobal reports whether a name isn't one of a function. The parser finds the others in the same file.
func isGlobal(name *ast.Ident) bool {
	if name.Obj == nil {
		return true
	}
	spec, ok := name.Obj.Decl.(*ast.ValueSpec)
	return ok && len(spec.Values) > 0 && isConstant(spec.Values[0])
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

package build_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mostWaits is how many calls may wait for the wall clock. Lower it when there are fewer.
const mostWaits = 101

// waiting matches calls that wait for the wall clock, or measure it, by what is called.
var waiting = regexp.MustCompile(`^(time\.(Sleep|Since|Until|After|AfterFunc|Tick|NewTimer|NewTicker)|time\.Now\(\)\.(Add|Sub|After|Before)|\w+\.Eventually(WithT)?)$`)

// part is a declaration: the names it declares, those that appear in it, also outside of bubbles, and its waits there. What
// is passed to synctest.Test, or to a helper called bubble, is in a bubble.
type part struct {
	names, uses, outside, waits []string
	receiver                    string // the type of a method
}

// partOf returns a declaration of a file.
func partOf(n ast.Node, name string, file *ast.File, text string) *part {
	p := &part{}
	switch n := n.(type) {
	case *ast.FuncDecl:
		p.names = []string{n.Name.Name}
		if n.Recv != nil {
			p.receiver = strings.Trim(types.ExprString(n.Recv.List[0].Type), "*")
		}
	case *ast.TypeSpec:
		p.names = []string{n.Name.Name}
	case *ast.ValueSpec:
		for _, one := range n.Names {
			p.names = append(p.names, one.Name)
		}
	}
	bubble := token.NoPos // the end of the last one
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if p.uses = append(p.uses, n.Name); n.Pos() >= bubble {
				p.outside = append(p.outside, n.Name)
			}
		case *ast.CallExpr:
			called := types.ExprString(n.Fun)
			if waiting.MatchString(called) && n.Pos() >= bubble {
				p.waits = append(p.waits, fmt.Sprintf("%s:%d: %s", name, 1+strings.Count(text[:n.Pos()-file.FileStart], "\n"), called))
			}
			if called == "synctest.Test" || called == "bubble" {
				bubble = n.End()
			}
		}
		return true
	})
	return p
}

// Tests wait for the wall clock in few places: such tests are slow, and fail on busy machines. Packages below tests count, too.
// A function is in a bubble, too, if its name appears in the package's tests in bubbles only. So is a method, if its name or that of
// its type does.
func TestWaits(t *testing.T) {
	packages := map[string][]*part{}
	walk(t, parser.SkipObjectResolution, func(name string, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "tests/") {
			return
		}
		text, folder := read(t, name), path.Dir(name)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.TypeSpec, *ast.ValueSpec:
				packages[folder] = append(packages[folder], partOf(n, name, file, text))
				return false
			}
			return true
		})
	})
	var waits []string
	for _, parts := range packages {
		// A name that no other part uses is called by the package's users, or by an interface's.
		used, named := map[string]bool{}, map[string]bool{"": true}
		for _, p := range parts {
			for _, one := range p.uses {
				used[one] = used[one] || !slices.Contains(p.names, one)
			}
		}
		for again := true; again; {
			again = false
			for i, p := range parts {
				if p == nil || !named[p.receiver] || !slices.ContainsFunc(p.names, func(one string) bool { return named[one] || !used[one] }) {
					continue
				}
				for _, one := range p.outside {
					named[one] = true
				}
				waits, parts[i], again = append(waits, p.waits...), nil, true
			}
		}
	}
	slices.Sort(waits)
	t.Log(strings.Join(waits, "\n"))
	assert.LessOrEqual(t, len(waits), mostWaits, "use a bubble of testing/synctest")
}

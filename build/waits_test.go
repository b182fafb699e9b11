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

// mostWaits is how many calls in tests may wait for the wall clock. Lower it when there are fewer.
const mostWaits = 16

// waiting matches calls that wait for the clock, or measure a time by it, and bubble those in which it stands still.
var (
	waiting = regexp.MustCompile(`^(time\.(Sleep|Since|Until|After|AfterFunc|Tick|NewTimer|NewTicker)|time\.Now\(\)\.(Add|Sub|After|Before)|\w+\.Eventually(WithT)?)$`)
	bubble  = regexp.MustCompile(`^(synctest\.Test|bubble)$`)
)

// Tests wait for the wall clock in few places: such tests are slow, and fail on busy machines. Packages below tests count, too.
// A call doesn't count in the arguments of synctest.Test or of a helper called bubble, nor in a function whose name appears only
// there, or in other such functions.
func TestWaits(t *testing.T) {
	waits, users, frozen := map[string][]string{}, map[string][]string{}, map[string]bool{} // by folder and function
	walk(t, parser.SkipObjectResolution, func(name string, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "tests/") {
			return
		}
		text, folder := read(t, name), path.Dir(name)+"."
		for _, d := range file.Decls {
			in, end := folder, token.NoPos // the end of the last bubble
			f, _ := d.(*ast.FuncDecl)
			if f != nil {
				in += f.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if one := folder + n.Name; n.Pos() < end {
						frozen[one] = true
					} else if f == nil || n != f.Name {
						users[one] = append(users[one], in)
					}
				case *ast.CallExpr:
					called := types.ExprString(n.Fun)
					if waiting.MatchString(called) && n.Pos() >= end {
						waits[in] = append(waits[in], fmt.Sprintf("%s:%d: %s", name, 1+strings.Count(text[:n.Pos()-file.FileStart], "\n"), called))
					}
					if bubble.MatchString(called) {
						end = n.End()
					}
				}
				return true
			})
		}
	})
	seen := map[string]bool{}
	var runs func(one string) bool
	runs = func(one string) bool {
		if _, found := seen[one]; !found {
			seen[one] = false
			seen[one] = len(users[one]) == 0 && !frozen[one] || slices.ContainsFunc(users[one], runs)
		}
		return seen[one]
	}
	var all []string
	for one := range waits {
		if runs(one) {
			all = append(all, waits[one]...)
		}
	}
	slices.Sort(all)
	t.Log(strings.Join(all, "\n"))
	assert.LessOrEqual(t, len(all), mostWaits, "use a bubble of testing/synctest")
}

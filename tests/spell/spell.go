// Package spell writes paths in many ways, for tests.
package spell

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Routes are what paths of Path lead to, as some programs read them.
var Routes = []string{"/api/foo", "/api", "/login", "/health", "/nothing"}

var (
	slashes = strings.Fields(`/ / / // /// \ %2f %2F %5c %252f /./ /%2e/ /x/../ /x/%2e%2e/ /x\..\ /x//../ /x/..;/ /;x/ /x/..%2f %2f..%2f`)
	begins  = strings.Fields(`//x ///x /\x \x //u@x //u:p@x:1 http://h http:/h %2f%2fx //. /x/.. /x//.. /x/..// //x/.. /%2e%2e /. /x%2f.. /x;/.. /;a=/ # *`)
	ends    = strings.Fields(`/ // /. /.. /x/.. //.. %2f %2f..%2fx /..%2fx %2f%2e%2e /%2e /%2e%2e ; ;a=b ;a/b ;/../x ;%2f..%2f ? ?a=/b ?/../x %3f %3Fx %253f
		%3f/../x # #a #/../../x %23 %23a/.. %00 %c0%ae %c0%af/.. %ff \ \.. %5c..%5cx + %20 %0a . %2e ~ %zz %`)
)

// Path returns a way to write the path of a route: with escapes once or twice, in other cases of letters, with slashes, dots,
// parameters, a host, a query or another route around it.
func Path(r *rand.Rand) string {
	var text strings.Builder
	some := func(of []string, most int) {
		for range r.IntN(most + 1) {
			text.WriteString(of[r.IntN(len(of))])
		}
	}
	some(begins, 2)
	write(&text, r, Routes[r.IntN(len(Routes))])
	if some(ends, 2); r.IntN(3) == 0 {
		write(&text, r, strings.Repeat("/..", r.IntN(3))+Routes[r.IntN(len(Routes))])
		some(ends, 1)
	}
	if path := text.String(); path != "" && strings.IndexByte(`/\*h%`, path[0]) >= 0 {
		return path
	}
	return "/" + text.String()
}

// write writes a path. Half of them get no escapes: what is around them is what makes them odd.
func write(text *strings.Builder, r *rand.Rand, path string) {
	odd := r.IntN(2) * 5
	for _, c := range []byte(path) {
		switch n := r.IntN(100); {
		case c == '/':
			text.WriteString(slashes[r.IntN(1+odd/5*(len(slashes)-1))])
		case n < odd:
			fmt.Fprintf(text, "%%%02x", c)
		case n < 2*odd:
			fmt.Fprintf(text, "%%%02X", c-'a'+'A')
		case n < 3*odd:
			fmt.Fprintf(text, "%%25%02x", c)
		case n < 4*odd:
			text.WriteString(strings.ToUpper(string(c)))
		default:
			text.WriteByte(c)
		}
	}
}

package rules

import (
	"cmp"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
)

// normalize is what programs do to the path of a request, before and after they resolve its escapes, in this order. Each
// program takes some of the steps, so a path has a reading for each selection of them.
var (
	normalize = []func(string) string{beforeMark, asURL, beyondHost, beforeParameter, withoutParameters, merged, dotted, withoutDots}
	steps     = slices.Concat(normalize, []func(string) string{unescape, unescape}, normalize)
)

// Clients could write paths with very many readings, or very long ones. Together they may have this many bytes, each with some
// for itself.
const (
	maxReadings = 32 << 10
	perReading  = 256
)

// readings returns the paths that programs may take a URI for, without its origin, its query and a slash at its end. The first
// one has all escapes and dots resolved, ends before a '#', and has no parameters; rules count by it. all says whether
// these are all of them.
func readings(uri string) (found []string, all bool) {
	uri, _, _ = strings.Cut(uri, "?")
	uri = beyondOrigin(uri)
	if !odd(uri) {
		return []string{uri}, true
	}
	first := uri
	for _, step := range []func(string) string{beforeMark, unescape, unescape, slashed, withoutParameters, path.Clean} {
		first = step(first)
	}
	found = []string{uri}
	known, size := map[string]bool{uri: true}, len(uri)
	for _, step := range steps {
		for _, before := range found {
			if size > maxReadings {
				return []string{first}, false
			}
			if reading := step(before); !known[reading] {
				known[reading], size = true, size+len(reading)+perReading
				found = append(found, reading)
			}
		}
	}
	for i, p := range found {
		found[i] = cmp.Or(strings.TrimSuffix(p, "/"), "/")
	}
	return slices.Insert(found, 0, first), true
}

var (
	// escape is a right escape. A wrong one stays in the path.
	escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

	// beyondOrigin is without the part before the path in "GET http://example.com/ HTTP/1.1".
	beyondOrigin = replacing("^([A-Za-z][0-9A-Za-z+.-]*:(//[^/?#]*)?)?/?", "/")
	// beyondHost is the path of Python's urlsplit, and of Node's url.parse if it is asked for hosts.
	beyondHost = replacing("^(//[^/?#]*)?/?", "/")
	// beyondSlashes takes what follows any slashes for a host, too.
	beyondSlashes = replacing("^(//+[^/?#]*)?/?", "/")
	beforeMark    = before("?#")
	// beforeParameter is for find-my-way: a parameter begins a query.
	beforeParameter = before(";")
	// withoutParameters drops those of a part of a path, as in /a;x=1/b.
	withoutParameters = replacing(";[^/]*", "")
	// dotted is for dots in escapes, which URLs of browsers and Node take for dots.
	dotted = strings.NewReplacer("%2e", ".", "%2E", ".").Replace
	// merged makes one slash of several.
	merged  = replacing("//+", "/")
	slashed = strings.NewReplacer(`\`, "/").Replace
)

// odd says whether readings of a path can differ.
func odd(p string) bool {
	return strings.ContainsAny(p, `%\;#`) || strings.Contains(p, "//") || strings.Contains(p, "/.") || len(p) > 1 && strings.HasSuffix(p, "/")
}

// replacing returns a step that replaces each match of a pattern.
func replacing(pattern, by string) func(string) string {
	matched := regexp.MustCompile(pattern)
	return func(p string) string { return matched.ReplaceAllString(p, by) }
}

// before returns a step that ends a path where the first of some marks is.
func before(marks string) func(string) string {
	return func(p string) string {
		if at := strings.IndexAny(p, marks); at >= 0 {
			return p[:at]
		}
		return p
	}
}

// asURL is what new URL(p, base) does in browsers and Node: blanks at the ends are lost, some of them anywhere, and any slashes and
// backslashes at the beginning are before a host.
func asURL(p string) string {
	p = strings.TrimFunc(p, func(c rune) bool { return c <= ' ' })
	return beyondSlashes(unbroken.Replace(p))
}

var unbroken = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/")

// withoutDots resolves dots by RFC 3986, 5.2.4: slashes that follow each other have a part between them, which is empty.
func withoutDots(p string) string {
	var kept []string
	parts := strings.Split(p, "/")[1:]
	for i, part := range parts {
		if part == ".." {
			kept = kept[:max(len(kept)-1, 0)]
		}
		if isDots := part == "." || part == ".."; !isDots {
			kept = append(kept, part)
		} else if i == len(parts)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// unescape resolves the escapes of a path.
func unescape(p string) string {
	return escape.ReplaceAllStringFunc(p, func(e string) string {
		c, _ := hex.DecodeString(e[1:])
		return string(c)
	})
}

package rules

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// normalize is what programs do to the path of a request, before and after they resolve its escapes, in this order. Each
// program takes some of the steps, so a path has a reading for each selection of them.
var (
	normalize = []func(string) string{beforeMark, asURL, beyondHost, beforeParameter, withoutParameters, merged, dotted, withoutDots}
	steps     = slices.Concat(normalize, []func(string) string{unescape, unescape}, normalize)
)

// Clients could write paths with very many readings. Together they may have this many bytes, each with some for itself.
const (
	maxReadings = 64 << 10
	perReading  = 256
)

// readings returns the paths that programs may take a URI for, without its origin, its query and a slash at its end. The first
// one has all escapes and dots resolved, ends before a '#', and has no parameters; rules count by it. all says whether
// these are all of them: a client could write paths with very many.
func readings(uri string) (found []string, all bool) {
	uri, _, _ = strings.Cut(uri, "?")
	uri = beyondOrigin(uri)
	if !odd.MatchString(uri) {
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
			reading := step(before)
			if known[reading] {
				continue
			}
			if size += len(reading) + perReading; size > maxReadings {
				return []string{first}, false
			}
			known[reading] = true
			found = append(found, reading)
		}
	}
	for i, p := range found {
		found[i] = cmp.Or(strings.TrimSuffix(p, "/"), "/")
	}
	return slices.Insert(found, 0, first), true
}

var (
	// odd is what makes readings of a path differ.
	odd = regexp.MustCompile(`[%\\;#]|/[./]|[^/]/$`)
	// escape is a right escape. A wrong one stays in the path.
	escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

	// beyondOrigin is without the part before the path in "GET http://example.com/ HTTP/1.1".
	beyondOrigin = replacing("^([A-Za-z][0-9A-Za-z+.-]*:(//[^/?#]*)?)?/?", "/")
	// beyondHost is the path of Python's urlsplit, and of Node's url.parse if it is asked for hosts.
	beyondHost = replacing("^(//[^/?#]*)?/?", "/")
	// beyondSlashes takes what follows any slashes for a host, too.
	beyondSlashes = replacing("^(//+[^/?#]*)?/?", "/")
	// unblanked is without what URLs of browsers and Node lose at their ends, and anywhere.
	unblanked  = replacing("^[\x00-\x20]+|[\x00-\x20]+$|[\t\n\r]", "")
	beforeMark = before("?#")
	// beforeParameter is for find-my-way: a parameter begins a query.
	beforeParameter = before(";")
	// withoutParameters drops those of a part of a path, as in /a;x=1/b.
	withoutParameters = replacing(";[^/]*", "")
	// dotted is for dots in escapes, which URLs of browsers and Node take for dots.
	dotted = replacing("%2[eE]", ".")
	// merged makes one slash of several.
	merged  = replacing("//+", "/")
	slashed = replacing(`\\`, "/")
)

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

// asURL is what new URL(p, base) does in browsers and Node: any slashes and backslashes at the beginning are before a host.
func asURL(p string) string { return beyondSlashes(slashed(unblanked(p))) }

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
		c, _ := strconv.ParseUint(e[1:], 16, 8)
		return string([]byte{byte(c)})
	})
}

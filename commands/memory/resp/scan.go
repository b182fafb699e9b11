package resp

import (
	"regexp"
	"slices"
	"strings"
)

// scan is SCAN cursor, MATCH pattern and COUNT n: it returns all keys at one time. The server is locked.
func (s *Server) scan(args []string) any {
	pattern := regexp.MustCompile("")
	match := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "MATCH") })
	if match > 0 && match+1 < len(args) {
		pattern = glob(args[match+1])
	}
	keys := []any{}
	for _, key := range s.data.Keys() {
		if v := s.data.Get(key); v != nil && !v.Expired(s.now()) && pattern.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return []any{"0", keys}
}

// glob returns what a pattern matches: * and ? have their meaning, unless \ is before them. It has no [sets].
func glob(pattern string) *regexp.Regexp {
	text := regexp.MustCompile(`(?s)\\?.`).ReplaceAllStringFunc(pattern, func(part string) string {
		switch part {
		case "*":
			return ".*"
		case "?":
			return "."
		}
		return regexp.QuoteMeta(part[len(part)-1:])
	})
	return regexp.MustCompile("(?s)^" + text + "$")
}

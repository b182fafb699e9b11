package resp

import (
	"path"
	"slices"
	"strings"
)

// scan is SCAN cursor, MATCH pattern and COUNT n: it returns all keys at one time. The server is locked.
func (s *Server) scan(args []string) any {
	pattern := "*"
	match := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "MATCH") })
	if match > 0 && match+1 < len(args) {
		pattern = args[match+1]
	}
	plain := strings.NewReplacer("/", "\x00") // package path knows folders
	keys := []any{}
	for _, key := range s.data.Keys() {
		matches, _ := path.Match(plain.Replace(pattern), plain.Replace(key))
		if v := s.data.Get(key); v != nil && !v.Expired(s.now()) && matches {
			keys = append(keys, key)
		}
	}
	return []any{"0", keys}
}

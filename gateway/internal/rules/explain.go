package rules

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Explain says which rule each entry of a descriptor meets, and which limit counts. prefix begins all keys of the server.
func (d *Domain) Explain(prefix string, entries Descriptor) (lines []string) {
	at := &d.node
	for _, e := range entries {
		pair := e.GetKey() + "=" + e.GetValue()
		next := at.child(e.GetKey(), e.GetValue())
		if next == nil {
			known := slices.Sorted(maps.Keys(at.children))
			return append(lines, fmt.Sprintf("%s: no rule below %s, which has %d: %s", pair, at.path, len(known),
				strings.Join(known[:min(len(known), 20)], ", ")), "no limit")
		}
		lines, at = append(lines, pair+": rule "+next.path), next
	}
	if at.limit == nil {
		return append(lines, "no limit: this rule has no rate_limit, and only the rule of the last entry counts")
	}
	return append(lines, "limit: "+d.Match(entries).explain(prefix))
}

func (f Found) explain(prefix string) string {
	if f.Unlimited {
		return fmt.Sprintf("%s at %s, unlimited", f.Label, f.Place)
	}
	return fmt.Sprintf("%s at %s, key %s%s:%s", f.Label, f.Place, prefix, f.Counter(), f.Key)
}

// Explain says which rules a request counts for, and what keeps it from counting for the others.
func (h *HTTP) Explain(prefix string, r *http.Request) (lines []string) {
	s := h.subject(r)
	lines = append(lines, fmt.Sprintf("%s %s%s from %s, paths %q", s.is["method"], s.is["host"], s.is["path"], s.is["address"], s.paths))
	found := h.Match(r)
	for i := range h.rules {
		rule := &h.rules[i]
		if part := rule.misses(s); part != "" {
			lines = append(lines, rule.name+": no, because of its "+part)
			continue
		}
		at := slices.IndexFunc(found, func(f Found) bool { return f.Limit == rule.limit })
		lines = append(lines, rule.name+": yes, "+found[at].explain(prefix))
	}
	return lines
}

package rules

import "strings"

// Pattern is a text in which each star is any text.
type Pattern string

// Match says whether a text matches. It takes the first place where a part fits, because stars take all that is between.
func (p Pattern) Match(text string) bool {
	part, rest, more := strings.Cut(string(p), "*")
	if !more {
		return text == part
	}
	text, fits := strings.CutPrefix(text, part)
	for fits {
		if part, rest, more = strings.Cut(rest, "*"); !more {
			return strings.HasSuffix(text, part)
		}
		_, text, fits = strings.Cut(text, part)
	}
	return false
}

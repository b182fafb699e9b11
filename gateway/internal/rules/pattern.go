package rules

import "strings"

// Pattern is a text in which each star is any text. It is split at the stars.
type Pattern []string

// NewPattern returns the Pattern of a text.
func NewPattern(text string) Pattern { return strings.Split(text, "*") }

// Match says whether a text matches. It takes the first place where a part fits, because stars take all that is between.
func (p Pattern) Match(text string) bool {
	first, last := p[0], p[len(p)-1]
	if len(p) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range p[1 : len(p)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// late says whether the hits of a rule that doesn't say are late.
func (o *Options) late(rule string) bool {
	for _, p := range o.Late {
		if p.Match(rule) {
			return true
		}
	}
	return false
}

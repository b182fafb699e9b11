package commands_test

import (
	"strings"
	"testing"

	"gothrottle/commands"
)

// A rule for all texts: a code in capitals, then a sentence without a dot at its end, unlike that of any other error. The text
// fits in the host's memory, with the longest word that it may name.
func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		text := e.Text()
		code, sentence, _ := strings.Cut(text, " ")
		if code != strings.ToUpper(code) || sentence == "" || strings.HasSuffix(text, ".") || seen[text] {
			t.Errorf("error %d: %q", e, text)
		}
		seen[text] = true
		call := commands.Call{Args: []string{strings.Repeat("x", 1000)}, ErrWord: 1, ErrClause: commands.MaxClauses}
		switch e {
		case commands.ErrClauseShort:
			call.Args[0] = "throttle"
		case commands.ErrNotOptionOfClause:
			call.Clauses, call.ErrClause = make([]commands.Clause, 1), 1
		}
		if n := len(call.AppendError(nil, e)); n >= commands.MaxErrorText { // the host adds a zero
			t.Errorf("%q has up to %d bytes", text, n)
		}
	}
}

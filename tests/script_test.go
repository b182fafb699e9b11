package tests

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// script returns the text of the script.
func script(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../script/gothrottle.lua")
	require.NoError(t, err)
	return string(text)
}

// byScript returns the words that make a call through the script: the keys come first.
func byScript(eval, script string, words []string) []any {
	var keys []string
	call := commands.Call{Args: words[1:], Keys: make([]commands.Key, 0, commands.MaxClauses), Clauses: make([]commands.Clause, 0, commands.MaxClauses)}
	if c := commands.Find(words[0]); c != nil && c.Plan != nil && !c.OneKey && len(words) > 2 && c.FindKeys(&call) == commands.NoError {
		for _, key := range call.Keys {
			keys = append(keys, call.Args[key.Word])
		}
	} else if len(words) > 1 {
		keys = words[1:2]
	}
	all := append([]any{eval, script, len(keys)}, corpus.Args(keys)...)
	all = append(all, words[0])
	return append(all, corpus.Args(words[min(2, len(words)):])...)
}

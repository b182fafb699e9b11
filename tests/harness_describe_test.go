package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// dict turns a reply of alternating names and values, as RESP2 writes a map, into a map.
func dict(t testing.TB, v any) map[string]any {
	t.Helper()
	all, ok := v.([]any)
	require.True(t, ok, "%#v", v)
	require.Zero(t, len(all)%2)
	m := map[string]any{}
	for i := 0; i < len(all); i += 2 {
		m[fmt.Sprint(all[i])] = all[i+1]
	}
	return m
}

func wordsOf(v any) (all []string) {
	for _, word := range v.([]any) {
		all = append(all, fmt.Sprint(word))
	}
	return all
}

// keyFlags returns the flags that the key spec of a command must have.
func keyFlags(c sample) []string {
	if c.writes() {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

func wordsNeeded(args []commands.Arg) (n int) {
	for _, arg := range args {
		switch {
		case arg.Optional:
		case arg.Type == commands.ArgOneOf:
			least := wordsNeeded(arg.Sub[:1])
			for i := range arg.Sub {
				least = min(least, wordsNeeded(arg.Sub[i:i+1]))
			}
			n += least
		case arg.Type == commands.ArgBlock:
			n += wordsNeeded(arg.Sub)
			if arg.Token != "" {
				n++
			}
		default:
			n++
		}
	}
	return n
}

func checkArgs(t *testing.T, where string, want []commands.Arg, got any) {
	t.Helper()
	args, ok := got.([]any)
	require.True(t, ok, "%s: %v", where, got)
	require.Len(t, args, len(want), where)
	for i, arg := range want {
		checkArg(t, where+" "+arg.Name, arg, dict(t, args[i]))
	}
}

func checkArg(t *testing.T, where string, want commands.Arg, got map[string]any) {
	t.Helper()
	assert.True(t, strings.EqualFold(want.Name, got["name"].(string)), "%s: %v", where, got["name"])
	assert.Equal(t, map[commands.ArgType]string{
		commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
		commands.ArgToken: "pure-token", commands.ArgBlock: "block", commands.ArgOneOf: "oneof",
	}[want.Type], got["type"], where)
	assert.NotEmpty(t, want.Summary, where)
	assert.Equal(t, want.Summary, got["summary"], where)
	var flags []string
	if got["flags"] != nil {
		flags = wordsOf(got["flags"])
	}
	assert.Equal(t, want.Optional, slices.Contains(flags, "optional"), where)
	assert.Equal(t, want.Multiple, slices.Contains(flags, "multiple"), where)
	switch {
	case want.Type == commands.ArgToken:
		assert.Equal(t, want.Name, got["token"], where)
	case want.Token != "":
		assert.Equal(t, want.Token, got["token"], where)
	default:
		assert.NotContains(t, got, "token", where)
	}
	if want.Type == commands.ArgKey {
		assert.Equal(t, int64(0), got["key_spec_index"], where)
	} else {
		assert.NotContains(t, got, "key_spec_index", where)
	}
	if want.Type == commands.ArgBlock || want.Type == commands.ArgOneOf {
		checkArgs(t, where, want.Sub, got["arguments"])
	}
}

// getKeys returns the keys that the server finds in a call. COMMAND GETKEYS and COMMAND
// GETKEYSANDFLAGS must agree.
func getKeys(t *testing.T, w *wire, call []any, flags []string) (keys []any) {
	t.Helper()
	keys, ok := w.do(append([]any{"COMMAND", "GETKEYS"}, call...)...).([]any)
	require.True(t, ok, "%v", call)
	both := w.do(append([]any{"COMMAND", "GETKEYSANDFLAGS"}, call...)...).([]any)
	require.Len(t, both, len(keys))
	for i := range both {
		assert.Equal(t, keys[i], both[i].([]any)[0], "%v", call)
		assert.ElementsMatch(t, flags, wordsOf(both[i].([]any)[1]), "%v", call)
	}
	return keys
}

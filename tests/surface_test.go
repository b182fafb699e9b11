package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// What COMMAND, INFO and MODULE LIST show comes from the table, over structures of the server's API. So no transcript has it.

// COMMAND INFO says what the command table says, and COMMAND DOCS has its texts.
// The first word of every call is a key, so clients that look no further send the call to the right node.
func TestSurface_commandInfo(t *testing.T) {
	s := start(t, options{})
	c := s.session()
	// ACL rules grant a command by name, and by category where the server has the API.
	own := slices.Contains(s.ACLCat(ctx).Val(), "throttle")
	assert.True(t, own || !s.since(7, 4), "a server since 7.4 lets modules add a category")
	assert.Len(t, s.CommandList(ctx, &redis.FilterBy{Module: "gothrottle"}).Val(), len(commands.Table))
	for _, row := range samples {
		reply := c.list("COMMAND", "INFO", row.Name)[0].([]any)
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		assert.ElementsMatch(t, row.flags(), reply[2], row.Name)
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		if s.since(7, 2) {
			assert.ElementsMatch(t, aclCategories(row, own), reply[6], row.Name)
		}
		// A client that caches replies must not cache ours.
		assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output"}, reply[7], "%s: tips", row.Name)
		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec, flags := specs[0].(map[any]any), keyFlags(row)
		if row.asks() {
			flags = append(flags, "incomplete") // COMMAND GETKEYS and ACL rules ask the module
		}
		assert.ElementsMatch(t, flags, spec["flags"], row.Name)
		assert.Equal(t, "map[spec:map[index:1] type:index] map[spec:map[keystep:1 lastkey:0 limit:0] type:range]",
			fmt.Sprint(spec["begin_search"], " ", spec["find_keys"]), row.Name)
		docs := c.do("COMMAND", "DOCS", row.Name).(map[any]any)[strings.ToLower(row.Name)].(map[any]any)
		assert.Equal(t, []any{row.Summary, row.Since, row.Complexity, "module"},
			[]any{docs["summary"], docs["since"], docs["complexity"], docs["group"]}, row.Name)
		wantArgs(t, row.Name, row.Args, docs["arguments"])
	}
	top := c.list("COMMAND", "INFO", "GO.TOP")[0].([]any)
	assert.ElementsMatch(t, []string{"admin", "readonly", "loading", "stale", "module"}, top[2])
	assert.Equal(t, []any{int64(0), int64(0), int64(0)}, top[3:6], "GO.TOP has no key")
	assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output", "request_policy:all_shards"}, top[7])
	assert.Empty(t, top[8], "key specs")
	if s.since(7, 2) {
		assert.ElementsMatch(t, []string{"@slow", "@admin", "@dangerous"}, top[6])
	} else {
		mayOrNot(t, false, s.as("al", "~* -@all +@write").do(fields("GO.THROTTLE k 1 1 60")...), "by category, without the API")
	}
}

// wantArgs compares arguments with those that COMMAND DOCS shows.
func wantArgs(t *testing.T, what string, want []commands.Arg, shown any) {
	t.Helper()
	types := []any{commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
		commands.ArgToken: "pure-token", commands.ArgBlock: "block", commands.ArgOneOf: "oneof"}
	all, _ := shown.([]any)
	require.Len(t, all, len(want), what)
	for i, a := range want {
		got, what := all[i].(map[any]any), what+" "+a.Name
		if a.Type == commands.ArgToken {
			a.Token = a.Name
		}
		assert.Equal(t, []any{strings.ToLower(a.Name), types[a.Type], a.Summary}, []any{got["name"], got["type"], got["summary"]}, what)
		token, _ := got["token"].(string)
		flags := fmt.Sprint(got["flags"])
		assert.Equal(t, []any{a.Token, a.Optional, a.Multiple},
			[]any{token, strings.Contains(flags, "optional"), strings.Contains(flags, "multiple")}, what)
		wantArgs(t, what, a.Sub, got["arguments"])
	}
}

// aclCategories returns the categories of a command on a server since 7.2, which lets modules name categories. own says that
// the module has one of its own.
func aclCategories(c sample, own bool) []string {
	all := []string{"@read", "@slow"}
	if c.Writes() {
		all[0] = "@write"
	}
	if c.fast() {
		all[1] = "@fast"
	}
	if own {
		all = append(all, "@throttle")
	}
	return all
}

// keyFlags returns the flags that the key spec of a command must have.
func keyFlags(c sample) []string {
	if c.Writes() {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

// With several I/O threads newer servers see the first key of GO.ALL only, and say so. The fake server's tests have the keys of
// more calls.
func TestSurface_commandGetKeys(t *testing.T) {
	for _, args := range [][]string{nil, ioThreads} {
		s := start(t, options{Args: args})
		for name, row := range samples {
			assert.Equal(t, []any{row.key("the key")}, s.getKeys(row.on("the key"), keyFlags(row)), name)
		}
		for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
			keys := fields("a b c")
			if !s.asks() {
				keys = keys[:1]
			}
			call := fields(name + " a WINDOW 1 60 1 EXACT KEY b QUOTA 1 60 ALIGN 3 key c LEASE 1 60 KEY")
			assert.Equal(t, keys, s.getKeys(call, keyFlags(samples[name])), name)
		}
		info := s.session().list("COMMAND", "INFO", "GO.ALL")[0]
		assert.Equal(t, s.asks(), strings.Contains(fmt.Sprint(info), "movablekeys"), info)
		err := s.CommandGetKeys(ctx, fields("GO.ALL a QUOTA 1 60 KEY a QUOTA 1 60")...).Err()
		assert.Equal(t, s.asks(), err != nil, "a call that is wrong has no keys")
	}
}

// getKeys returns the keys that the server finds in a call. They have these flags.
func (s *server) getKeys(call []any, flags []string) (keys []any) {
	s.t.Helper()
	for _, key := range s.CommandGetKeysAndFlags(ctx, call...).Val() {
		keys = append(keys, key.Key)
		assert.ElementsMatch(s.t, flags, key.Flags, "%v", call)
	}
	return keys
}

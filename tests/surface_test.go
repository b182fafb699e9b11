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

// What COMMAND, INFO and MODULE LIST show comes from the table, over structures of the server's API. So no transcript has it.

// COMMAND INFO says what the command table says. The first word of every call is a key, so clients that look no further send
// the call to the right node.
func TestSurface_commandInfo(t *testing.T) {
	s := start(t, options{})
	c := s.session()
	for _, row := range samples {
		reply := c.list("COMMAND", "INFO", row.Name)[0].([]any)
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		assert.ElementsMatch(t, row.flags(), wordsOf(reply[2]), row.Name)
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		if s.hasACLAPI() {
			categories := []string{"@read", "@slow"}
			if row.writes() {
				categories[0] = "@write"
			}
			if row.fast() {
				categories[1] = "@fast"
			}
			assert.Subset(t, wordsOf(reply[6]), categories, row.Name)
		}
		// A client that caches replies must not cache ours.
		assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output"}, wordsOf(reply[7]), "%s: tips", row.Name)
		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec, flags := dict(t, specs[0]), keyFlags(row)
		if row.asks() {
			flags = append(flags, "incomplete") // COMMAND GETKEYS and ACL rules ask the module
		}
		assert.ElementsMatch(t, flags, wordsOf(spec["flags"]), row.Name)
		assert.Equal(t, "[type index spec [index 1]]", fmt.Sprint(spec["begin_search"]), row.Name)
		assert.Equal(t, "[type range spec [lastkey 0 keystep 1 limit 0]]", fmt.Sprint(spec["find_keys"]), row.Name)
	}
	top := c.list("COMMAND", "INFO", "GO.TOP")[0].([]any)
	assert.ElementsMatch(t, []string{"admin", "readonly", "loading", "stale", "module"}, wordsOf(top[2]))
	assert.Equal(t, []any{int64(0), int64(0), int64(0)}, top[3:6], "GO.TOP has no key")
	assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output", "request_policy:all_shards"}, wordsOf(top[7]))
	assert.Empty(t, top[8], "key specs")
	if s.hasACLAPI() {
		assert.ElementsMatch(t, []string{"@slow", "@admin", "@dangerous"}, wordsOf(top[6]))
	}
}

// keyFlags returns the flags that the key spec of a command must have.
func keyFlags(c sample) []string {
	if c.writes() {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

func TestSurface_commandDocs(t *testing.T) {
	c := start(t, options{}).session()
	for _, row := range commands.Table {
		reply := c.list("COMMAND", "DOCS", row.Name)
		require.Len(t, reply, 2, row.Name)
		docs := dict(t, reply[1])
		assert.Equal(t, []any{row.Summary, row.Since, row.Complexity, "module"},
			[]any{docs["summary"], docs["since"], docs["complexity"], docs["group"]}, row.Name)
		checkArguments(t, row.Name, row.Args, docs["arguments"])
	}
}

func checkArguments(t *testing.T, where string, want []commands.Arg, got any) {
	t.Helper()
	all, _ := got.([]any)
	require.Len(t, all, len(want), where)
	for i, arg := range want {
		where, got := where+" "+arg.Name, dict(t, all[i])
		assert.True(t, strings.EqualFold(arg.Name, fmt.Sprint(got["name"])), "%s: %v", where, got["name"])
		kind := map[commands.ArgType]string{commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
			commands.ArgToken: "pure-token", commands.ArgBlock: "block", commands.ArgOneOf: "oneof"}[arg.Type]
		assert.Equal(t, []any{kind, arg.Summary}, []any{got["type"], got["summary"]}, where)
		flags, _ := got["flags"].([]any)
		assert.Equal(t, []bool{arg.Optional, arg.Multiple}, []bool{slices.Contains(flags, any("optional")), slices.Contains(flags, any("multiple"))}, where)
		token, key := any(nil), any(nil)
		if arg.Type == commands.ArgKey {
			key = int64(0)
		}
		if arg.Type == commands.ArgToken {
			token = arg.Name
		} else if arg.Token != "" {
			token = arg.Token
		}
		assert.Equal(t, []any{token, key}, []any{got["token"], got["key_spec_index"]}, where)
		if len(arg.Sub) > 0 {
			checkArguments(t, where, arg.Sub, got["arguments"])
		}
	}
}

func TestSurface_commandGetKeys(t *testing.T) {
	c := start(t, options{}).session()
	for name, row := range samples {
		assert.Equal(t, []any{row.key("the key")}, getKeys(t, c, row.on("the key"), keyFlags(row)), name)
	}
	for call, want := range map[string][]any{
		"GO.ALL a THROTTLE 1 1 60 THROTTLE 1 1 60 3 ms":                            {"a"},
		"GO.ALL a WINDOW 1 60 1 EXACT KEY b QUOTA 1 60 ALIGN 3 key c LEASE 1 60 d": {"a", "b", "c"},
		"GO.ALL KEY LEASE 1 60 KEY KEY MS LEASE 1 60 MS MS":                        {"KEY", "MS"},
		"GO.ALL QUOTA QUOTA 1 60 KEY THROTTLE THROTTLE 1 1 60":                     {"QUOTA", "THROTTLE"},
		// Numbers are not looked at, so a wrong number does not hide a key.
		"GO.ALL a THROTTLE x y z KEY b WINDOW 0 -1 99": {"a", "b"},
	} {
		for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
			words := fields(call)
			words[0] = name
			assert.Equal(t, want, getKeys(t, c, words, keyFlags(samples[name])), call)
		}
	}
	// All keys of GO.ALL, up to the last one.
	var groups []string
	var want []any
	for i := range 32 {
		groups, want = append(groups, fmt.Sprint("k", i, " QUOTA 1 2 3")), append(want, fmt.Sprint("k", i))
	}
	assert.Equal(t, want, getKeys(t, c, allOf(groups...), keyFlags(samples["GO.ALL"])))
	// A call that is wrong has no keys.
	for _, call := range []string{"GO.ALL a THROTTLE 1 1", "GO.ALL a b c d", "GO.ALL a QUOTA 1 60 KEY", "GO.ALL a QUOTA 1 60 KEY a QUOTA 1 60"} {
		assert.Error(t, c.Do(ctx, append([]any{"COMMAND", "GETKEYS"}, fields(call)...)...).Err(), call)
	}
}

// getKeys returns the keys that the server finds in a call. COMMAND GETKEYS and COMMAND GETKEYSANDFLAGS must agree.
func getKeys(t *testing.T, c session, call []any, flags []string) (keys []any) {
	t.Helper()
	keys = c.list(append([]any{"COMMAND", "GETKEYS"}, call...)...)
	both := c.list(append([]any{"COMMAND", "GETKEYSANDFLAGS"}, call...)...)
	require.Len(t, both, len(keys))
	for i := range both {
		assert.Equal(t, keys[i], both[i].([]any)[0], "%v", call)
		assert.ElementsMatch(t, flags, wordsOf(both[i].([]any)[1]), "%v", call)
	}
	return keys
}

// All fields of INFO but the version are flat integers, so that exporters can read them. INFO everything has them, INFO alone
// does not.
func TestSurface_info(t *testing.T) {
	s := start(t, options{})
	s.setPolicies("a.b-c_d SHADOW QUOTA 1 1h")
	for _, call := range []string{"GO.QUOTA q 1 60", "GO.QUOTA q 1 60", "GO.QUOTA q 1 60 0", "GO.QUOTA q x 60", "GO.POLICY a.b-c_d:k 2"} {
		s.ask(call)
	}
	info := s.counters()
	want := []string{"gothrottle_version", "gothrottle_version_number", "gothrottle_clock_lead_us", "gothrottle_panics", "gothrottle_top_keys"}
	for _, row := range commands.Table {
		for _, counter := range []string{"admitted", "limited", "other", "errors", "shadowed"} {
			want = append(want, sample{Command: row}.infoField()+"_"+counter)
		}
	}
	for _, counter := range []string{"admitted", "limited", "shadowed", "near"} {
		want = append(want, "gothrottle_policies_a.b-c_d_"+counter)
	}
	assert.Equal(t, "1", info["gothrottle_policies_a.b-c_d_shadowed"])
	var got, sums []string
	for field, value := range info {
		got = append(got, field)
		if field != "gothrottle_version" {
			assert.Regexp(t, `^\d+$`, value, field)
		}
		if strings.HasPrefix(field, "gothrottle_quota_") && !strings.Contains(field, "_ro_") {
			sums = append(sums, strings.TrimPrefix(field, "gothrottle_quota_")+" "+value)
		}
	}
	assert.ElementsMatch(t, want, got)
	assert.ElementsMatch(t, []string{"admitted 1", "limited 1", "other 1", "errors 1", "shadowed 0"}, sums)
	assert.Contains(t, s.Info(ctx, "everything").Val(), "gothrottle_version:")
	assert.NotContains(t, s.Info(ctx).Val(), "gothrottle_version:")

	var a, b, c int64
	_, err := fmt.Sscanf(info["gothrottle_version"], "%d.%d.%d", &a, &b, &c)
	require.NoError(t, err)
	for _, m := range s.session().list("MODULE", "LIST") { // some servers come with other modules
		if one := dict(t, m); one["name"] == "gothrottle" {
			assert.Equal(t, a*10000+b*100+c, one["ver"])
			assert.Equal(t, fmt.Sprint(one["ver"]), info["gothrottle_version_number"])
		}
	}
}

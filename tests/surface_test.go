package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
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
	assert.Len(t, c.list("COMMAND", "LIST", "FILTERBY", "MODULE", "gothrottle"), len(commands.Table))
	for _, row := range samples {
		reply := c.list("COMMAND", "INFO", row.Name)[0].([]any)
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		assert.ElementsMatch(t, row.flags(), wordsOf(reply[2]), row.Name)
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		// A client that caches replies must not cache ours.
		assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output"}, wordsOf(reply[7]), "%s: tips", row.Name)
		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec, flags := dict(t, specs[0]), keyFlags(row)
		if row.asks() {
			flags = append(flags, "incomplete") // COMMAND GETKEYS and ACL rules ask the module
		}
		assert.ElementsMatch(t, flags, wordsOf(spec["flags"]), row.Name)
		assert.Equal(t, "[type index spec [index 1]] [type range spec [lastkey 0 keystep 1 limit 0]]",
			fmt.Sprint(spec["begin_search"], " ", spec["find_keys"]), row.Name)
	}
	top := c.list("COMMAND", "INFO", "GO.TOP")[0].([]any)
	assert.ElementsMatch(t, []string{"admin", "readonly", "loading", "stale", "module"}, wordsOf(top[2]))
	assert.Equal(t, []any{int64(0), int64(0), int64(0)}, top[3:6], "GO.TOP has no key")
	assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output", "request_policy:all_shards"}, wordsOf(top[7]))
	assert.Empty(t, top[8], "key specs")
	if s.hasACLAPI() {
		assert.ElementsMatch(t, []string{"@slow", "@admin", "@dangerous"}, wordsOf(top[6]))
	}
	// The fake server's tests compare all of COMMAND DOCS.
	for _, row := range commands.Table {
		docs := dict(t, c.list("COMMAND", "DOCS", row.Name)[1])
		assert.Equal(t, []any{row.Summary, row.Since, row.Complexity, "module"},
			[]any{docs["summary"], docs["since"], docs["complexity"], docs["group"]}, row.Name)
		all, _ := docs["arguments"].([]any)
		require.Len(t, all, len(row.Args), row.Name)
		for i, arg := range row.Args {
			assert.True(t, strings.EqualFold(arg.Name, dict(t, all[i])["name"].(string)), "%s %s", row.Name, arg.Name)
		}
	}
}

// keyFlags returns the flags that the key spec of a command must have.
func keyFlags(c sample) []string {
	if c.writes() {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

// With several I/O threads newer servers see the first key of GO.ALL only, and say so.
func TestSurface_commandGetKeys(t *testing.T) {
	for _, args := range [][]string{nil, ioThreads} {
		s := start(t, options{Args: args})
		c := s.session()
		for name, row := range samples {
			assert.Equal(t, []any{row.key("the key")}, getKeys(t, c, row.on("the key"), keyFlags(row)), name)
		}
		for call, want := range map[string]string{
			"a THROTTLE 1 1 60 THROTTLE 1 1 60 3 ms":                            "a",
			"a WINDOW 1 60 1 EXACT KEY b QUOTA 1 60 ALIGN 3 key c LEASE 1 60 d": "a b c",
			"KEY LEASE 1 60 KEY KEY MS LEASE 1 60 MS MS":                        "KEY MS",
			"QUOTA QUOTA 1 60 KEY THROTTLE THROTTLE 1 1 60":                     "QUOTA THROTTLE",
			// Numbers are not looked at, so a wrong number does not hide a key.
			"a THROTTLE x y z KEY b WINDOW 0 -1 99": "a b",
		} {
			for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
				keys := fields(want)
				if !s.asks() {
					keys = keys[:1]
				}
				assert.Equal(t, keys, getKeys(t, c, fields(name+" "+call), keyFlags(samples[name])), call)
			}
		}
		movable := wordsOf(c.list("COMMAND", "INFO", "GO.ALL")[0].([]any)[2])
		assert.Equal(t, s.asks(), strings.Contains(fmt.Sprint(movable), "movablekeys"), movable)
		for _, call := range []string{"GO.ALL a THROTTLE 1 1", "GO.ALL a b c d", "GO.ALL a QUOTA 1 60 KEY a QUOTA 1 60"} {
			err := c.Do(ctx, append([]any{"COMMAND", "GETKEYS"}, fields(call)...)...).Err()
			assert.Equal(t, s.asks(), err != nil, "a call that is wrong has no keys: %s", call)
		}
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

// INFO everything has the module's fields, INFO alone does not. The version is that of MODULE LIST. A call that the server
// refuses isn't an error in the module's counters.
func TestSurface_info(t *testing.T) {
	s := start(t, options{})
	s.setPolicies("a.b-c_d SHADOW QUOTA 1 1h")
	s.must("GO.POLICY a.b-c_d:k 2")
	s.ask("GO.QUOTA q x 60")
	nobody := s.as("nobody", "~* -@all")
	mayOrNot(t, false, nobody.do("GO.QUOTA", "q", 1, 60), "no permission")
	s.must("CONFIG SET maxmemory 1")
	require.ErrorContains(t, s.Do(ctx, "GO.QUOTA", "q", 1, 60).Err(), "OOM ")
	info := s.counters()
	assert.Equal(t, []string{"1", "0", "0", "1"}, []string{info["gothrottle_quota_errors"], info["gothrottle_quota_admitted"], info["gothrottle_panics"],
		info["gothrottle_policies_a.b-c_d_shadowed"]})
	assert.Contains(t, s.Info(ctx, "everything").Val(), "gothrottle_version:")
	assert.NotContains(t, s.Info(ctx).Val(), "gothrottle_version:")
	var a, b, c int64
	_, err := fmt.Sscanf(info["gothrottle_version"], "%d.%d.%d", &a, &b, &c)
	require.NoError(t, err)
	assert.Equal(t, a*10000+b*100+c, s.modules()["gothrottle"])
	assert.Equal(t, fmt.Sprint(a*10000+b*100+c), info["gothrottle_version_number"])
}

// GO.TOP counts in each database and in transactions and scripts. A replica counts its own.
func TestTop(t *testing.T) {
	net := newNetwork(t)
	s, r := start(t, options{Network: net}), start(t, options{Network: net})
	assert.Contains(t, s.ask("GO.TOP"), "ERR no denials are counted")
	for _, one := range []*server{s, r} {
		one.must("CONFIG SET gothrottle.top-keys 1000")
	}
	r.follow(s)
	s.must("GO.QUOTA k 1 60 2")
	_, err := s.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "SELECT", 3)
		p.Do(ctx, "GO.QUOTA", "other", 1, 60, 2)
		p.Do(ctx, "SELECT", 0)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Eval(ctx, "return redis.call('GO.QUOTA', 'k', 1, 60, 2)", nil).Err())
	r.inStep(s)
	assert.Equal(t, "[[0:k 2 0] [3:other 1 0]]", s.ask("GO.TOP"))
	assert.Equal(t, "[]", r.ask("GO.TOP"))
}

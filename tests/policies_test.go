package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const policiesName = "gothrottle.policies"

// policies returns the value of the configuration.
func (s *server) policies() string {
	s.t.Helper()
	values, err := s.ConfigGet(ctx, policiesName).Result()
	require.NoError(s.t, err)
	require.Contains(s.t, values, policiesName)
	return values[policiesName]
}

// setPolicies sets the configuration.
func (s *server) setPolicies(value string) {
	s.t.Helper()
	require.NoError(s.t, s.ConfigSet(ctx, policiesName, value).Err(), value)
}

// configFile returns options for a server with these lines in its configuration file. LOAD is
// the directive that loads the module.
func configFile(t *testing.T, lines ...string) options {
	t.Helper()
	localOnly(t)
	file := filepath.Join(t.TempDir(), "server.conf")
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "LOAD", "loadmodule "+env.module)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return options{bare: true, config: file}
}

// Transcripts set policies by CONFIG SET. Those of a configuration file are a quoted value, or the words of the rest of the line. The
// line may be before or after the directive that loads the module.
func TestPolicies_configFile(t *testing.T) {
	const line = "gothrottle.policies "
	const two = "login THROTTLE 4 5 300s LOCKOUT 15m; api QUOTA 9 1d ALIGN -1h"
	for _, row := range []struct {
		lines []string
		want  string
	}{
		{[]string{"LOAD"}, ""},
		{[]string{line + `"` + two + `"`, "LOAD"}, two},
		{[]string{"LOAD", line + `'` + two + `'`}, two},
		{[]string{"LOAD", line + two}, two},
		{[]string{"LOAD", line + `"  login   THROTTLE 4 5 300s\tLOCKOUT 15m;\r\n  api QUOTA 9 1d ALIGN -1h  "`}, two},
		{[]string{"LOAD", line + `"a WINDOW 1 1s,;"`}, "refused: policy 1 (a), clause 2: a clause is missing"},
		{[]string{"LOAD", line + `"a WINDOW 1 1s ;"`}, "a WINDOW 1 1s ;"},
		{[]string{"LOAD", line + `"b WINDOW 1 1s"`, line + `"a WINDOW 1 1s"`}, "a WINDOW 1 1s"}, // the server takes the last line
		{[]string{"LOAD", line + `"` + two + `; api WINDOW 1 1s"`}, "refused: policy 3 (api): policy 2 has the same name"},
		{[]string{line + "a", "LOAD"}, "refused: policy 1 (a): a clause is missing"},
	} {
		o := configFile(t, row.lines...)
		if text, refused := strings.CutPrefix(row.want, "refused: "); refused {
			log := refuse(t, o)
			assert.Contains(t, log, text)
			assert.Contains(t, log, "gothrottle not loaded: a value of its configuration is wrong")
			continue
		}
		assert.Equal(t, row.want, start(t, o).policies(), "%q", row.lines)
	}
}

// A wrong value changes nothing: neither the policies nor what is set by the same command.
func TestPolicies_configSet(t *testing.T) {
	s := start(t, options{})
	const old = "a QUOTA 1 1s"
	s.setPolicies(old)
	samples := s.ConfigGet(ctx, "maxmemory-samples").Val()
	for _, row := range []struct {
		words []any
		want  string
	}{
		{[]any{policiesName, "a QUOTA 1 1s; b QUOTA"}, "policy 2 (b): 'QUOTA' needs limit and period"},
		{[]any{policiesName, "b QUOTA 1 1s; b\r\nQUOTA 1 1"}, "policy 2 (b): period must be an integer with a unit, such as"},
		{[]any{policiesName, old + strings.Repeat(" ", 40<<20)}, "the text has 41943052 bytes; at most 1048576 are allowed"},
		{[]any{"maxmemory-samples", 7, policiesName, "b"}, "policy 1 (b): a clause is missing"},
		{[]any{policiesName, "b QUOTA 1 1s", "maxmemory-samples", -1}, "maxmemory-samples"},
	} {
		err := s.Do(ctx, append([]any{"CONFIG", "SET"}, row.words...)...).Err()
		require.ErrorContains(t, err, row.want)
		assert.Equal(t, old, s.policies(), row.words)
		assert.Equal(t, samples, s.ConfigGet(ctx, "maxmemory-samples").Val(), row.words)
	}
	longest := "c QUOTA 1 1s" + strings.Repeat(" ", 1<<20-len("c QUOTA 1 1s"))
	require.NoError(t, s.Do(ctx, "CONFIG", "SET", policiesName, longest, "maxmemory-samples", 7).Err())
	assert.Equal(t, "c QUOTA 1 1s", s.policies())
	assert.Contains(t, s.ConfigGet(ctx, "*policies*").Val(), policiesName)
}

// MODULE LOADEX takes the policies, and refuses the load if they are wrong. A load without policies
// has none, whatever an earlier load had.
func TestPolicies_loadex(t *testing.T) {
	s := startBare(t)
	loadex := func(words ...any) error {
		return s.Do(ctx, append([]any{"MODULE", "LOADEX", env.module}, words...)...).Err()
	}
	for range 2 {
		require.Error(t, loadex("CONFIG", policiesName, "a QUOTA 1"))
		assert.Contains(t, s.log(), "policy 1 (a): 'QUOTA' needs limit and period")
		require.NotContains(t, s.modules(), "gothrottle")
		require.Error(t, loadex("CONFIG", policiesName, "a QUOTA 1 1s", "CONFIG", "foo.bar", 1))
		require.NotContains(t, s.modules(), "gothrottle")
		require.NoError(t, loadex("CONFIG", policiesName, "b  QUOTA 1 1s", "ARGS", "cl-throttle", "no"))
		assert.Equal(t, "b QUOTA 1 1s", s.policies())
		require.NoError(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
		assert.Empty(t, s.ConfigGet(ctx, policiesName).Val())
		require.NoError(t, loadex())
		assert.Empty(t, s.policies())
		require.NoError(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	}
}

// The name of the module is the first part of the name of the configuration. A server does not start
// with a configuration of a module that it has not.
func TestPolicies_moduleName(t *testing.T) {
	s := start(t, configFile(t, `redis-cell.policies "a QUOTA 1 1s"`, "LOAD module-name redis-cell"))
	assert.Equal(t, map[string]string{"redis-cell.policies": "a QUOTA 1 1s"}, s.ConfigGet(ctx, "*.policies").Val())
	require.NoError(t, s.ConfigSet(ctx, "redis-cell.policies", "b QUOTA 1 1s").Err())
	refuse(t, configFile(t, `gothrottle.policies "a QUOTA 1 1s"`, "LOAD module-name redis-cell"))
}

// slowPolicies are of every kind. Nothing of them drains while a test runs.
const slowPolicies = "login THROTTLE 4 1 35d LOCKOUT 30d; api THROTTLE 9 1 35d, THROTTLE 99 1 30d; " +
	"win WINDOW 5 35d; export QUOTA 5 35d ALIGN 1h; beta SHADOW THROTTLE 4 1 35d LOCKOUT 30d"

// left returns what remains at a key: the first inner array says it.
func (s *server) left(key string) int64 {
	s.t.Helper()
	reply, err := s.Do(ctx, "GO.POLICY_RO", key, 0).Slice()
	require.NoError(s.t, err, key)
	return reply[6].([]any)[2].(int64)
}

// No transcript has users. Whatever words a user with nothing but +go.policy and a key pattern gives GO.POLICY, usage never
// shrinks, no key of another pattern changes, and no limit but that of the policy decides.
func TestPolicies_anyWordsOfAUser(t *testing.T) {
	s := start(t, options{})
	slowNames := []string{"login", "api", "win", "export", "beta"}
	s.setPolicies(slowPolicies)
	for _, name := range slowNames {
		user := s.as("app-"+name, "~"+name+":* +go.policy")
		key := name + ":bob"
		require.NoError(t, s.Do(ctx, "GO.POLICY", key, 2).Err())
		outside := s.dataset()
		delete(outside, "0 "+key)
		last := s.left(key)
		for _, words := range []string{
			"-1", "-2", "-0", "-1000000000001", "-9223372036854775808", "-99999999999999999999", "0", "+1", "0 MS", "1 FORCE", "1 UPTO",
			"UPTO", "FORCE", "-1 FORCE", "-1 MS", "MS -1", "LOCKOUT 1", "1 LOCKOUT 1", "RESERVE 0", "EXACT", "ALIGN 0", "SHADOW", "99 1 1", "1 1",
			"THROTTLE 99 1 1", "KEY api:eve", "1 KEY export:eve", "1000000000001", "1000000000002", "9223372036854775807", "x", "1.5", "1e3", "2",
		} {
			reply := user.do(append([]any{"GO.POLICY", key}, fields(words)...)...)
			now := s.left(key)
			assert.LessOrEqual(t, now, last, "%s %s: %v", key, words, reply)
			if number, found := strings.CutPrefix(words, "-"); found && number != "0" {
				assert.Implements(t, (*error)(nil), reply, "%s %s", key, words)
				assert.Equal(t, last, now, "%s %s", key, words)
			}
			last = now
		}
		for _, other := range slowNames {
			if other != name {
				mayOrNot(t, false, user.do("GO.POLICY", other+":bob"), other)
			}
		}
		mayOrNot(t, false, user.do("GO.POLICY", name), "a key outside the pattern")
		// The user uses the limit up, and gets no unit more.
		granted := int64(0)
		for range 30 {
			if reply, ok := user.do("GO.POLICY", key).([]any); ok && reply[6].([]any)[0] == int64(0) {
				granted++
			}
		}
		assert.LessOrEqual(t, granted, last, key)
		after := s.dataset()
		delete(after, "0 "+key)
		same(t, outside, after, "keys of others")
	}
}

package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
)

// slowPolicies are of every kind. Nothing of them drains while a test runs.
const slowPolicies = "login THROTTLE 4 1 35d LOCKOUT 30d; api THROTTLE 9 1 35d, THROTTLE 99 1 30d; " +
	"win WINDOW 5 35d; export QUOTA 5 35d ALIGN 1h; beta SHADOW THROTTLE 4 1 35d LOCKOUT 30d"

// slowNames are the names of slowPolicies.
var slowNames = []string{"login", "api", "win", "export", "beta"}

// left returns what remains at a key, told by the first inner array.
func (s *server) left(key string) int64 {
	s.t.Helper()
	reply, err := s.Do(ctx, "GO.POLICY_RO", key, 0).Slice()
	require.NoError(s.t, err, key)
	return reply[6].([]any)[2].(int64)
}

// A user with nothing but +go.policy and a key pattern can change the limiters of the pattern by no
// other command of the server.
func TestPolicy_aclEveryCommand(t *testing.T) {
	s := start(t, options{args: []string{"--enable-module-command", "yes", "--enable-debug-command", "yes"}})
	s.setPolicies(slowPolicies)
	user := s.as("app", "~login:* +go.policy")
	for range 6 { // the last call begins a lockout
		user.do("GO.POLICY", "login:bob")
	}
	user.do("GO.POLICY", "login:ann", 3)
	before, tried := s.dataset(), 0
	for _, command := range wordsOf(s.wire().do("COMMAND", "LIST")) {
		info := s.wire().do("COMMAND", "INFO", command).([]any)[0].([]any)
		if strings.EqualFold(command, "go.policy") {
			continue
		}
		tried += s.tryAs(t, "app", command, info)
	}
	assert.Greater(t, tried, 300)
	same(t, before, s.dataset(), "after every command")
	assert.Equal(t, slowPolicies, s.policies())
	// The words of our own commands in full, not only as many as the arity says.
	for name, c := range samples {
		if name != "GO.POLICY" {
			mayOrNot(t, false, user.do(c.on("login:bob")...), name)
		}
	}
	mayOrNot(t, false, user.do("CONFIG", "SET", policiesName, "login QUOTA 9 1s"), "CONFIG SET")
	mayOrNot(t, false, user.do("EVAL", "return redis.call('DEL', KEYS[1])", 1, "login:bob"), "EVAL")
	same(t, before, s.dataset(), "after commands of the module")
}

// tryAs lets a user try a command, or a subcommand, on keys that the user may use. It returns 1 if the
// server has to check the permission.
func (s *server) tryAs(t *testing.T, user, command string, info []any) int {
	t.Helper()
	for _, flag := range wordsOf(info[2]) {
		if flag == "no_auth" { // AUTH, HELLO, QUIT, RESET: for every connection
			return 0
		}
	}
	var words []any
	for _, word := range strings.Split(command, "|") {
		words = append(words, word)
	}
	need := info[1].(int64)
	for int64(len(words)) < max(need, -need) {
		words = append(words, "login:bob")
	}
	w := s.wireFor(t)
	defer w.conn.Close()
	require.Equal(t, status("OK"), w.do("AUTH", user, "x"))
	reply := fmt.Sprint(w.do(words...))
	// A container of subcommands has no permission of its own.
	assert.Regexp(t, "^NOPERM |^EXECABORT .*: NOPERM |^ERR unknown subcommand", reply, "%q", words)
	return 1
}

// Whatever words such a user gives GO.POLICY, usage never shrinks, no key of another pattern changes,
// and no limit but that of the policy decides.
func TestPolicy_aclEveryWord(t *testing.T) {
	s := start(t, options{})
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
				assert.IsType(t, wireError(""), reply, "%s %s", key, words)
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

// A replica gets the effects of calls, and no policies. After its promotion it needs the policies, and
// then has the usage and the lockout.
func TestPolicy_replica(t *testing.T) {
	master, replica := startReplica(t)
	master.setPolicies(slowPolicies)
	for _, name := range slowNames {
		master.must("GO.POLICY " + name + ":bob 3")
	}
	for range 3 { // login is locked then
		master.must("GO.POLICY login:bob")
	}
	inStep(t, master, replica)
	same(t, master.dataset(), replica.dataset(), "the replica")
	const none = "ERR no policy for the key 'login:bob'"
	assert.EqualError(t, replica.Do(ctx, "GO.POLICY_RO", "login:bob").Err(), none)
	assert.ErrorContains(t, replica.Do(ctx, "GO.POLICY", "login:bob").Err(), "READONLY ")
	require.NoError(t, replica.SlaveOf(ctx, "NO", "ONE").Err())
	assert.EqualError(t, replica.Do(ctx, "GO.POLICY", "login:bob").Err(), none)
	replica.setPolicies(slowPolicies)
	for _, name := range slowNames {
		for _, quantity := range []string{"0", "1", "3", "9"} {
			alike(t, name, func() (string, string) {
				call := "GO.POLICY_RO " + name + ":bob " + quantity
				return master.ask(call), replica.ask(call)
			})
		}
	}
	assert.Regexp(t, `^\[1 5 0 `, replica.ask("GO.POLICY login:bob"))
}

// The policies and the usage are there after a restart from the files that the server wrote.
func TestPolicy_restart(t *testing.T) {
	o := configFile(t, "LOAD", "appendonly yes")
	s := start(t, o)
	s.setPolicies(slowPolicies)
	for range 2 {
		for _, name := range slowNames {
			s.must("GO.POLICY " + name + ":bob 2")
			s.must("GO.POLICY " + name + ":ann 4")
		}
	}
	require.NoError(t, s.ConfigRewrite(ctx).Err())
	before := s.dataset()
	s = s.restart(o)
	same(t, before, s.dataset(), "after the restart")
	for _, name := range slowNames {
		assert.Regexp(t, `^\[`, s.ask("GO.POLICY "+name+":bob"))
	}
	assert.Regexp(t, `^\[1 5 0 `, s.ask("GO.POLICY_RO login:ann"), "it is locked")
}

// The server sees the key without asking the module, also on I/O threads.
func TestPolicy_getKeysOnThreads(t *testing.T) {
	s := start(t, options{args: ioThreads})
	for _, name := range []string{"GO.POLICY", "GO.POLICY_RO"} {
		c := samples[name]
		assert.Equal(t, []any{c.key("k")}, getKeys(t, s.wire(), c.on("k"), keyFlags(c)), name)
		assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on(name)...).Result()), name)
	}
	assert.Equal(t, corpus.SamplePolicies, s.policies())
}

package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// fields splits a line into words for a command.
func fields(line string) []any {
	return corpus.Args(strings.Fields(line))
}

// flat returns a reply, or an error, as text.
func flat(v any, err error) string {
	switch {
	case failure(err) != nil:
		return err.Error()
	case v == nil:
		return "(nil)"
	}
	return fmt.Sprint(v)
}

// failure returns the error of a call. The client returns an error for a null reply, too, which is none.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// ask sends a line and returns the reply as text.
func (s *server) ask(call string) string {
	return flat(s.Do(ctx, fields(call)...).Result())
}

// must sends a line and returns the reply as text. An error fails the test.
func (s *server) must(call string) string {
	s.t.Helper()
	v, err := s.Do(ctx, fields(call)...).Result()
	require.NoError(s.t, err, call)
	return flat(v, nil)
}

// session is one connection.
type session struct{ *redis.Conn }

// session opens a connection, which the end of the test closes.
func (s *server) session() session {
	c := session{s.client(3).Conn()} // a connection of a pool would keep its user and database
	s.t.Cleanup(func() { c.Close() })
	return c
}

// as creates a user with these rules and returns a connection of that user.
func (s *server) as(user, rules string) session {
	s.t.Helper()
	set := append([]any{"ACL", "SETUSER", user, "on", "nopass"}, fields(rules)...)
	require.NoError(s.t, s.Do(ctx, append(set, "+auth")...).Err(), rules)
	c := s.session()
	require.Equal(s.t, "OK", c.do("AUTH", user, "x"))
	return c
}

// do sends a command and returns its reply, which may be an error.
func (c session) do(words ...any) any {
	v, err := c.Do(ctx, words...).Result()
	if failure(err) != nil {
		return err
	}
	return v
}

// list sends a command whose reply is an array.
func (c session) list(words ...any) []any {
	all, _ := c.do(words...).([]any)
	return all
}

// mayOrNot checks that a call was permitted, or that the reply is NOPERM.
func mayOrNot(t testing.TB, may bool, reply any, what string) {
	t.Helper()
	err, failed := reply.(error)
	if may {
		assert.False(t, failed, "%s: %v", what, reply)
	} else if assert.True(t, failed, "%s: %v", what, reply) {
		assert.Regexp(t, "^NOPERM ", err.Error(), what)
	}
}

// info returns one field of an INFO section, "" if the field is absent.
func (s *server) info(section, field string) string {
	s.t.Helper()
	text, err := s.Info(ctx, section).Result()
	require.NoError(s.t, err)
	return servers.Field(text, field)
}

// since says whether the server has the features of Redis major.minor. Valkey reports Redis
// 7.2.4, so since says false for all that is newer.
func (s *server) since(major, minor int) bool {
	var a, b int
	version := s.info("server", "redis_version")
	_, err := fmt.Sscanf(version, "%d.%d", &a, &b)
	require.NoError(s.t, err, version)
	return a > major || a == major && b >= minor
}

// now returns the server's clock in ns.
func (s *server) now() int64 {
	s.t.Helper()
	now, err := s.Time(ctx).Result()
	require.NoError(s.t, err)
	return now.UnixNano()
}

// dataset returns what each key of a server holds.
func (s *server) dataset() map[string]string {
	s.t.Helper()
	keys, all := s.Keys(ctx, "*").Val(), map[string]string{}
	found, err := s.EvalRO(ctx, corpus.ReadKeys, keys).Slice()
	require.NoError(s.t, err)
	for key, v := range corpus.Values(keys, found) {
		if v != nil {
			all[key] = corpus.Dump(map[string]*memory.Value{key: v}, 0)
		}
	}
	return all
}

// A sample is a row of the command table, with a call that is admitted. Tests of properties that every command has use
// the samples.
type sample struct {
	commands.Command
	Sample *corpus.Sample
}

var samples = func() map[string]sample {
	all := map[string]sample{}
	for _, row := range commands.Table {
		if !row.NoKey { // GO.TOP has none
			all[row.Name] = sample{row, corpus.Samples[row.Name]}
		}
	}
	return all
}()

// fast says whether the command has the flag fast.
func (c sample) fast() bool { return strings.HasSuffix(c.Flags, " fast") }

// flags returns the flags that COMMAND INFO must show.
func (c sample) flags() []string {
	all := append(strings.Fields(strings.ReplaceAll(c.Flags, "deny-oom", "denyoom")), "module")
	if c.asks() {
		all = append(all, "movablekeys")
	}
	return all
}

// asks says whether the server must ask the command for its keys.
func (c sample) asks() bool { return c.Plan != nil && !c.OneKey }

// on returns the words of the call with key in place of KEY. The key may hold any bytes.
func (c sample) on(key string) []any {
	words := fields(c.Sample.Call)
	words[1] = strings.Replace(words[1].(string), "KEY", key, 1)
	return words
}

// key returns the key of the call that on returns: a command may want a prefix.
func (c sample) key(key string) string { return c.on(key)[1].(string) }

// asks says whether the server asks the module for the keys of GO.ALL. If it does not, the server
// sees the first key only, and the module checks the other keys.
func (s *server) asks() bool {
	s.t.Helper()
	threads := s.ConfigGet(ctx, "io-threads").Val()["io-threads"]
	require.NotEmpty(s.t, threads)
	valkey := s.info("server", "valkey_version") != ""
	if !valkey && !s.since(8, 0) { // these servers ask on their main thread only
		return true
	}
	return threads == "1" && !(valkey && s.info("cluster", "cluster_enabled") == "1")
}

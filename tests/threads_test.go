package tests

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// ioThreads makes a server read commands on several threads.
var ioThreads = []string{"--io-threads", "4"}

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

// threeLimits returns a random call of GO.ALL over three keys. Nothing drains while a test runs.
func threeLimits(random *rand.Rand, tag string) string {
	return strings.NewReplacer("{}", "{"+tag+"}").Replace(fmt.Sprintf(
		"GO.ALL {}THROTTLE THROTTLE 19 1 %[1]s %[2]d KEY {}WINDOW WINDOW 20 %[1]s %[3]d KEY {}QUOTA QUOTA 20 %[1]s %[4]d", frozen,
		anyQuantity(random), anyQuantity(random), anyQuantity(random)))
}

func anyQuantity(random *rand.Rand) int { return []int{0, 1, 1, 2, 3, -1, -2, -2}[random.IntN(8)] }

// verdicts returns whether the call is denied, and for each clause whether it denies and what is left. Which clause decides
// depends on the time.
func verdicts(reply any, err error) (text string) {
	all, _ := reply.([]any)
	if len(all) < 7 || failure(err) != nil {
		return fmt.Sprint(reply, err)
	}
	text = fmt.Sprint(all[0], " ")
	for _, inner := range all[6:] {
		text += fmt.Sprint(inner.([]any)[0], inner.([]any)[2], " ")
	}
	return text
}

// pipelines opens a connection for each tag. Each connection sends 2,000 calls of GO.ALL over the three keys of its tag, in
// pipelines of 16 to 50. Package memory knows what every reply must be, but for the times.
func (s *server) pipelines(t *testing.T, tags []string) {
	t.Helper()
	s.together(len(tags), func(client int, conn *redis.Conn) {
		random, model := rand.New(rand.NewPCG(7, uint64(client))), memory.NewServer()
		for range 60 {
			p := conn.Pipeline()
			var calls []string
			for range 16 + random.IntN(35) {
				calls = append(calls, threeLimits(random, tags[client]))
				p.Do(ctx, fields(calls[len(calls)-1])...)
			}
			cmds, err := p.Exec(ctx)
			assert.NoError(t, err)
			for i, call := range calls {
				want := verdicts(model.Do(corpus.Epoch, strings.Fields(call)...))
				if !assert.Equal(t, want, verdicts(cmds[i].(*redis.Cmd).Result()), call) {
					return
				}
			}
		}
	})
	require.False(t, s.exited(), "the server has ended")
}

// Eight connections send pipelines of GO.ALL. Every reply is right, the server lives, and the
// append-only file holds every effect.
func TestAll_pipelinesWithIOThreads(t *testing.T) {
	lasts(t)
	o := options{args: append([]string{"--appendonly", "yes"}, ioThreads...)}
	s := start(t, o)
	s.pipelines(t, []string{"a", "b", "c", "d", "e", "f", "g", "h"})
	for _, counter := range []string{"gothrottle_all_admitted", "gothrottle_all_limited"} {
		n, err := strconv.Atoi(s.counters()[counter])
		require.NoError(t, err)
		assert.Greater(t, n, 2000, counter)
	}
	before := s.dataset()
	require.Greater(t, len(before), 12)
	s = s.restart(o)
	same(t, before, s.dataset(), "restarted from the append-only file")
}

// With several I/O threads the server sees the first key of GO.ALL only, and says so.
func TestAll_keysWithIOThreads(t *testing.T) {
	s := start(t, options{args: append([]string{"--appendonly", "yes"}, ioThreads...)})
	w := s.session()
	if s.asks() { // Redis before 8 asks on its main thread only, so the module lets it
		call := fields("GO.ALL a QUOTA 9 60 KEY b WINDOW 9 60 KEY c LEASE 9 60 d")
		assert.Equal(t, []any{"a", "b", "c"}, getKeys(t, w, call, keyFlags(samples["GO.ALL"])))
		return
	}
	for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
		call := fields(name + " a QUOTA 9 60 KEY b WINDOW 9 60 KEY c LEASE 9 60 d")
		assert.Equal(t, []any{"a"}, getKeys(t, w, call, keyFlags(samples[name])), name)
		reply := w.do("COMMAND", "INFO", name).([]any)[0].([]any)
		assert.NotContains(t, wordsOf(reply[2]), "movablekeys", name)
		spec := dict(t, reply[8].([]any)[0])
		assert.ElementsMatch(t, keyFlags(samples[name]), wordsOf(spec["flags"]), name)
	}
	s.must("GO.ALL a QUOTA 9 60 KEY b WINDOW 9 60")
	all, err := s.Info(ctx, "everything").Result()
	require.NoError(t, err)
	assert.Contains(t, all, "\ngothrottle_all_admitted:1\r")
	assert.Contains(t, all, "\ngothrottle_panics:0\r")
}

// The module refuses a further key as the server refuses the first one: outside of transactions,
// in scripts and in transactions. The refusal is in the server's log of refusals.
func TestAll_permissionsWithIOThreads(t *testing.T) {
	s := start(t, options{args: append([]string{"--appendonly", "yes"}, ioThreads...)})
	if s.asks() { // the server itself refuses all keys: see TestACL_keysOfSeveralLimits
		return
	}
	user := s.as("al", "~a* %R~r* -@all +go.all +go.all_ro +eval +multi +exec")
	for _, c := range []struct{ call, refused string }{ // refused: the key that goes to ACL LOG
		{"GO.ALL a1 QUOTA 99 60 KEY a2 WINDOW 99 60 KEY a3 THROTTLE 99 1 60", ""},
		{"GO.ALL_RO r1 QUOTA 99 60 KEY a2 WINDOW 99 60 KEY r2 THROTTLE 99 1 60", ""},
		{"GO.ALL a1 QUOTA 99 60 KEY b1 WINDOW 99 60", "b1"},
		{"GO.ALL a1 QUOTA 99 60 KEY a2 WINDOW 99 60 KEY b2 WINDOW 99 60", "b2"},
		{"GO.ALL a1 QUOTA 99 60 KEY r1 WINDOW 99 60", "r1"},
		{"GO.ALL_RO a1 QUOTA 99 60 KEY b3 WINDOW 99 60", "b3"},
		{"GO.ALL_RO r1 QUOTA 99 60 KEY r2 WINDOW 99 60 KEY b4 WINDOW 99 60", "b4"},
	} {
		words := fields(c.call)
		for how, run := range map[string]func() any{
			"direct": func() any { return user.do(words...) },
			"script": func() any {
				return user.do(append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, words...)...)
			},
			"transaction": func() any {
				require.Equal(t, "OK", user.do("MULTI"))
				require.Equal(t, "QUEUED", user.do(words...))
				reply := user.do("EXEC")
				if all, ok := reply.([]any); ok {
					return all[0]
				}
				return reply
			},
		} {
			what := how + ": " + c.call
			require.NoError(t, s.Do(ctx, "ACL", "LOG", "RESET").Err())
			before := s.dataset()
			reply, log := run(), s.session().list("ACL", "LOG")
			if c.refused == "" {
				assert.IsType(t, []any{}, reply, what)
				assert.Empty(t, log, what)
				continue
			}
			assert.Contains(t, fmt.Sprint(reply), "NOPERM No permissions to access a key", what)
			same(t, before, s.dataset(), what)
			if assert.Len(t, log, 1, what) {
				entry := dict(t, log[0])
				assert.Equal(t, []any{"key", c.refused, "al"}, []any{entry["reason"], entry["object"], entry["username"]}, what)
			}
		}
	}
	assert.EqualValues(t, 3, s.Exists(ctx, "a1", "a2", "a3").Val())
}

// A selector permits its own commands on its own keys, and no other. A further key that only the
// selector of another command permits is refused, as the server refuses it in the first place.
func TestAll_selectorsWithIOThreads(t *testing.T) {
	t.Run("one thread", func(t *testing.T) { testSelectors(t, start(t, options{})) })
	t.Run("I/O threads", func(t *testing.T) { testSelectors(t, start(t, options{args: ioThreads})) })
}

func testSelectors(t *testing.T, s *server) {
	t.Helper()
	require.NoError(t, s.Do(ctx, "ACL", "SETUSER", "al", "on", "nopass", "-@all", "+auth", "~a*", "+go.all", "+go.all_ro",
		"(+get +set ~b*)", "(+go.all_ro ~c*)", "(+go.quota ~d*)").Err())
	user := s.session()
	require.Equal(t, "OK", user.do("AUTH", "al", "x"))
	mayOrNot(t, true, user.do("SET", "b1", "1"), "SET")
	for _, key := range []string{"a2", "b2", "c2", "d2"} {
		first := fields("GO.ALL " + key + " QUOTA 9 60")
		further := fields("GO.ALL a1 QUOTA 9 60 KEY " + key + " QUOTA 9 60")
		mayOrNot(t, key == "a2", user.do(first...), key+" first")
		mayOrNot(t, key == "a2", user.do(further...), key+" further")
		first[0], further[0] = "GO.ALL_RO", "GO.ALL_RO"
		mayOrNot(t, key == "a2" || key == "c2", user.do(first...), key+" first, read only")
		if key != "c2" { // one selector permits one key, another one the other key
			mayOrNot(t, key == "a2", user.do(further...), key+" further, read only")
		}
	}
	assert.Zero(t, s.Exists(ctx, "b2", "c2", "d2").Val())
}

// Valkey since 9.1 can permit some databases only. In a permitted one all keys of a call are.
func TestAll_databasesWithIOThreads(t *testing.T) {
	s := start(t, options{args: ioThreads})
	if s.Do(ctx, "ACL", "SETUSER", "al", "db=1").Err() != nil {
		return // a server without such rules
	}
	user := s.as("al", "~a* -@all +go.all +select resetdbs db=1")
	require.Equal(t, "OK", user.do("SELECT", 1))
	mayOrNot(t, true, user.do(fields("GO.ALL a1 QUOTA 9 60 KEY a2 QUOTA 9 60")...), "db=1")
	mayOrNot(t, false, user.do(fields("GO.ALL a1 QUOTA 9 60 KEY b QUOTA 9 60")...), "another key")
}

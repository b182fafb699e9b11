package tests

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
	"gothrottle/tests/world"
)

const scriptFile = "../script/gothrottle.lua"

// script returns the text of the script.
func script(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(scriptFile)
	require.NoError(t, err)
	return string(text)
}

// No transcript has its own marks: these cases need the module.
func TestScript_marks(t *testing.T) {
	marks := map[string]int{}
	for _, c := range corpus.Cases {
		if reason := c.NeedsModule(); reason != "" {
			marks[reason]++
		}
	}
	assert.Equal(t, map[string]int{"range": 13, "policies": 13, "commands in scripts": 1}, marks)
}

// permissions returns the rules of the user in docs/managed.md: those before the first command, and the commands.
func permissions(t *testing.T) (rules string, commands []string) {
	page, err := os.ReadFile("../docs/managed.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if words, found := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER limits "); found {
			commands = append(commands, strings.Fields(words)...)
		}
	}
	n := slices.Index(commands, "+eval")
	require.Positive(t, n)
	return strings.Join(commands[:n], " "), commands[n:]
}

// callOf returns a call of a command, of GO.RELEASE for LEASE too, at the key limits:0 and others.
func callOf(g *world.Generator, name string) world.Words {
	for {
		words, at := next(g)
		for n, i := range at {
			words[i] = fmt.Sprint("limits:", n)
		}
		if upper := strings.ToUpper(words[0]); upper == "GO."+name || name == "LEASE" && upper == "GO.RELEASE" {
			return words
		}
	}
}

// No transcript has users. One who lacks a permission gets NOPERM, and then nothing was written: a script that fails half-way
// would keep what it wrote. The user of docs/managed.md lacks none, for the keys that the page gives.
func TestScript_permissions(t *testing.T) {
	clock := servers.FrozenClock(t, corpus.Epoch)
	s := start(t, options{Bare: true, Clock: clock})
	user, all := permissions(t)
	sha := s.ScriptLoad(ctx, script(t)).Val()
	require.Equal(t, []string{"+eval", "+evalsha"}, all[:2])
	g := world.NewGenerator(1, 1)
	g.Holds = true
	needed, uses, lapsed := map[string]bool{}, map[string]string{}, "ZADD limits:0 -4000000000000000 \x02z"
	for i := range 130 {
		lapsed += " -1 \x02" + strconv.Itoa(i)
	}
	for i := 1; i < len(all); i++ { // first all, then without one after another
		missing := all[i]
		rules := strings.Join(all, " ")
		if i > 1 {
			rules += " -" + missing[1:]
		}
		client := s.as("u", "reset "+user+" +info "+rules+" nopass")
		for _, name := range []string{"THROTTLE", "WINDOW", "QUOTA", "LEASE", "ALL"} {
			if i == 1 {
				s.must("CONFIG RESETSTAT")
			} else if !strings.Contains(uses[name], "cmdstat_"+missing[1:]+":") {
				continue
			}
			s.must("FLUSHALL")
			for n := range 50 {
				clock.Set(clock.Wall + 10_000)
				words := callOf(g, name)
				if name == "ALL" && n%25 < 3 { // the second write is DEL: of redis-cell's key, and of one that is full again
					words = strings.Fields("GO.ALL limits:1 QUOTA 5 1m KEY limits:0 THROTTLE 4 5 1m" + []string{"", "", " -1"}[n%25])
				}
				if name == "ALL" && n%25 == 0 {
					s.must("DEL limits:1")
				}
				if name == "THROTTLE" && n%25 == 3 || name == "ALL" && n%25 == 0 {
					s.must("SET limits:0 " + strconv.FormatInt(clock.Wall*1000+2e10, 10)) // redis-cell's
				}
				if name == "LEASE" && n%25 == 3 { // many that have lapsed
					s.must("DEL limits:0")
					s.must(lapsed)
				}
				if name == "WINDOW" && n%25 == 3 { // its old entry goes, and its expiry stays
					words = []string{"GO.WINDOW", "limits:0", "5", "1s"}
					s.must("DEL limits:0")
					s.Do(ctx, corpus.ByScript("EVALSHA", sha, words)...)
					clock.Set(clock.Wall + 1_000_000)
				}
				call := corpus.ByScript("EVALSHA", sha, words)
				pipe := client.Pipeline()
				before, reply, after := pipe.Info(ctx, "persistence"), pipe.Do(ctx, call...), pipe.Info(ctx, "persistence")
				_, _ = pipe.Exec(ctx)
				if failure(reply.Err()) == nil {
					continue
				}
				const changes = "rdb_changes_since_last_save"
				require.Equal(t, servers.Field(before.Val(), changes), servers.Field(after.Val(), changes), "%q without %s: %v", words, missing, reply.Err())
				if strings.HasPrefix(reply.Err().Error(), "NOPERM") {
					needed[missing] = true
					s.Do(ctx, call...)
				}
			}
			if i == 1 {
				uses[name] = s.Info(ctx, "commandstats").Val()
			}
		}
	}
	assert.False(t, needed[all[1]], "more permissions are needed than docs/managed.md lists")
	for _, permission := range all[2:] {
		assert.True(t, needed[permission], "nobody needs %s", permission)
	}
}

// No transcript has a server that replies anything. Whatever a key holds, a call ends after a bounded number of instructions,
// with a reply, and never writes after an error: under Lua 5.1, as in Redis and Valkey, and under Lua 5.4. A chain of
// SHARE, or a hold of what many clauses have left, takes no more than its length allows.
func TestScript_hostile(t *testing.T) {
	for _, program := range []string{"lua5.1", "lua5.4"} {
		for _, test := range []string{"testdata/hostile.lua", "testdata/chains.lua"} {
			out, err := exec.Command(program, test, scriptFile).CombinedOutput()
			assert.NoError(t, err, "%s %s: %s", program, test, out)
			t.Logf("%s %s: %s", program, test, out)
		}
	}
}

// No transcript has other nodes, or a server without memory: what may not write is an error of the server's and changes
// nothing, and a call that writes nothing is answered.
func TestScript_states(t *testing.T) {
	s, text := start(t, options{Bare: true}), script(t)
	eval := func(s *server, command, call string) any {
		return s.session().do(corpus.ByScript(command, text, strings.Fields(call))...)
	}
	node := start(t, options{Bare: true, Cluster: true})
	node.must("CLUSTER ADDSLOTSRANGE 0 16383")
	eventually(t, "the cluster serves", func() bool { _, failed := eval(node, "EVAL", "GO.THROTTLE k 0 1 1h").(error); return !failed })
	assert.ErrorContains(t, eval(node, "EVAL", "GO.ALL a QUOTA 1 60 KEY b QUOTA 1 60").(error), "CROSSSLOT")
	assert.IsType(t, []any{}, eval(node, "EVAL", "GO.ALL {a} QUOTA 1 60 KEY {a}b QUOTA 1 60"))

	eval(s, "EVAL", "GO.THROTTLE k 0 1 1h")
	c := s.session()
	c.do("MULTI")
	c.do(corpus.ByScript("EVAL", text, strings.Fields("GO.QUOTA q 5 1h"))...)
	c.do(corpus.ByScript("EVAL", text, strings.Fields("GO.QUOTA q 5 1h 2"))...)
	second := c.list("EXEC")
	require.Len(t, second, 2)
	assert.Equal(t, int64(2), second[1].([]any)[2])

	denied := []any{int64(1), int64(1), int64(0)}
	before := s.dataset()
	s.must("CONFIG SET maxmemory 1")
	for _, call := range []string{"GO.THROTTLE n 9 1 60", "GO.WINDOW n 9 60", "GO.QUOTA q 5 1h", "GO.LEASE n 9 60 a", "GO.THROTTLE n 9 1 60 1 UPTO"} {
		assert.Regexp(t, "^OOM ", eval(s, "EVAL", call), call)
	}
	assert.Equal(t, denied, eval(s, "EVAL", "GO.THROTTLE k 0 1 1h").([]any)[:3])
	assert.Equal(t, int64(0), eval(s, "EVAL", "GO.RELEASE l a"))
	assert.Equal(t, before, s.dataset())

	s.must("CONFIG SET maxmemory 0")
	replica := start(t, options{Bare: true, Args: []string{"--replicaof", "127.0.0.1 " + s.run.Port}})
	eventually(t, "the replica has the key", func() bool { return replica.Exists(ctx, "k").Val() == 1 })
	assert.Equal(t, denied, eval(replica, "EVAL", "GO.THROTTLE k 0 1 1h").([]any)[:3])
	assert.Equal(t, denied, eval(replica, "EVAL_RO", "GO.THROTTLE_RO k 0 1 1h").([]any)[:3])
	assert.Regexp(t, "^READONLY ", eval(replica, "EVAL", "GO.THROTTLE k 5 1 1h"))
}

// No transcript has keys that the words don't name, or words that aren't the module's.
func TestScript_keys(t *testing.T) {
	s, text := start(t, options{Bare: true}), script(t)
	for call, want := range map[string]string{
		"0 GO.QUOTA 5 1h":                                               "needs the key in KEYS",
		"1 a GO.RELEASE_RO b":                                           "unknown command",
		"2 a b go.quota 5 1h":                                           "takes one key",
		"2 a b GO.ALL QUOTA 5 1h":                                       "must be those of the script",
		"2 a c GO.ALL QUOTA 5 1h KEY b QUOTA 5 1h":                      "must be those of the script",
		"2 b a GO.ALL QUOTA 5 1h KEY b QUOTA 5 1h":                      "named only once",
		"2 a a GO.ALL QUOTA 5 1h KEY a QUOTA 5 1h":                      "named only once",
		"3 a b a GO.ALL QUOTA 5 1h KEY b QUOTA 5 1h":                    "must be those of the script",
		"3 a c b GO.ALL QUOTA 5 1h KEY b QUOTA 5 1h KEY c LEASE 1 1h x": "must be those of the script",
	} {
		args := append([]any{"EVAL", text}, corpus.Args(strings.Fields(call))...)
		assert.ErrorContains(t, s.session().do(args...).(error), want, call)
	}
	assert.Zero(t, s.DBSize(ctx).Val())
}

// No transcript has a server that stops a script. The server looks for SCRIPT KILL every 100,000 instructions of Lua, and a call
// takes at most 30,000 (TestScript_hostile): so here one call runs many times as one script. It can be killed until it has
// written, and never between the write of a key and its expiry.
func TestScript_killed(t *testing.T) {
	s := start(t, options{Bare: true})
	s.must("CONFIG SET lua-time-limit 1")
	kill := func(times, words string) (killed error, reply any) {
		many := "for _ = 1, " + times + " do local function call() " + script(t) + "\nend call() end"
		caller, done := s.session(), make(chan any, 1)
		go func() { done <- caller.do(corpus.ByScript("EVAL", many, strings.Fields(words))...) }()
		eventually(t, "the script runs", func() bool {
			killed = s.ScriptKill(ctx).Err()
			return killed == nil || !strings.HasPrefix(killed.Error(), "NOTBUSY")
		})
		return killed, <-done
	}
	s.session().do(corpus.ByScript("EVAL", script(t), strings.Fields("GO.THROTTLE k 0 1 1h"))...)
	before := s.dataset()
	for _, denied := range []string{"GO.THROTTLE k 0 1 1h", "GO.THROTTLE_RO k 0 1 1h", "GO.ALL k THROTTLE 0 1 1h"} {
		killed, reply := kill("1000000", denied)
		assert.NoError(t, killed, denied)
		assert.ErrorContains(t, reply.(error), "killed", denied)
		assert.Equal(t, before, s.dataset(), denied)
	}
	killed, reply := kill("30000", "GO.QUOTA q 1000000 1h")
	assert.ErrorContains(t, killed, "UNKILLABLE")
	assert.Nil(t, reply)
	assert.Positive(t, s.PTTL(ctx, "q").Val())
}

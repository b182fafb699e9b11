package tests

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
)

// transcripts returns the calls of all transcripts, by cases.
func transcripts(t testing.TB) (cases [][][]any) {
	t.Helper()
	for _, c := range corpus.Cases {
		var calls [][]any
		for _, step := range c.Steps {
			if step.Call {
				words, err := corpus.Words(step.Text, time.Now().Unix()*1e6)
				require.NoError(t, err)
				calls = append(calls, anyOf(words))
			}
		}
		cases = append(cases, calls)
	}
	return cases
}

// makeCases makes the calls of cases, each case in a database of its own, in turns as a pipeline, a transaction and scripts.
func (s *server) makeCases(cases [][][]any, first int) {
	s.t.Helper()
	for i, calls := range cases {
		p := s.Pipeline()
		p.Do(ctx, "SELECT", first+i)
		if i%3 == 1 {
			p.Do(ctx, "MULTI")
		}
		for _, words := range calls {
			if i%3 == 2 {
				words = append([]any{"EVAL", "return redis.pcall(unpack(ARGV))", 0}, words...)
			}
			p.Do(ctx, words...)
		}
		if i%3 == 1 {
			p.Do(ctx, "EXEC")
		}
		p.Do(ctx, "SELECT", 0)
		cmds, _ := p.Exec(ctx)
		require.NoError(s.t, cmds[0].Err())
	}
}

// No transcript has copies of a server. All copies hold the same values and expiries: the master, replicas with and without
// the module, and servers restarted from the append-only file or the RDB, after the calls of all transcripts.
func TestReplication_everyCopyIsTheSame(t *testing.T) {
	lasts(t)
	cases := transcripts(t)
	o := func(bare bool, more ...string) options {
		return options{Bare: bare, Args: append(more, "--databases", fmt.Sprint(len(cases)))}
	}
	withAOF := []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}
	master, replica, plain := start(t, o(false, withAOF...)), start(t, o(false)), start(t, o(true))
	third := len(cases) / 3
	master.makeCases(cases[:third], 0) // the replicas receive this part in the snapshot
	replica.follow(master)
	plain.follow(master)
	require.NoError(t, master.BgRewriteAOF(ctx).Err())
	master.makeCases(cases[third:2*third], third)
	eventually(t, "the append-only file is rewritten", func() bool { return master.info("persistence", "aof_rewrite_in_progress") == "0" })
	master.makeCases(cases[2*third:], 2*third)
	master.keepKeys(len(cases))
	replica.inStep(master)
	plain.inStep(master)

	want, kinds := master.dataset(), map[string]int{}
	for _, v := range want {
		kinds[regexp.MustCompile(`kind \d`).FindString(v)]++
	}
	t.Logf("%d keys: %v", len(want), kinds)
	assert.Greater(t, len(want), 300, "with few keys the test proves nothing")
	same(t, want, replica.dataset(), "replica")
	same(t, want, plain.dataset(), "replica without the module")

	require.NoError(t, master.Do(ctx, "SAVE").Err())
	for where, args := range map[string]options{"append-only file": o(false, withAOF...), "RDB": o(false),
		"append-only file, without the module": o(true, "--appendonly", "yes")} {
		master = master.restart(args)
		same(t, want, master.dataset(), "restarted from the "+where)
	}
}

// keepKeys gives the keys that would expire during a test an hour more.
func (s *server) keepKeys(databases int) {
	s.t.Helper()
	p := s.Pipeline()
	for db := range databases {
		p.Do(ctx, "SELECT", databases-1-db)
		p.Do(ctx, "EVAL", "for _, key in ipairs(redis.call('KEYS', '*')) do "+
			"if redis.call('TTL', key) < 3600 then redis.call('EXPIRE', key, 3600) end end", 0)
	}
	_, err := p.Exec(ctx)
	require.NoError(s.t, failure(err))
}

// limiters are one of every kind: a call that makes it, and one that reads it.
var limiters = []struct{ make, peek string }{
	{"GO.THROTTLE hash 15 30 108000 3", "GO.THROTTLE_RO hash 15 30 108000 0"},
	{"GO.THROTTLE frac 15 7 108000 3", "GO.THROTTLE_RO frac 15 7 108000 0"},
	{"GO.THROTTLE locked 4 5 300000 5", "GO.THROTTLE_RO locked 4 5 300000"},
	{"GO.THROTTLE locked 4 5 300000 1 LOCKOUT 900000", "GO.THROTTLE_RO locked 4 5 300000"},
	{"GO.WINDOW log 16 3600 3", "GO.WINDOW_RO log 16 3600 0"},
	{"GO.WINDOW parts 1000 3153600000 3", "GO.WINDOW_RO parts 1000 3153600000 0"},
	{"GO.QUOTA quota 16 3600 3", "GO.QUOTA_RO quota 16 3600 0"},
	{"GO.LEASE lease 3 3600 id", "GO.LEASE_RO lease 1 3600 other"},
	{"GO.ALL cells THROTTLE 15 30 108000 3 THROTTLE 1 1 3600 1", "GO.ALL_RO cells THROTTLE 15 30 108000 0 THROTTLE 1 1 3600 0"},
	{"GO.ALL rpm THROTTLE 59 1 3600 KEY spend QUOTA 99 3600 7 KEY calls LEASE 3 3600 id", "GO.THROTTLE_RO rpm 59 1 3600 0"},
	{"GO.QUOTA_RO spend 99 3600", "GO.ALL_RO spend QUOTA 99 3600 0"},
	{"GO.LEASE_RO calls 3 3600 id", "GO.LEASE_RO calls 1 3600 other"},
}

// A replica answers read-only calls as its master does, and refuses the others. After its promotion it knows the usage, and
// so does a key that was moved or copied. The clock is frozen, so that replies can be compared.
func TestReplication_aReplicaAnswers(t *testing.T) {
	c := newClock(t)
	c.freeze(time.Now())
	master, replica := start(t, options{Clock: c.Clock}), start(t, options{Clock: c.Clock, Args: []string{"--repl-timeout", "1000000"}})
	replica.follow(master)
	var calls []string
	for _, l := range limiters {
		require.Regexp(t, `^\[[01] `, master.must(l.make), l.make)
		calls = append(calls, l.peek)
	}
	keys := master.Keys(ctx, "*").Val()
	for _, key := range keys {
		calls = append(calls, "GO.INFO "+key)
	}
	for name, sample := range samples {
		if sample.Writes() {
			assert.ErrorContains(t, replica.Do(ctx, sample.on("k")...).Err(), "READONLY ", name)
		}
	}
	// An expired key counts as absent, though the replica has not yet received its DEL.
	master.must("GO.QUOTA short 9 360000 3")
	master.must("PEXPIRE short 1")
	replica.inStep(master)
	c.freeze(time.UnixMicro(c.Wall).Add(10 * time.Millisecond))
	eventually(t, "the key has expired", func() bool { return replica.must("GO.QUOTA_RO short 9 360000 0") == "[0 9 9 -1 0]" })
	exact := func(reply string) string { return reply }
	if master.clockRuns() {
		times := regexp.MustCompile(`_ms:\d+|:?\d{4,}`)
		exact = func(reply string) string { return times.ReplaceAllString(reply, "N") }
	}
	want := map[string]string{}
	for _, call := range calls {
		want[call] = exact(master.must(call))
		assert.Equal(t, want[call], exact(replica.ask(call)), call)
		inScript := flat(replica.EvalRO(ctx, "redis.setresp(3) return redis.call(unpack(ARGV))", nil, fields(call)...).Result())
		assert.Equal(t, want[call], exact(inScript), call)
	}
	require.NoError(t, replica.SlaveOf(ctx, "NO", "ONE").Err())
	for _, key := range keys {
		require.NoError(t, replica.Copy(ctx, key, "copy", 0, true).Err())
		require.NoError(t, replica.Rename(ctx, "copy", key).Err())
		require.NoError(t, replica.Do(ctx, "RESTORE", key, replica.PExpireTime(ctx, key).Val().Milliseconds(), replica.Dump(ctx, key).Val(), "ABSTTL", "REPLACE").Err())
	}
	for _, call := range calls {
		assert.Equal(t, want[call], exact(replica.ask(call)), "promoted, the keys moved: %s", call)
	}
}

package tests

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// No transcript has copies of a server. All hold the same: a replica without the module, and servers that start on the files of
// the master. tests/chaos compares them after random calls and faults.
func TestReplication_copies(t *testing.T) {
	withAOF := []string{"--appendonly", "yes"}
	master, plain := start(t, options{Args: withAOF}), start(t, options{Bare: true})
	plain.follow(master)
	for _, l := range limiters {
		master.must(l.make)
	}
	plain.inStep(master)
	want := master.dataset()
	assert.Equal(t, want, plain.dataset(), "replica without the module")
	// The fork that fed the replica may not be away yet.
	eventually(t, "the master saves", func() bool { return master.ask("SAVE") == "OK" })
	for where, o := range map[string]options{"append-only file": {Args: withAOF}, "RDB": {},
		"append-only file, without the module": {Args: withAOF, Bare: true}} {
		master = master.restart(o)
		assert.Equal(t, want, master.dataset(), "restarted from the "+where)
	}
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
	c.freeze(time.UnixMicro(c.Wall).Add(time.Second))
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

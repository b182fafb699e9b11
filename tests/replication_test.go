package tests

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// No transcript has a replica. What it holds, and what servers hold that start on the files of a master, is in tests/chaos. A
// replica answers read-only calls as its master does, and refuses the others. After its promotion it knows the usage, and
// so does a key that was moved or copied. The clock is frozen, so that replies can be compared. GOTHROTTLE_OLD_MODULE is an
// earlier version of the module, for one of the two servers: see build/test-upgrades.sh.
func TestReplication_aReplicaAnswers(t *testing.T) {
	now, old := os.Getenv("GOTHROTTLE_MODULE"), os.Getenv("GOTHROTTLE_OLD_MODULE")
	pairs := map[string][2]string{"both new": {now, now}}
	if old != "" {
		pairs = map[string][2]string{"old master": {old, now}, "old replica": {now, old}}
	}
	for name, modules := range pairs {
		t.Run(name, func(t *testing.T) { aReplicaAnswers(t, modules[0], modules[1], old != "") })
	}
}

// aReplicaAnswers runs servers with two versions of the module. One of them may not know all commands.
func aReplicaAnswers(t *testing.T, masters, replicas string, differ bool) {
	c := servers.FrozenClock(t, time.Now().UnixMicro())
	master, replica := start(t, options{Clock: c, Module: masters}), start(t, options{Clock: c, Module: replicas, Args: []string{"--repl-timeout", "1000000"}})
	require.NoError(t, replica.run.Follow(master.run))
	samples := maps.Clone(samples)
	for name, sample := range samples {
		if differ && (master.Do(ctx, "COMMAND", "INFO", name).Val().([]any)[0] == nil || replica.Do(ctx, "COMMAND", "INFO", name).Val().([]any)[0] == nil) {
			t.Log("one of the two does not know ", name)
			delete(samples, name)
			continue
		}
		if sample.Writes() {
			require.NoError(t, master.Do(ctx, sample.on(name)...).Err(), name)
			assert.ErrorContains(t, replica.Do(ctx, sample.on(name)...).Err(), "READONLY ", name)
		}
	}
	var calls []string
	keys := master.Keys(ctx, "*").Val()
	for _, key := range keys {
		for name, sample := range samples {
			if !sample.Writes() {
				_, words, _ := strings.Cut(sample.Sample.Call, "KEY")
				calls = append(calls, name+" "+key+words)
			}
		}
	}
	// An expired key counts as absent, though the replica has not yet received its DEL.
	master.must("GO.QUOTA short 9 360000 3")
	master.must("PEXPIRE short 1")
	require.NoError(t, replica.run.InStep(master.run))
	c.Set(c.Wall + time.Second.Microseconds())
	eventually(t, "the key has expired", func() bool { return replica.must("GO.QUOTA_RO short 9 360000 0") == "[0 9 9 -1 0]" })
	want := map[string]string{}
	for _, call := range calls {
		want[call] = master.ask(call)
		assert.Equal(t, want[call], replica.ask(call), call)
		inScript := flat(replica.EvalRO(ctx, "redis.setresp(3) return redis.pcall(unpack(ARGV))", nil, fields(call)...).Result())
		assert.Equal(t, want[call], inScript, call)
	}
	require.NoError(t, replica.ReplicaOf(ctx, "NO", "ONE").Err())
	for _, key := range keys {
		require.NoError(t, replica.Copy(ctx, key, "copy", 0, true).Err())
		require.NoError(t, replica.Rename(ctx, "copy", key).Err())
		require.NoError(t, replica.Do(ctx, "RESTORE", key, replica.PExpireTime(ctx, key).Val().Milliseconds(), replica.Dump(ctx, key).Val(), "ABSTTL", "REPLACE").Err())
	}
	for _, call := range calls {
		assert.Equal(t, want[call], replica.ask(call), "promoted, the keys moved: %s", call)
	}
}

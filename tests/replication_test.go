package tests

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After random traffic all copies hold the same values and expiries: the master, replicas with and without the module, and
// servers restarted from the append-only file or the RDB.
func TestReplication_everyCopyIsTheSame(t *testing.T) {
	lasts(t)
	const calls = 60_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	net := newNetwork(t)
	withAOF := options{net: net, args: []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}}
	master := start(t, withAOF)
	replica := start(t, options{net: net})
	plain := start(t, options{net: net, bare: true})

	tr := newTraffic(master, seed)
	tr.run(calls / 4) // the replicas receive this part in the snapshot
	replica.follow(master)
	plain.follow(master)
	for range 2 {
		tr.run(calls / 4)
		rewrite(master)
	}
	tr.run(calls / 4)
	tr.settle()
	for _, r := range []*server{replica, plain} {
		inStep(t, master, r)
	}

	want, kinds := master.dataset(), map[string]int{}
	for _, v := range want {
		kind, _, _ := strings.Cut(v, " ")
		kinds[kind]++
		if kind == "hash" && strings.Contains(v, `"128":`) {
			kinds["lockout"]++
		}
	}
	counters := master.counters()
	t.Logf("%d keys: %v; %v", len(want), kinds, counters)
	for kind, least := range map[string]int{"hash": 500, "zset": 100, "string": 100, "lockout": 20} {
		assert.Greater(t, kinds[kind], least, "keys of kind %s: with too few the test proves nothing", kind)
	}
	for name, c := range samples {
		assert.NotEqual(t, "0 0", counters[c.infoField()+"_admitted"]+" "+counters[c.infoField()+"_other"], name)
	}
	assert.Equal(t, "0", counters["gothrottle_panics"])
	same(t, want, replica.dataset(), "replica")
	same(t, want, plain.dataset(), "replica without the module")

	// The RDB is written first, while the append-only file goes on.
	require.NoError(t, master.Do(ctx, "SAVE").Err())
	master = master.restart(withAOF)
	same(t, want, master.dataset(), "restarted from the append-only file")
	master = master.restart(options{net: net})
	same(t, want, master.dataset(), "restarted from the RDB")
	master = master.restart(options{net: net, bare: true, args: []string{"--appendonly", "yes"}})
	same(t, want, master.dataset(), "restarted from the append-only file without the module")
}

// A replica answers read-only calls as its master does, and refuses the others. After its promotion it knows the usage, and
// so does a key that was moved or copied. The clock is frozen, so that replies can be compared.
func TestReplication_aReplicaAnswers(t *testing.T) {
	c := newClock(t)
	c.freeze(time.Now())
	master, replica := start(t, options{clock: c}), start(t, options{clock: c, args: []string{"--repl-timeout", "1000000"}})
	replica.follow(master)
	calls := []string{"GO.INFO hash", "GO.THROTTLE_RO hash 9 1 360000 4", "GO.INFO locked", "GO.THROTTLE_RO locked 4 5 300000", "GO.INFO two",
		"GO.WINDOW_RO log 9 360000 8", "GO.INFO log", "GO.QUOTA_RO quota 9 360000 7", "GO.INFO quota", "GO.LEASE_RO lease 1 360000 b", "GO.INFO lease",
		"GO.ALL_RO two THROTTLE 4 5 300000 2 THROTTLE 9 1 36000 KEY quota QUOTA 9 360000 7"}
	for _, call := range []string{"GO.THROTTLE hash 9 1 360000 7", "GO.THROTTLE locked 4 5 300000 5", "GO.THROTTLE locked 4 5 300000 1 LOCKOUT 900000",
		"GO.WINDOW log 9 360000 3", "GO.QUOTA quota 9 360000 3", "GO.LEASE lease 1 360000 a", "GO.ALL two THROTTLE 4 5 300000 5 THROTTLE 9 1 36000 3"} {
		master.must(call)
		assert.Regexp(t, "^READONLY ", replica.ask(call), call)
	}
	inStep(t, master, replica)
	// An expired key counts as absent, though the replica has not yet received its DEL.
	master.must("GO.QUOTA short 9 360000 3")
	master.must("PEXPIRE short 1")
	inStep(t, master, replica)
	c.freeze(time.UnixMicro(c.Wall).Add(10 * time.Millisecond))
	eventually(t, "the key has expired", func() bool { return replica.must("GO.QUOTA_RO short 9 360000 0") == "[0 9 9 -1 0]" })
	exact, want := func(reply string) string { return reply }, map[string]string{}
	if master.clockRuns() {
		times := regexp.MustCompile(`_ms:\d+|:?\d{4,}`)
		exact = func(reply string) string { return times.ReplaceAllString(reply, "N") }
	}
	for _, call := range calls {
		want[call] = exact(master.must(call))
		assert.Equal(t, want[call], exact(replica.ask(call)), call)
		inScript := flat(replica.EvalRO(ctx, "redis.setresp(3) return redis.call(unpack(ARGV))", nil, fields(call)...).Result())
		assert.Equal(t, want[call], exact(inScript), call)
	}
	require.NoError(t, replica.SlaveOf(ctx, "NO", "ONE").Err())
	for _, key := range []string{"hash", "locked", "two", "log", "quota", "lease"} {
		require.NoError(t, replica.Copy(ctx, key, "copy", 0, true).Err())
		require.NoError(t, replica.Rename(ctx, "copy", key).Err())
		require.NoError(t, replica.Do(ctx, "RESTORE", key, replica.expiry(key), replica.Dump(ctx, key).Val(), "ABSTTL", "REPLACE").Err())
	}
	for _, call := range calls {
		assert.Equal(t, want[call], exact(replica.ask(call)), "promoted, the keys moved: %s", call)
	}
}

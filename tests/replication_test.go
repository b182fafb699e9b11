package tests

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
)

// After random traffic all copies hold the same values and expiries: the master, replicas
// with and without the module, and servers restarted from the append-only file or the RDB.
func TestReplication_everyCopyIsTheSame(t *testing.T) {
	lasts(t)
	const calls = 100_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	net := newNetwork(t)
	withAOF := options{net: net, args: []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}}
	master := start(t, withAOF)
	replica := start(t, options{net: net})
	plain := start(t, options{net: net, bare: true})

	tr := newTraffic(master, seed)
	tr.run(calls / 5) // the replicas receive this part in the snapshot
	replica.follow(master)
	plain.follow(master)
	tr.run(calls / 5)
	rewrite(master)
	tr.run(calls * 2 / 5)
	rewrite(master)
	tr.run(calls / 5)

	tr.settle()
	for _, r := range []*server{replica, plain} {
		inStep(t, master, r)
	}
	want := master.dataset()
	kinds := map[string]int{}
	for _, v := range want {
		kind, _, _ := strings.Cut(v, " ")
		kinds[kind]++
		if kind == "hash" && strings.Contains(v, `"128":`) {
			kinds["lockout"]++
		}
	}
	t.Logf("%d keys: %v", len(want), kinds)
	info, sum := master.counters(), map[string]int{}
	for name, c := range samples { // each command was called often enough
		n := map[string]int{}
		for _, what := range []string{"admitted", "limited", "other", "errors"} {
			var err error
			n[what], err = strconv.Atoi(info[c.infoField()+"_"+what])
			require.NoError(t, err, name)
			sum[what] += n[what]
		}
		t.Logf("%s: %v", name, n)
		assert.Positive(t, n["admitted"]+n["other"], name)
		assert.Greater(t, n["admitted"]+n["other"]+n["limited"], calls/2000, name)
		assert.True(t, n["errors"] > 0 || len(corpus.Wrong[name]) == 0, "%s: %v", name, n)
	}
	assert.Greater(t, sum["admitted"], calls/4, "%v", sum)
	assert.Greater(t, sum["limited"], calls/10, "%v", sum)
	assert.Greater(t, sum["other"], calls/50, "%v", sum)
	assert.Equal(t, "0", info["gothrottle_panics"])
	require.Greater(t, tr.placed, 20, "too few states at the ends of their ranges")
	require.Greater(t, kinds["hash"], longKeys["hash"]/3, "too few limiters, so the test proves nothing")
	require.Greater(t, kinds["lockout"], 20, "too few lockouts")
	require.Greater(t, kinds["zset"], longKeys["log"]/3, "too few windows and leases")
	require.Greater(t, kinds["string"], longKeys["quota"]/3, "too few quotas")
	same(t, want, replica.dataset(), "replica")
	same(t, want, plain.dataset(), "replica without the module")

	// The replica gives the replies of the master, also after its promotion.
	sameAnswers(t, want, master, replica, "_RO")
	require.NoError(t, replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	sameAnswers(t, want, master, replica, "")

	// The RDB is written first, while the append-only file goes on.
	require.NoError(t, master.Do(ctx, "SAVE").Err())
	master = master.restart(withAOF)
	same(t, want, master.dataset(), "restarted from the append-only file")
	master = master.restart(options{net: net})
	same(t, want, master.dataset(), "restarted from the RDB")
	master = master.restart(options{net: net, bare: true, args: []string{"--appendonly", "yes"}})
	same(t, want, master.dataset(), "restarted from the append-only file without the module")
}

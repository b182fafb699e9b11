package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After any traffic the master, replicas with and without the module, and what is
// restarted from the AOF or the RDB hold the same values and the same expiries.
func TestReplication_everyCopyIsTheSame(t *testing.T) {
	const calls = 100_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	net := newNetwork(t)
	withAOF := options{net: net, args: []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"}}
	master := start(t, withAOF)
	replica := start(t, options{net: net})
	plain := start(t, options{net: net, bare: true})

	tr := newTraffic(master, seed)
	tr.run(calls / 5) // this part reaches the replicas in the snapshot
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
	}
	t.Logf("%d keys: %v", len(want), kinds)
	for name := range samples { // each had its part
		if counts := master.info("gothrottle", "gothrottle_"+strings.ToLower(name)); !strings.HasSuffix(name, "_RO") {
			var admitted, limited, errors int
			_, err := fmt.Sscanf(counts, "admitted=%d,limited=%d,errors=%d", &admitted, &limited, &errors)
			require.NoError(t, err, counts)
			t.Logf("%s: %s", name, counts)
			assert.Greater(t, admitted, calls/100, name)
			assert.True(t, limited > calls/500 || name == "GO.RELEASE", "%s: %s", name, counts)
			assert.Positive(t, errors, name)
		}
	}
	require.Greater(t, kinds["hash"], longKeys["hash"]/3, "too few limiters to prove anything")
	require.Greater(t, kinds["zset"], longKeys["log"]/3, "too few windows and leases")
	require.Greater(t, kinds["string"], longKeys["quota"]/3, "too few quotas")
	same(t, want, replica.dataset(), "replica")
	same(t, want, plain.dataset(), "replica without the module")

	// A replica tells what the master tells, and goes on where that stopped.
	sameAnswers(t, want, master, replica, "_RO")
	require.NoError(t, replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	sameAnswers(t, want, master, replica, "")

	// RDB first: it is written while the AOF goes on.
	require.NoError(t, master.Do(ctx, "SAVE").Err())
	master = master.restart(withAOF)
	same(t, want, master.dataset(), "restarted from the AOF")
	master = master.restart(options{net: net})
	same(t, want, master.dataset(), "restarted from the RDB")
	master = master.restart(options{net: net, bare: true, args: []string{"--appendonly", "yes"}})
	same(t, want, master.dataset(), "restarted from the AOF without the module")
}

// sameAnswers peeks at every limiter of database 0 on both servers.
func sameAnswers(t *testing.T, keys map[string]string, a, b *server, suffix string) {
	t.Helper()
	asked := map[string]int{}
	for key := range keys {
		name, ok := strings.CutPrefix(key, "0 ")
		if !ok {
			continue
		}
		kind := strings.Split(name, ":")[1]
		call := map[string]string{"hash": "GO.THROTTLE%s %s 15 7 10000000 0", "log": "GO.WINDOW%s %s 1000 20000000 0",
			"quota": "GO.QUOTA%s %s 100 20000000 0"}[kind]
		if call == "" {
			continue
		}
		call = fmt.Sprintf(call, suffix, name)
		before, there, after := a.ask(call), b.ask(call), a.ask(call)
		if before == after { // else a unit drained meanwhile
			require.Equal(t, before, there, call)
			asked[kind]++
		}
	}
	assert.Len(t, asked, 3, "%v", asked)
}

// inStep waits until a replica has all that its master sent.
func inStep(t testing.TB, master, replica *server) {
	t.Helper()
	eventually(t, "the replica is in step", func() bool {
		return replica.info("replication", "master_link_status") == "up" &&
			replica.info("replication", "slave_repl_offset") == master.info("replication", "master_repl_offset")
	})
}

// rewrite rewrites the AOF while more calls come in.
func rewrite(s *server) {
	s.t.Helper()
	require.NoError(s.t, s.BgRewriteAOF(ctx).Err())
	newTraffic(s, 7).run(2000)
	eventually(s.t, "the AOF is rewritten", func() bool {
		return s.info("persistence", "aof_rewrite_in_progress") == "0" &&
			s.info("persistence", "aof_rewrite_scheduled") == "0"
	})
	require.Equal(s.t, "ok", s.info("persistence", "aof_last_bgrewrite_status"))
}

package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// traffic sends random calls and what users do beside them. Its long-lived keys
// outlive the test; the short-lived ones are gone soon after it.
type traffic struct {
	s     *server
	r     *rand.Rand
	dbs   []*redis.Client
	rates map[string][3]int64 // what a key was last called with
}

const (
	longKeys  = 1500
	shortKeys = 200
)

func newTraffic(s *server, seed uint64) *traffic {
	tr := &traffic{s: s, r: rand.New(rand.NewPCG(seed, 0)), rates: map[string][3]int64{}}
	for _, db := range []int{0, 3} {
		c := s.client(options3)
		options := *c.Options()
		options.DB = db
		c = redis.NewClient(&options)
		s.t.Cleanup(func() { c.Close() })
		tr.dbs = append(tr.dbs, c)
	}
	return tr
}

func (tr *traffic) pick(of ...int64) int64 { return of[tr.r.IntN(len(of))] }

// rate returns the parameters of a call: mostly those that its key had before.
func (tr *traffic) rate(key string, period func() int64) [3]int64 {
	if old, ok := tr.rates[key]; ok && tr.r.IntN(12) > 0 {
		old[0] += tr.pick(0, 0, 0, 1, 40) // a neighbour with another burst
		return old
	}
	rate := [3]int64{tr.pick(0, 1, 4, 15, 99, 999), tr.pick(1, 2, 3, 7, 10, 64, 997, 1_000_003), period()}
	tr.rates[key] = rate
	return rate
}

func (tr *traffic) quantity() int64 {
	switch tr.r.IntN(20) {
	case 0:
		return 0
	case 1, 2:
		return -1 - tr.r.Int64N(30)
	case 3:
		return -1_000_000
	case 4:
		return 5000 // more than any limit
	case 5, 6, 7:
		return 1 + tr.r.Int64N(40)
	}
	return 1
}

// call returns the words of one call.
func (tr *traffic) call() []any {
	if tr.r.IntN(10) == 0 {
		key := fmt.Sprintf("short:%d", tr.r.IntN(shortKeys))
		rate := tr.rate(key, func() int64 { return 1 + tr.r.Int64N(20) })
		return []any{"GO.THROTTLE", key, min(rate[0], 9), rate[1], rate[2], tr.quantity(), "MS"}
	}
	key := fmt.Sprintf("long:%d", tr.r.IntN(longKeys))
	rate := tr.rate(key, func() int64 { return 10_000_000 + tr.r.Int64N(10_000_000) })
	words := []any{"GO.THROTTLE", key, rate[0], rate[1], rate[2], tr.quantity()}
	switch tr.r.IntN(6) {
	case 0:
		words[0] = "CL.THROTTLE"
	case 1:
		words[4] = rate[2]*1000 + tr.pick(0, 0, 1)
		words = append(words, "ms")
	case 2:
		words = words[:5]
	}
	return words
}

// byHand returns what a user does beside the calls, nil for nothing.
func (tr *traffic) byHand() []any {
	key := fmt.Sprintf("long:%d", tr.r.IntN(longKeys))
	switch tr.r.IntN(400) {
	case 0, 1, 2:
		return []any{"DEL", key}
	case 3, 4, 5:
		return []any{"PERSIST", key}
	case 6, 7, 8:
		return []any{"EXPIRE", key, 100_000 + tr.r.IntN(100_000_000)}
	case 9, 10:
		delete(tr.rates, key)
		tat := time.Now().Add(time.Duration(tr.r.IntN(20_000_000)) * time.Second)
		return []any{"SET", key, tat.UnixNano(), "PXAT", tat.UnixMilli() + 1e9} // as redis-cell leaves it
	case 11:
		if tr.r.IntN(4) > 0 {
			return nil
		}
		return []any{"HSET", key, "name", "Ann"} // an error from now on, until it is deleted
	case 12: // a state at the far ends of what is one
		count := tr.pick(2, 7, 1_000_000_000_000)
		return []any{"HSET", key, "t", tr.pick(math.MaxInt64, math.MaxInt64-1, 9_000_000_000_000_000_000),
			"p", tr.pick(1, 3_153_600_000_000_000_000), "n", tr.pick(0, 1, count-1), "c", count}
	case 15:
		return []any{"RENAME", key, fmt.Sprintf("long:%d", tr.r.IntN(longKeys))}
	case 13, 14:
		return []any{"GO.THROTTLE", key, "x", 1, 1}
	}
	return nil
}

// run sends n calls, in batches that are pipelines, transactions and scripts.
func (tr *traffic) run(n int) {
	tr.s.t.Helper()
	for sent := 0; sent < n; {
		db := tr.dbs[tr.r.IntN(100)/95]
		p := db.Pipeline()
		if tr.r.IntN(4) == 0 {
			p = db.TxPipeline()
		}
		for range 1 + tr.r.IntN(500) {
			if words := tr.byHand(); words != nil {
				p.Do(ctx, words...)
			}
			words := tr.call()
			if sent++; tr.r.IntN(20) == 0 {
				p.Eval(ctx, "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))", []string{words[1].(string)},
					append(words[:1:1], words[2:]...)...)
				continue
			}
			p.Do(ctx, words...)
		}
		cmds, _ := p.Exec(ctx)
		for _, cmd := range cmds {
			// Errors are part of it, but a connection must not break.
			if err := cmd.Err(); err != nil && err != redis.Nil {
				require.Regexp(tr.s.t, "^(ERR|WRONGTYPE) ", err.Error(), "%v", cmd)
			}
		}
	}
}

// dataset returns every key with its type, expiry and value.
func (s *server) dataset() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	conn := s.Conn()
	defer conn.Close()
	for _, db := range []int{0, 3} {
		require.NoError(s.t, conn.Select(ctx, db).Err())
		keys, err := conn.Keys(ctx, "*").Result()
		require.NoError(s.t, err)
		p := conn.Pipeline()
		for _, key := range keys {
			p.Type(ctx, key)
			p.Do(ctx, "PEXPIRETIME", key)
			p.HGetAll(ctx, key)
			p.Get(ctx, key)
		}
		cmds, _ := p.Exec(ctx) // half of the reads are of the wrong type
		for i, key := range keys {
			one := cmds[4*i : 4*i+4]
			value := fmt.Sprint(one[2].(*redis.MapStringStringCmd).Val()) // sorted by name
			if kind := one[0].(*redis.StatusCmd).Val(); kind == "string" {
				value = one[3].(*redis.StringCmd).Val()
			}
			all[fmt.Sprintf("%d %s", db, key)] = fmt.Sprint(one[0].(*redis.StatusCmd).Val(), " ",
				one[1].(*redis.Cmd).Val(), " ", value)
		}
	}
	return all
}

// same compares two data sets and shows the first few keys that differ.
func same(t testing.TB, want, got map[string]string, where string) {
	t.Helper()
	differ := 0
	for key := range want {
		if want[key] != got[key] {
			if differ++; differ <= 5 {
				t.Errorf("%s: %s is %q, want %q", where, key, got[key], want[key])
			}
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			if differ++; differ <= 5 {
				t.Errorf("%s: %s is %q, and should not be there", where, key, got[key])
			}
		}
	}
	assert.Zero(t, differ, "%s: keys that differ, of %d", where, len(want))
}

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

	eventually(t, "the short-lived keys are gone", func() bool {
		left := 0
		for _, db := range tr.dbs {
			for i := range shortKeys { // looking at a key is what expires it
				left += int(db.Exists(ctx, fmt.Sprintf("short:%d", i)).Val())
			}
		}
		return left == 0
	})
	for _, r := range []*server{replica, plain} {
		inStep(t, master, r)
	}
	want := master.dataset()
	kinds := map[string]int{}
	for _, v := range want {
		kinds[v[:4]]++
	}
	t.Logf("%d keys: %v; %s", len(want), kinds, master.info("gothrottle", "gothrottle_go.throttle"))
	require.Greater(t, kinds["hash"], longKeys/3, "too few limiters to prove anything")
	same(t, want, replica.dataset(), "replica")
	same(t, want, plain.dataset(), "replica without the module")

	// A replica that takes over goes on where the master stopped.
	require.NoError(t, replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	for key := range want {
		name, ok := strings.CutPrefix(key, "0 ")
		if !ok {
			continue
		}
		peek := func(s *server) string {
			reply, err := s.Do(ctx, "GO.THROTTLE", name, 15, 7, 10_000_000, 0).Int64Slice()
			return fmt.Sprint(reply, err)
		}
		before, there, after := peek(master), peek(replica), peek(master)
		if before == after { // else a unit drained meanwhile
			require.Equal(t, before, there, key)
		}
	}

	// RDB first: it is written while the AOF goes on.
	require.NoError(t, master.Do(ctx, "SAVE").Err())
	master = master.restart(withAOF)
	same(t, want, master.dataset(), "restarted from the AOF")
	master = master.restart(options{net: net})
	same(t, want, master.dataset(), "restarted from the RDB")
	master = master.restart(options{net: net, bare: true, args: []string{"--appendonly", "yes"}})
	same(t, want, master.dataset(), "restarted from the AOF without the module")
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

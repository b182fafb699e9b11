package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lockedOut makes limiters with lockouts and returns the names of their keys: one cell, a rate with
// a fraction, nothing in use any more, two cells, an adopted key of redis-cell, a key in debt.
func (s *server) lockedOut() []string {
	s.t.Helper()
	s.cell("adopted", 100_000)
	for _, call := range []string{
		"GO.THROTTLE one 4 5 300000 5", "GO.THROTTLE one 4 5 300000 1 LOCKOUT 900000",
		"GO.THROTTLE fraction 4 7 300000 5", "GO.THROTTLE fraction 4 7 300000 1 LOCKOUT 900000",
		"GO.THROTTLE empty 4 5 300000 5", "GO.THROTTLE empty 4 5 300000 1 LOCKOUT 900000", "GO.THROTTLE empty 4 5 300000 -9",
		"GO.ALL two THROTTLE 4 5 300000 5 THROTTLE 9 1 60 3", "GO.THROTTLE two 4 5 300000 1 LOCKOUT 900000",
		"GO.THROTTLE adopted 0 1 60 1 LOCKOUT 900000",
		"GO.THROTTLE debt 4 5 300000 50 FORCE", "GO.THROTTLE debt 4 5 300000 1 LOCKOUT 900000",
	} {
		s.must(call)
	}
	return []string{"one", "fraction", "empty", "two", "adopted", "debt"}
}

// staysLocked checks that no call is admitted at the keys, except a forced one, and that no call
// moves the end of the lockout.
func (s *server) staysLocked(keys []string, where string) {
	s.t.Helper()
	for _, key := range keys {
		end := s.state(key)["128"]
		require.NotZero(s.t, end, "%s: %s", where, key)
		for _, words := range []string{"4 5 300000", "4 5 300000 1 LOCKOUT 9999999", "999999 999999 1", "0 1 1 1 UPTO", "4 5 300000 2 RESERVE 99999999", "4 5 300000 0"} {
			reply := s.throttle(append([]any{key}, fields(words)...)...)
			assert.Equal(s.t, []int64{1, 0}, []int64{reply[0], reply[2]}, "%s: %s %s: %v", where, key, words, reply)
			assert.Greater(s.t, reply[3], int64(899_000), "%s: %s %s: %v", where, key, words, reply)
			assert.Greater(s.t, reply[4], int64(899_000), "%s: %s %s: %v", where, key, words, reply)
		}
		for _, words := range []string{"4 5 300000 1 FORCE", "4 5 300000 -1"} {
			assert.Equal(s.t, int64(0), s.throttle(append([]any{key}, fields(words)...)...)[0], "%s: %s %s", where, key, words)
		}
		assert.Equal(s.t, end, s.state(key)["128"], "%s: %s", where, key)
		s.lastsLongEnough(key, 100_000_000, where+": "+key)
	}
}

// A topology: a lockout survives restarts from the append-only file and the RDB, the promotion of a replica
// and commands that move or copy keys.
func TestLockout_survives(t *testing.T) {
	net := newNetwork(t)
	withAOF := options{net: net, args: []string{"--appendonly", "yes"}}
	master := start(t, withAOF)
	replica, plain := start(t, options{net: net}), start(t, options{net: net, bare: true})
	replica.follow(master)
	plain.follow(master)
	keys := master.lockedOut()
	want := master.dataset()
	for _, r := range []*server{replica, plain} {
		inStep(t, master, r)
		same(t, want, r.dataset(), "replica")
	}

	for _, key := range keys {
		require.NoError(t, master.Copy(ctx, key, key+" copy", 0, false).Err())
		require.NoError(t, master.Do(ctx, "RESTORE", key+" restored", master.expiry(key), master.Dump(ctx, key).Val(), "ABSTTL").Err())
		require.NoError(t, master.Copy(ctx, key, "old", 0, false).Err())
		require.NoError(t, master.Rename(ctx, "old", key+" renamed").Err())
		master.staysLocked([]string{key + " copy", key + " restored", key + " renamed"}, "moved")
	}
	want = master.dataset()
	for _, r := range []*server{replica, plain} {
		inStep(t, master, r)
		same(t, want, r.dataset(), "replica, after the calls")
		require.NoError(t, r.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	}
	for _, key := range keys {
		assert.Regexp(t, `^\[1 5 0 \d{6,} \d{6,}\]`, replica.ask("GO.THROTTLE_RO "+key+" 4 5 300000 0"), "promoted")
	}
	replica.staysLocked(keys, "promoted")

	eventually(t, "the snapshot is written", func() bool { return master.Do(ctx, "SAVE").Err() == nil }) // another one may be under way
	master = master.restart(withAOF)
	same(t, want, master.dataset(), "restarted from the append-only file")
	master.staysLocked(keys, "restarted from the append-only file")
	master = master.restart(options{net: net})
	same(t, want, master.dataset(), "restarted from the RDB")
	master.staysLocked(keys, "restarted from the RDB")
}

// Many forced calls leave a window of at most 4 KB, also with a small limit.
func TestForce_memory(t *testing.T) {
	lasts(t)
	s := start(t, options{})
	p, from := s.Pipeline(), s.now()
	for i := range 50_000 {
		p.Do(ctx, "GO.WINDOW", "w", 5, 2000, 3, "MS", "FORCE")
		if i%1000 == 999 {
			_, err := p.Exec(ctx)
			require.NoError(t, err)
		}
	}
	for s.now()-from < 2_100_000_000 { // more than a period
		s.must("GO.WINDOW w 5 2000 3 MS FORCE")
	}
	assert.LessOrEqual(t, s.ZCard(ctx, "w").Val(), int64(121))
	assert.LessOrEqual(t, s.memory("w"), int64(4096))
	assert.True(t, strings.HasPrefix(s.must("GO.WINDOW w 5 2000 1 MS"), "[1 5 0 "))
}

// Callers that reserve at the same time get different slots, none of them later than maxwait.
func TestReserve_manyClients(t *testing.T) {
	s := start(t, options{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots, limited := map[int64]int{}, 0
	for range 40 {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			for range 5 {
				reply := ints(t, conn.Do(ctx, "GO.THROTTLE", "k", 4, 1, 10_000, 1, "RESERVE", 1_000_000))
				mu.Lock()
				if reply[0] == 1 {
					limited++
					assert.Equal(t, int64(-1), reply[5])
				} else {
					slots[(reply[5]+5000)/10_000]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 5, slots[0], "as many as the limit act at once")
	for i := range int64(100) {
		assert.Equal(t, 1, slots[i+1], "slot %d", i+1)
	}
	assert.Equal(t, 200-105, limited)
}

// An ACL user needs no more for the options than for the command, and a reader may ask with them.
func TestModes_ACL(t *testing.T) {
	s := start(t, options{})
	app, reader := s.as("app", "~a* -@all +go.throttle +go.window +go.quota +go.all"), s.as("reader", "~a* -@all +go.throttle_ro +go.window_ro +go.quota_ro +go.all_ro")
	for _, call := range []string{"GO.THROTTLE KEY 0 1 3600 1 FORCE", "GO.THROTTLE KEY 0 1 3600 1 RESERVE 60", "GO.THROTTLE KEY 0 1 3600 1 LOCKOUT 60",
		"GO.WINDOW KEYw 1 60 1 FORCE", "GO.QUOTA KEYq 1 60 1 FORCE", "GO.ALL KEY THROTTLE 0 1 3600 1 KEY KEYq QUOTA 1 60 FORCE"} {
		for _, key := range []string{"a", "b"} {
			words := fields(strings.ReplaceAll(strings.ReplaceAll(call, " KEY KEYq", " KEY "+key+"q"), " KEYw", " "+key+"w"))
			for i, word := range words {
				if i == 1 {
					words[i] = strings.Replace(word.(string), "KEY", key, 1)
				}
			}
			mayOrNot(t, key == "a", app.do(words...), fmt.Sprint(words))
			mayOrNot(t, false, reader.do(words...), fmt.Sprint(words))
			words[0] = words[0].(string) + "_RO"
			mayOrNot(t, key == "a", reader.do(words...), fmt.Sprint(words))
		}
	}
}

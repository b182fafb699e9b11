package tests

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dataset returns every key of databases 0 and 3 with its type, expiry and value.
func (s *server) dataset() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	conn := s.Conn()
	defer conn.Close()
	for _, db := range []int{3, 0} { // the connection must return to the pool with database 0 selected
		require.NoError(s.t, conn.Select(ctx, db).Err())
		keys, err := conn.Keys(ctx, "*").Result()
		require.NoError(s.t, err)
		p := conn.Pipeline()
		for _, key := range keys {
			p.Type(ctx, key)
			p.Do(ctx, "PEXPIRETIME", key)
			p.HGetAll(ctx, key)
			p.Get(ctx, key)
			p.ZRangeWithScores(ctx, key, 0, -1)
		}
		cmds, _ := p.Exec(ctx) // most reads give an error: each value has one type only
		for i, key := range keys {
			one := cmds[5*i : 5*i+5]
			kind := one[0].(*redis.StatusCmd).Val()
			value := ""
			switch kind {
			case "hash":
				value = fmt.Sprintf("%q", one[2].(*redis.MapStringStringCmd).Val()) // sorted by name
			case "string":
				value = fmt.Sprintf("%q", one[3].(*redis.StringCmd).Val())
			case "zset":
				for _, z := range one[4].(*redis.ZSliceCmd).Val() {
					value += fmt.Sprintf("%.17g %q, ", z.Score, z.Member)
				}
			}
			all[fmt.Sprintf("%d %s", db, key)] = fmt.Sprint(kind, " ", one[1].(*redis.Cmd).Val(), " ", value)
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
				t.Errorf("%s: %s is %q, want no such key", where, key, got[key])
			}
		}
	}
	assert.Zero(t, differ, "%s: number of keys that differ, of %d", where, len(want))
}

// inStep waits until a replica has received everything that its master sent.
func inStep(t testing.TB, master, replica *server) {
	t.Helper()
	eventually(t, "the replica has received everything", func() bool {
		return replica.info("replication", "master_link_status") == "up" &&
			replica.info("replication", "slave_repl_offset") == master.info("replication", "master_repl_offset")
	})
}

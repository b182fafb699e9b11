package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// states returns the values at keys of a node, and the times at which the keys expire.
func states(t *testing.T, n *server, keys []string) (values map[string]string, expiries map[string]int64) {
	t.Helper()
	values, expiries = map[string]string{}, map[string]int64{}
	for _, key := range keys {
		dump, err := n.Dump(ctx, key).Result()
		require.NoError(t, err, key)
		values[key], expiries[key] = dump, n.expiry(key)
	}
	return values, expiries
}

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

// alike checks that the two replies of ask are equal. A millisecond may pass between the two
// calls, and more on a busy machine, so alike asks again, at most a hundred times.
func alike(t *testing.T, what string, ask func() (a, b string)) {
	t.Helper()
	a, b := ask()
	for range 100 {
		if a == b {
			return
		}
		a, b = ask()
	}
	assert.Equal(t, a, b, what)
}

// sameAnswers checks that a and b reply the same to a peek at every limiter of database 0.
// The suffix of the commands is _RO or empty.
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
		switch {
		case kind == "hash" && len(name)%2 == 1: // a peek at two cells
			kind, call = "cells", "GO.ALL%s %s THROTTLE 15 7 10000000 0 THROTTLE 9 1 10000000 0"
		case kind == "lease" && suffix == "_RO": // a GO.LEASE would take a slot
			call = "GO.LEASE%s %s 10 1000 nobody"
		case call == "":
			continue
		}
		call = fmt.Sprintf(call, suffix, name)
		before, there, after := a.ask(call), b.ask(call), a.ask(call)
		if before == after { // otherwise a unit drained in between
			require.Equal(t, before, there, call)
			asked[kind]++
		}
	}
	kinds := 4
	if suffix == "_RO" {
		kinds++
	}
	assert.Len(t, asked, kinds, "%v", asked)
}

// inStep waits until a replica has received everything that its master sent.
func inStep(t testing.TB, master, replica *server) {
	t.Helper()
	eventually(t, "the replica has received everything", func() bool {
		return replica.info("replication", "master_link_status") == "up" &&
			replica.info("replication", "slave_repl_offset") == master.info("replication", "master_repl_offset")
	})
}

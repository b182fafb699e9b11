package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript has a cluster. In one of Valkey 9.1 a script with one call to keys of two slots makes the server refuse every
// later command of scripts and modules: the scripts are those of docs/upstream/valkey-rm-call.md. The limiters go on as
// the section "Cluster and hot keys" of docs/operating.md says. On other servers nothing is refused. The tests of the fake
// server have the replies.
func TestRefusedCalls(t *testing.T) {
	lasts(t)
	s := start(t, options{Args: []string{"--cluster-enabled", "yes"}})
	require.NoError(t, s.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, slots-1).Err())
	eventually(t, "the node serves all slots", func() bool { return strings.Contains(s.ClusterInfo(ctx).Val(), "cluster_state:ok\r") })
	require.Error(t, s.EvalRO(ctx, "return redis.pcall('MGET', 'a', 'b')", nil).Err())
	refused := s.Eval(ctx, "return redis.call('PING')", nil).Err() != nil
	t.Logf("the server refuses commands: %t", refused)
	for name, c := range samples {
		assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on("{s}"+name)...).Result()), name)
		assert.Equal(t, c.Sample.Second, flat(s.Do(ctx, c.on("{s}"+name)...).Result()), name)
	}
	const call = "GO.ALL {k}a THROTTLE 4 5 300 KEY {k}b WINDOW 9 300 KEY {k}c QUOTA 9 300 KEY {k}d LEASE 9 300 id"
	for i := range 5 {
		assert.Regexp(t, fmt.Sprintf(`^\[0 5 %d -1`, 4-i), s.ask(strings.Replace(call, "GO.ALL", "GO.ALL_RO", 1)))
		assert.Regexp(t, fmt.Sprintf(`^\[0 5 %d -1`, 4-i), s.ask(call))
	}
	assert.Regexp(t, `^\[1 5 0 `, s.ask(call))
	assert.Regexp(t, "^CROSSSLOT ", s.ask("GO.ALL {k}a QUOTA 9 60 KEY {l}b QUOTA 9 60"))
	mayOrNot(t, false, s.as("bob", "+@all ~{k}a").do(fields(call)...), "the second key")
	s.leasesDrain(t, refused)
	assert.Equal(t, "0", s.info("gothrottle", "gothrottle_panics"))
	warnings := strings.Count(s.log(), "restart this node before you move slots")
	assert.Equal(t, map[bool]int{true: 1}[refused], warnings, "warnings")
}

// leasesDrain makes calls at a key where three slots are held and 130 have lapsed.
func (s *server) leasesDrain(t *testing.T, refused bool) {
	now := s.now() / 1000
	var held []redis.Z
	for i := range 3 {
		held = append(held, redis.Z{Score: -float64(now + int64(i+1)*100e6), Member: fmt.Sprint("\x02held", i)})
	}
	for i := range 130 {
		held = append(held, redis.Z{Score: -float64(now - int64(i)), Member: fmt.Sprint("\x02", i)})
	}
	require.NoError(t, s.ZAdd(ctx, "lease", held...).Err())
	want := `^\[1 2 0 (200|19\d) (300|29\d) 0]$` // when the second of three slots lapses
	if refused {
		want = `^\[1 2 0 (300|29\d) (300|29\d) 0]$` // when the last one lapses
	}
	assert.Regexp(t, want, s.ask("GO.LEASE_RO lease 2 60 new"))
	assert.Regexp(t, want, s.ask("GO.LEASE lease 2 60 new"))
	assert.Equal(t, int64(5), s.ZCard(ctx, "lease").Val(), "a denied call removes 128 lapsed slots")
	assert.Regexp(t, `^\[0 4 0 -1 (300|29\d) 0]$`, s.ask("GO.LEASE lease 4 60 new"))
	assert.Equal(t, "2", s.ask("GO.RELEASE lease new held0"))
}

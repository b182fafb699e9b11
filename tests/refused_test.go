package tests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startNode starts a cluster of one node.
func startNode(t *testing.T) *server {
	t.Helper()
	s := start(t, options{args: []string{"--cluster-enabled", "yes"}})
	require.NoError(t, s.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, slots-1).Err())
	eventually(t, "the node serves all slots", func() bool { return strings.Contains(s.ClusterInfo(ctx).Val(), "cluster_state:ok\r") })
	return s
}

// In a cluster of Valkey 9.1 a script with one call to keys of two slots makes the server refuse every later
// command of scripts and modules: the scripts are those of docs/upstream/valkey-rm-call.md. The limiters go on as
// the section "Cluster and hot keys" of docs/operating.md says. On other servers nothing is refused.
func TestRefusedCalls(t *testing.T) {
	lasts(t)
	s := startNode(t)
	ping, crossing := "return redis.call('PING')", "return redis.pcall('MGET', 'a', 'b')"
	require.Equal(t, "PONG", s.Eval(ctx, ping, nil).Val())
	assert.Error(t, s.EvalRO(ctx, crossing, nil).Err())
	err := s.Eval(ctx, ping, nil).Err()
	refused := err != nil
	t.Logf("the server refuses commands: %t", refused)
	for name, c := range samples {
		assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on("{s}"+name)...).Result()), name)
		assert.Equal(t, c.Sample.Second, flat(s.Do(ctx, c.on("{s}"+name)...).Result()), name)
	}
	s.keysOfOneSlot(t)
	s.leasesDrain(t, refused)
	for kind, state := range map[string]string{"throttle": "4102444800000000000", "quota": "7@4102444800000000000"} {
		require.NoError(t, s.Set(ctx, kind, state, 0).Err())
		assert.Contains(t, s.ask("GO.INFO "+kind), "kind:"+kind)
	}
	assert.Equal(t, "0", s.counters()["gothrottle_panics"])
	warnings := strings.Count(s.log(), "restart this node before you move slots")
	assert.Equal(t, refused, warnings == 1, "%d warnings", warnings)
	assert.LessOrEqual(t, warnings, 1)
}

func (s *server) keysOfOneSlot(t *testing.T) {
	const call = "GO.ALL{} {k}a THROTTLE 4 5 300 KEY {k}b WINDOW 9 300 KEY {k}c QUOTA 9 300 KEY {k}d LEASE 9 300 id"
	for i := range 5 {
		assert.Regexp(t, fmt.Sprintf(`^\[0 5 %d -1`, 4-i), s.ask(strings.Replace(call, "{}", "_RO", 1)))
		assert.Regexp(t, fmt.Sprintf(`^\[0 5 %d -1`, 4-i), s.ask(strings.Replace(call, "{}", "", 1)))
	}
	assert.Regexp(t, `^\[1 5 0 `, s.ask(strings.Replace(call, "{}", "", 1)))
	assert.Regexp(t, "^CROSSSLOT ", s.ask("GO.ALL {k}a QUOTA 9 60 KEY {l}b QUOTA 9 60"))
	w := s.as("bob", "+@all ~{k}a")
	assert.Regexp(t, "^NOPERM ", w.do(fields(strings.Replace(call, "{}", "", 1))...))
}

// leasesDrain makes calls at a key where one slot is held and 130 have lapsed.
func (s *server) leasesDrain(t *testing.T, refused bool) {
	now := s.now() / 1000
	held := []redis.Z{{Score: -float64(now + 300e6), Member: "\x02held"}, {Score: -float64(now + 200e6), Member: "\x02too"}, {Score: -float64(now + 100e6), Member: "\x02also"}}
	for i := range 130 {
		held = append(held, redis.Z{Score: -float64(now - int64(i)), Member: fmt.Sprint("\x02", i)})
	}
	require.NoError(t, s.ZAdd(ctx, "lease", held...).Err())
	want := `^\[1 2 0 200 300 0]$` // when the second of three slots lapses
	if refused {
		want = `^\[1 2 0 300 300 0]$` // when the last one lapses
	}
	wait := regexp.MustCompile(`\b(299|199)\b`) // a second may have passed
	rounded := func(reply string) string {
		return wait.ReplaceAllStringFunc(reply, func(n string) string { return map[string]string{"299": "300", "199": "200"}[n] })
	}
	assert.Regexp(t, want, rounded(s.ask("GO.LEASE_RO lease 2 60 new")))
	assert.Regexp(t, want, rounded(s.ask("GO.LEASE lease 2 60 new")))
	assert.Equal(t, int64(5), s.ZCard(ctx, "lease").Val(), "a denied call removes 128 lapsed slots")
	assert.Equal(t, "[0 4 0 -1 300 0]", rounded(s.ask("GO.LEASE lease 4 60 new")))
	assert.Equal(t, "2", s.ask("GO.RELEASE lease new held"))
	var many []redis.Z
	for i := range 200 {
		many = append(many, redis.Z{Score: -float64(now + int64(1+i)*1e6 + 600e6), Member: fmt.Sprint("\x02many", i)})
	}
	require.NoError(t, s.ZAdd(ctx, "many", many...).Err())
	m := dict(t, s.session().do("GO.INFO", "many"))
	assert.Equal(t, refused, m["held"] == nil, "held %v", m["held"])
}

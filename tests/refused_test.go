package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// No transcript has a cluster. In one of Valkey 9.1 a script with one call to keys of two slots makes the server refuse every
// later command of scripts and modules: the scripts are those of docs/upstream/valkey-rm-call.md. The limiters go on as
// the section "Cluster and hot keys" of docs/operating.md says. On other servers nothing is refused. The tests of the fake
// server have the replies.
func TestRefusedCalls(t *testing.T) {
	lasts(t)
	s := connect(t, servers.NewCluster(t, 1, 0, launch(options{}))[0])
	require.Error(t, s.EvalRO(ctx, "return redis.pcall('MGET', 'a', 'b')", nil).Err())
	refused := s.Eval(ctx, "return redis.call('PING')", nil).Err() != nil
	t.Logf("the server refuses commands: %t", refused)
	for name, c := range samples {
		assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on("{s}"+name)...).Result()), name)
	}
	const call = "GO.ALL {k}a THROTTLE 1 5 300 KEY {k}b WINDOW 9 300 KEY {k}c QUOTA 9 300 KEY {k}d LEASE 9 300 id"
	for _, want := range []string{`^\[0 2 1 -1`, `^\[0 2 0 -1`, `^\[1 2 0 `} {
		assert.Regexp(t, want, s.ask(call))
	}
	assert.Regexp(t, "^CROSSSLOT ", s.ask("GO.ALL {k}a QUOTA 9 60 KEY {l}b QUOTA 9 60"))
	mayOrNot(t, false, s.as("bob", "+@all ~{k}a").do(fields(call)...), "the second key")
	assert.Equal(t, "0", s.info("gothrottle", "gothrottle_panics"))
	warnings := strings.Count(s.run.Log(), "restart this node before you move slots")
	assert.Equal(t, map[bool]int{true: 1}[refused], warnings, "warnings")
}

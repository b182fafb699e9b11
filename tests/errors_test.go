package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
)

// No transcript has scripts, nor looks at what the server counts: a script gets a wrong call's error, too, and the data set
// does not change.
func TestErrors_inScripts(t *testing.T) {
	s := start(t, options{})
	changes := s.info("persistence", "rdb_changes_since_last_save")
	for _, calls := range corpus.Wrong {
		for _, words := range calls {
			call := anyOf(words)
			err := s.Do(ctx, call...).Err()
			inScript := s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, call...).Err()
			if assert.Error(t, err, words) && assert.Error(t, inScript, words) && !strings.Contains(err.Error(), "number of arguments") {
				assert.True(t, strings.HasPrefix(inScript.Error(), err.Error()), "%.80q: %v", words, inScript)
			}
		}
	}
	assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"))
	assert.Zero(t, s.DBSize(ctx).Val())
}

// Words of a length that no transcript has: the error names 64 bytes of a word of a megabyte.
func TestErrors_longWord(t *testing.T) {
	s := start(t, options{})
	long := strings.Repeat("x", 1<<20)
	for want, call := range map[string][]any{
		"ERR unknown option '" + long[:64] + "': only MS may follow":                             {"GO.LEASE", "k", 1, 60, "a", long},
		"ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not '" + long[:64] + "'": {"GO.ALL", "k", long, 1, 1, 1},
	} {
		assert.EqualError(t, s.Do(ctx, call...).Err(), want)
	}
}

// Refusals of the server. None of them leaves a key behind.
func TestErrors_refusalsOfTheServer(t *testing.T) {
	s := start(t, options{})
	call := []any{"GO.THROTTLE", "k", 15, 30, 60}

	// When memory is full, the server refuses commands with the flag denyoom.
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "1").Err())
	for name, c := range samples {
		words := c.on("k")
		err := s.Do(ctx, words...).Err()
		inScript := s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, words...).Err()
		if strings.Contains(c.Flags, "deny-oom") {
			assert.ErrorContains(t, err, "OOM command not allowed", name)
			assert.ErrorContains(t, inScript, "OOM ", name)
		} else {
			assert.NoError(t, failure(err), name)
		}
	}
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "0").Err())

	// The user may not use the command, or not with this key.
	require.NoError(t, s.Do(ctx, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+auth").Err())
	require.NoError(t, s.Do(ctx, "ACL", "SETUSER", "app", "on", "nopass", "~app:*", "+go.throttle").Err())
	for _, user := range []string{"reader", "app"} {
		w := s.session()
		require.Equal(t, "OK", w.do("AUTH", user, "any"))
		reply := w.do(call...)
		if assert.Implements(t, (*error)(nil), reply, user) {
			assert.Regexp(t, "^NOPERM ", reply, user)
		}
	}

	// A replica refuses commands that may write.
	master, replica := startReplica(t)
	for name, c := range samples {
		err := replica.Do(ctx, c.on("k")...).Err()
		if c.writes() {
			assert.ErrorContains(t, err, "READONLY ", name)
		} else {
			assert.NoError(t, failure(err), name)
		}
	}
	assert.ErrorContains(t, replica.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60, 0).Err(), "READONLY ")

	// A cluster refuses a key whose slot no node serves.
	cluster := start(t, options{cluster: true, args: []string{"--cluster-require-full-coverage", "no"}})
	assert.ErrorContains(t, cluster.Do(ctx, call...).Err(), "CLUSTERDOWN ")
	require.NoError(t, cluster.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	eventually(t, "the slots are served", func() bool { return cluster.Do(ctx, call...).Err() == nil })

	for _, s := range []*server{s, master, replica} {
		assert.Zero(t, s.DBSize(ctx).Val())
	}
}

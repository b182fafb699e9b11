package tests

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const topKeys = "gothrottle.top-keys"

// top returns the reply of GO.TOP as text.
func (s *server) top(words ...any) string {
	s.t.Helper()
	return fmt.Sprint(s.Do(ctx, append([]any{"GO.TOP"}, words...)...).Val())
}

func TestTop_surface(t *testing.T) {
	s := start(t, options{})
	require.NoError(t, s.ConfigSet(ctx, topKeys, "10").Err())
	reply := s.wire().do("COMMAND", "INFO", "GO.TOP").([]any)[0].([]any)
	assert.EqualValues(t, -1, reply[1])
	assert.ElementsMatch(t, []string{"admin", "readonly", "loading", "stale", "module"}, wordsOf(reply[2]))
	assert.Equal(t, []any{int64(0), int64(0), int64(0)}, reply[3:6], "first key, last, step")
	if s.hasACLAPI() {
		assert.ElementsMatch(t, []string{"@slow", "@admin", "@dangerous"}, wordsOf(reply[6]))
		mayOrNot(t, false, s.as("reader", "~a:* -@all +@read").do("GO.TOP"), "+@read")
		mayOrNot(t, false, s.as("safe", "~a:* +@all -@dangerous").do("GO.TOP"), "-@dangerous")
		mayOrNot(t, true, s.as("admin", "~a:* -@all +@admin").do("GO.TOP"), "+@admin")
	}
	assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output", "request_policy:all_shards"}, wordsOf(reply[7]))
	assert.Empty(t, reply[8], "key specs")
}

// Denials count in each database, in transactions and in scripts. A replica counts its own.
func TestTop_counts(t *testing.T) {
	net := newNetwork(t)
	s := start(t, options{net: net})
	assert.ErrorContains(t, s.Do(ctx, "GO.TOP").Err(), "ERR no denials are counted")
	require.NoError(t, s.ConfigSet(ctx, topKeys, "1000").Err())
	assert.Equal(t, "[]", s.top())
	call := []any{"GO.QUOTA", "k\x00\xff", 1, 60, 2}
	for range 2 {
		require.NoError(t, s.Do(ctx, call...).Err())
	}
	_, err := s.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "SELECT", 3)
		p.Do(ctx, "GO.THROTTLE", "other", 0, 1, 60, 1)
		p.Do(ctx, "GO.THROTTLE", "other", 0, 1, 60, 1)
		p.Do(ctx, "SELECT", 0)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, call...).Err())
	assert.Equal(t, "[[0:k\x00\xff 3 0] [3:other 1 0]]", s.top())
	assert.Equal(t, "[[0:k\x00\xff 3 0]]", s.top(1, "RESET"))
	assert.Equal(t, "[]", s.top())

	r := start(t, options{net: net})
	r.follow(s)
	require.NoError(t, r.ConfigSet(ctx, topKeys, "1000").Err())
	require.NoError(t, s.Do(ctx, call...).Err())
	assert.Equal(t, "[[0:k\x00\xff 1 0]]", s.top())
	assert.Equal(t, "[]", r.top())
}

// The configuration is read from the file, is changed at run time and survives CONFIG REWRITE.
func TestTop_configuration(t *testing.T) {
	o := configFile(t, "LOAD", topKeys+" 5")
	s := start(t, o)
	assert.Equal(t, "5", s.ConfigGet(ctx, topKeys).Val()[topKeys])
	for i := range 6 {
		require.NoError(t, s.Do(ctx, "GO.QUOTA", fmt.Sprint("k", i), 1, 60, 2).Err())
	}
	assert.Len(t, s.Do(ctx, "GO.TOP").Val(), 5)
	for _, value := range []string{"-1", "10001", "x"} {
		assert.Error(t, s.ConfigSet(ctx, topKeys, value).Err(), value)
	}
	assert.Len(t, s.Do(ctx, "GO.TOP").Val(), 5)
	require.NoError(t, s.ConfigSet(ctx, topKeys, "0").Err())
	assert.ErrorContains(t, s.Do(ctx, "GO.TOP").Err(), "ERR no denials are counted")
	require.NoError(t, s.ConfigSet(ctx, topKeys, "7").Err())
	require.NoError(t, s.ConfigRewrite(ctx).Err())
	assert.Equal(t, "7", s.restart(o).ConfigGet(ctx, topKeys).Val()[topKeys])
}

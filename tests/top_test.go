package tests

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const topKeys = "gothrottle.top-keys"

// No transcript has databases, transactions or replicas: denials count in each of the first two, and a replica counts its
// own.
func TestTop(t *testing.T) {
	net := newNetwork(t)
	s := start(t, options{net: net})
	top := func(s *server) string { return s.ask("GO.TOP") }
	assert.Contains(t, top(s), "ERR no denials are counted")
	require.NoError(t, s.ConfigSet(ctx, topKeys, "1000").Err())
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
	assert.Equal(t, "[[0:k\x00\xff 3 0] [3:other 1 0]]", top(s))

	r := start(t, options{net: net})
	r.follow(s)
	require.NoError(t, r.ConfigSet(ctx, topKeys, "1000").Err())
	require.NoError(t, s.Do(ctx, call...).Err())
	inStep(t, s, r)
	assert.Equal(t, "[[0:k\x00\xff 4 0] [3:other 1 0]]", top(s))
	assert.Equal(t, "[]", top(r))

	for _, value := range []string{"-1", "10001", "x"} {
		assert.Error(t, s.ConfigSet(ctx, topKeys, value).Err(), value)
	}
}

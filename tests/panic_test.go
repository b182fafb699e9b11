package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

func TestPanic_repliesAnErrorAndTheServerGoesOn(t *testing.T) {
	s := start(t, options{module: buildPanicking(t)})
	require.Equal(t, []int64{0, 2, 1, -1, 3600}, s.throttle("k", 1, 1, 3600))
	state, at := s.state("k"), s.expiry("k")
	for _, call := range []string{"GO.PANIC k", "GO.PANIC k nil"} {
		for _, how := range []func() error{
			func() error { return s.Do(ctx, fields(call)...).Err() },
			func() error {
				return s.Eval(ctx, "return redis.pcall(unpack(ARGV))", nil, fields(call)...).Err()
			},
		} {
			before := len(s.log())
			err := how()
			require.ErrorContains(t, err, commands.ErrInternal.Text(), call)
			eventually(t, "the log mentions the panic", func() bool { return len(s.log()) > before })
			assert.Regexp(t, "(?i)panic", s.log()[before:], call)
			assert.Contains(t, s.log()[before:], ".go:", "%s: the log must name the place in the source", call)
			require.Equal(t, "PONG", s.Ping(ctx).Val())
		}
	}
	// The key has not changed, and other calls work.
	assert.Equal(t, state, s.state("k"))
	assert.Equal(t, at, s.expiry("k"))
	assert.Equal(t, []int64{0, 2, 0, -1, 7200}, s.throttle("k", 1, 1, 3600))
	for range 200 { // many panics have no other effect
		require.Error(t, s.Do(ctx, "GO.PANIC", "k", "nil").Err())
	}
	assert.Equal(t, []int64{1, 2, 0, 3600, 7200}, s.throttle("k", 1, 1, 3600))
}

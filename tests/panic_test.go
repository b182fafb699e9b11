package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// buildPanicking builds the module with a command more, GO.PANIC, whose handler
// panics: by itself, or with a nil dereference if so asked.
func buildPanicking(t *testing.T) string {
	t.Helper()
	if env.image != "" {
		t.Skip("the image holds the module as it is shipped; the local run has this test")
	}
	module := filepath.Join(t.TempDir(), "gothrottle.so")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-buildvcs=false",
		"-tags", "gothrottle_panic", "-o", module, "gothrottle/module")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(module, 0o755)) // the server loads only what may be executed
	return module
}

func TestPanic_isAnErrorAndTheServerLives(t *testing.T) {
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
			eventually(t, "the log tells of it", func() bool { return len(s.log()) > before })
			assert.Regexp(t, "(?i)panic", s.log()[before:], call)
			assert.Contains(t, s.log()[before:], ".go:", "%s: where it happened", call)
			require.Equal(t, "PONG", s.Ping(ctx).Val())
		}
	}
	// Nothing has changed, and all goes on.
	assert.Equal(t, state, s.state("k"))
	assert.Equal(t, at, s.expiry("k"))
	assert.Equal(t, []int64{0, 2, 0, -1, 7200}, s.throttle("k", 1, 1, 3600))
	for range 200 { // nor does it wear out
		require.Error(t, s.Do(ctx, "GO.PANIC", "k", "nil").Err())
	}
	assert.Equal(t, []int64{1, 2, 0, 3600, 7200}, s.throttle("k", 1, 1, 3600))
}

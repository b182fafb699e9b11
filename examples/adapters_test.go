package examples

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// The adapters do what their frameworks ask of a store, also what no request of TestExamples asks.
func TestAdapters(t *testing.T) {
	for name, suite := range map[string]struct {
		dir   string
		words []string
	}{
		"node":   {"../build/out/node", []string{"node_modules/.bin/node", "--test", "--test-force-exit", "adapters.test.js"}},
		"python": {"python", []string{"/usr/bin/python3", "-B", "limits_storage_test.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, servers.Options{})
			require.True(t, tried(func(int) bool { // on a slow machine the time limit of a call may end any attempt
				s.do("FLUSHALL")
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, suite.words[0], suite.words[1:]...)
				cmd.Dir, cmd.Env = suite.dir, append(os.Environ(), "ADDR="+s.Addr)
				said, err := cmd.CombinedOutput()
				t.Logf("%s", said)
				return err == nil
			}))
		})
	}
}

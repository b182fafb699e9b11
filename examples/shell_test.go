package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without redis-cli the script in shell has no decision. It must not admit for ever, as if the server were away.
func TestShell_withoutRedisCLI(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"bash", "timeout"} {
		found, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(found, filepath.Join(path, name)))
	}
	cmd := exec.Command("bash", "shell/limit.sh", "ann")
	cmd.Env = []string{"PATH=" + path, "ADDR=127.0.0.1:1"}
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", said)
	require.Equal(t, 2, exit.ExitCode(), "%s", said)
}

package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server ends when the process that started it is killed.
func TestStart_killed(t *testing.T) {
	const marker = "GOTHROTTLE_TEST_KILLED"
	if os.Getenv(marker) != "" {
		s, err := Start(Options{Bare: true})
		if err == nil {
			fmt.Print(s.Addr)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	Needed(t, "test-server")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), marker+"=1", "TMPDIR="+t.TempDir()) // nobody removes the folder of its server
	out, _ := cmd.Output()
	addr := string(out)
	_, _, err := net.SplitHostPort(addr)
	require.NoError(t, err, "there is no server: %s", addr)
	assert.NoError(t, Await("nothing listens at "+addr, func() bool {
		_, err := net.Dial("tcp", addr)
		return err != nil
	}))
}

// A server that does not start, or is closed, leaves nothing behind. The error shows the end of the log.
func TestStart(t *testing.T) {
	Needed(t, "test-server")
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(Options{Args: []string{"--no-such-setting", "1"}})
	assert.ErrorContains(t, err, "no-such-setting")
	New(t, Options{}).Close()
	left, _ := os.ReadDir(os.Getenv("TMPDIR"))
	assert.Empty(t, left, "left behind")
}

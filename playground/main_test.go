package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// At the end of the program, and when its terminal is closed, the keys of open pages are deleted. A page that listens does
// not hold the program up.
func TestProgram_cleansUpAtItsEnd(t *testing.T) {
	addr, rdb := startServer(t)
	program := filepath.Join(t.TempDir(), "playground")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		cmd := exec.Command(program, "--addr", addr, "--play", "--listen", "127.0.0.1:0")
		cmd.Stderr = os.Stderr
		printed, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		line, err := bufio.NewReader(printed).ReadString('\n')
		require.NoError(t, err)
		url := strings.Fields(line)[1]

		session := newSessionOf(t, url)
		post(t, session+"/lanes", lanes)
		post(t, session+"/call", "")
		response, err := http.Get(session)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Len(t, keys(t, rdb), 4)
		require.NoError(t, cmd.Process.Signal(end))
		require.NoError(t, cmd.Wait(), end)
		require.Empty(t, keys(t, rdb), end)
	}
}

// The program ends with a sentence if there is no server, or no module in it.
func TestProgram_refusesWhatItCannotWatch(t *testing.T) {
	addr, rdb := startServer(t)
	require.ErrorContains(t, serve(settings{addr: "127.0.0.1:1", listen: "127.0.0.1:0"}), "127.0.0.1:1: ")
	require.NoError(t, rdb.Do(t.Context(), "ACL", "SETUSER", "default", ">secret").Err())
	require.ErrorContains(t, serve(settings{addr: addr, listen: "127.0.0.1:0"}), "NOAUTH")
}

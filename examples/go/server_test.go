package examples

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

var quiet = slog.New(slog.DiscardHandler)

// startServer starts a server with the module of GOTHROTTLE_MODULE, and returns its address and a client.
func startServer(t *testing.T) (string, *redis.Client) {
	t.Helper()
	return startPlainServer(t, "--loadmodule", os.Getenv("GOTHROTTLE_MODULE"), "--gothrottle.policies", "api THROTTLE 1 1 60s")
}

// startPlainServer starts a server without the module, unless an argument loads it.
func startPlainServer(t *testing.T, args ...string) (string, *redis.Client) {
	t.Helper()
	program := os.Getenv("GOTHROTTLE_SERVER")
	if os.Getenv("GOTHROTTLE_MODULE") == "" || program == "" {
		t.Skip("make test-examples runs this test: GOTHROTTLE_MODULE and GOTHROTTLE_SERVER name the module and the server")
	}
	port := servers.FreePort()
	addr := "127.0.0.1:" + port
	cmd := exec.Command(program, append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", ""}, args...)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	require.Eventually(t, func() bool { return rdb.Ping(t.Context()).Err() == nil }, time.Minute, 10*time.Millisecond)
	return addr, rdb
}

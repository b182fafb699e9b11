package tests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"

	"gothrottle/tests/corpus"
)

// startBare starts a server that may load modules while it runs, and has not loaded ours.
func startBare(t *testing.T, args ...string) *server {
	t.Helper()
	return start(t, options{Bare: true, Args: append([]string{"--enable-module-command", "yes"}, args...)})
}

// has says whether the server has a command.
func (s *server) has(command string) bool {
	return s.session().list("COMMAND", "INFO", command)[0] != nil
}

// works checks that calls are made.
func (s *server) works() {
	s.t.Helper()
	s.must("DEL works")
	assert.Equal(s.t, "[0 16 15 -1 2]", s.must("GO.THROTTLE works 15 30 60"))
}

// MODULE LOADEX takes the policies, and refuses the load if they are wrong. A load that the server undoes, here because of a
// CONFIG that no module knows, leaves nothing behind (Redis 8 aborts if a module refuses that unload). Before its first command
// the module may be unloaded and loaded again: it has no policies then, and its ACL category has its commands. The fake server's
// tests have all arguments.
func TestLoad_loadex(t *testing.T) {
	s := startBare(t)
	loadex := func(policies string, more ...string) error {
		words := append([]string{"MODULE", "LOADEX", env.module, "CONFIG", "gothrottle.policies", policies}, more...)
		return s.Do(ctx, corpus.Args(words)...).Err()
	}
	for range 2 {
		require.Error(t, loadex("a QUOTA 1"))
		assert.Contains(t, s.run.Log(), "policy 1 (a): 'QUOTA' needs limit and period")
		require.Error(t, loadex("a QUOTA 1 1s", "CONFIG", "foo.bar", "1"))
		require.NotContains(t, s.must("MODULE LIST"), "gothrottle")
		require.False(t, s.has("GO.THROTTLE"))
		require.NoError(t, loadex("b  QUOTA 1 1s", "ARGS", "cl-throttle", "no"))
		assert.Equal(t, map[string]string{"gothrottle.policies": "b QUOTA 1 1s"}, s.settings())
		assert.Equal(t, "0", s.info("gothrottle", "gothrottle_throttle_admitted"))
		assert.False(t, s.has("CL.THROTTLE"))
		s.must("MODULE UNLOAD gothrottle")
		assert.Empty(t, s.settings())
		assert.Empty(t, s.info("gothrottle", "gothrottle_panics"))
	}
	s.must("MODULE LOAD " + env.module)
	assert.True(t, s.has("CL.THROTTLE"))
	assert.Equal(t, map[string]string{"gothrottle.policies": ""}, s.settings())
	if s.since(7, 4) || slices.Contains(s.ACLCat(ctx).Val(), "throttle") {
		var names []string
		for _, row := range commands.Table {
			if row.Name != "GO.TOP" {
				names = append(names, strings.ToLower(row.Name))
			}
		}
		// ACL CAT leaves out the commands of modules on Redis 7.4 and Valkey 8.0.
		assert.ElementsMatch(t, names, s.CommandList(ctx, &redis.FilterBy{ACLCat: "throttle"}).Val())
	}
	// From the first command on an unload is refused.
	s.works()
	require.Error(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	assert.Contains(t, s.run.Log(), "gothrottle cannot be unloaded")
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Contains(t, s.run.Log(), "gothrottle not loaded: a module named gothrottle is loaded")
	s.works()
}

// A Go runtime stays in its process after an unload. So another build of the module is refused,
// with the reason in the log. The first build may be loaded again.
func TestLoad_anotherBuildInTheSameProcessIsRefused(t *testing.T) {
	s := startBare(t, "--enable-debug-command", "yes")
	b, err := os.ReadFile(env.module)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.so")
	require.NoError(t, os.WriteFile(other, b, 0o755))

	s.must("MODULE LOAD " + env.module)
	s.must("MODULE UNLOAD gothrottle")
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", other).Err())
	assert.Contains(t, s.run.Log(), "gothrottle not loaded: another build of it was loaded into this process before. Restart the server")
	assert.NotContains(t, s.must("MODULE LIST"), "gothrottle")
	s.must("MODULE LOAD " + env.module)
	s.works()
	// The Go runtime of the other build has set handlers of signals as well. A crash is still the server's.
	require.Error(t, s.Do(ctx, "DEBUG", "SEGFAULT").Err())
	eventually(t, "the server has ended", s.run.Exited)
	assert.Contains(t, s.run.Log(), "gothrottle_throttle_admitted:1")
}

// A server that restarts itself keeps its process and its environment, but not the Go runtime. It loads
// the module again.
func TestLoad_restartWithinTheProcess(t *testing.T) {
	s := start(t, options{Args: []string{"--enable-debug-command", "yes"}})
	s.works()
	if exec.Command(s.info("server", "executable"), "--version").Run() != nil {
		t.Skip("the server's file does not run by itself, so the server cannot restart itself")
	}
	before, process := s.info("server", "run_id"), s.info("server", "process_id")
	s.Do(ctx, "DEBUG", "RESTART") // the connection ends before a reply
	eventually(t, "the server is back", func() bool {
		require.False(t, s.run.Exited(), s.run.Log())
		info, err := s.Info(ctx, "server").Result()
		return err == nil && strings.Contains(info, "run_id:") && !strings.Contains(info, before)
	})
	assert.Equal(t, process, s.info("server", "process_id"))
	s.works()
}

// The Go runtime's threads wake late from timers, so that they disturb the server's main thread less. No thread of the server does.
func TestLoad_onlyGoThreadsWakeLate(t *testing.T) {
	s := start(t, options{})
	pid, late := s.info("server", "process_id"), 0
	threads, err := filepath.Glob("/proc/" + pid + "/task/*")
	require.NoError(t, err)
	for _, thread := range threads {
		id := filepath.Base(thread)
		slack, err := os.ReadFile("/proc/" + id + "/timerslack_ns")
		if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") == "" {
			t.Skip("only root may read /proc/PID/timerslack_ns of another process")
		}
		require.NoError(t, err)
		name, err := os.ReadFile(thread + "/comm")
		require.NoError(t, err)
		if strings.TrimSpace(string(slack)) == "10000000" {
			late++
			assert.False(t, id == pid || regexp.MustCompile("^(bio_|io_thd)").Match(name), "thread %s, %s", id, name)
		}
	}
	assert.GreaterOrEqual(t, late, 2, "threads that wake late")
}

// SCRIPT DEBUG YES runs a script in a forked child, where Go can't run: the call says so, and the server goes on. The fake server's
// tests have all commands.
func TestLoad_forked(t *testing.T) {
	s := start(t, options{})
	conn, err := net.Dial("tcp", s.run.Addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "SCRIPT DEBUG YES\r\nEVAL \"return redis.pcall('GO.THROTTLE', 'k', 1, 1, 1)\" 0\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	for line := ""; !strings.HasPrefix(line, "+-> 1"); { // the child stops at the first line
		line, err = in.ReadString('\n')
		require.NoError(t, err)
	}
	_, err = fmt.Fprint(conn, "*1\r\n$8\r\ncontinue\r\n")
	require.NoError(t, err)
	said, err := io.ReadAll(in)
	require.NoError(t, err, "the script has not ended: %s", said)
	assert.Contains(t, string(said), "-"+commands.ErrForked.Text()) // Redis 8.6 sends bytes of its own memory before it
	s.works()
}

package tests

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// options says how a server differs from the default, which has the policies of the samples.
type options = servers.Options

// ioThreads makes a server read commands on several threads.
var ioThreads = []string{"--io-threads", "4"}

// server is one running server. The end of the test ends the server.
type server struct {
	t   testing.TB
	run *servers.Server
	*redis.Client
}

// launch fills options in for this run.
func launch(o options) options {
	if !o.Bare {
		o.Args = append([]string{"--gothrottle.policies", corpus.SamplePolicies}, o.Args...)
	}
	return o
}

// start starts a server and returns when it answers.
func start(t testing.TB, o options) *server {
	t.Helper()
	return connect(t, servers.New(t, launch(o)))
}

// connect returns a server that runs, with a client.
func connect(t testing.TB, run *servers.Server) *server {
	s := &server{t: t, run: run}
	s.Client = s.client(3)
	return s
}

// refuse starts a server, waits until it ends by itself and returns its log.
func refuse(t testing.TB, o options) string {
	t.Helper()
	s, err := servers.Start(launch(o))
	if err == nil {
		s.Close()
	}
	require.ErrorContains(t, err, "it has ended")
	return err.Error()
}

// restart ends the server with SIGTERM and starts a server with o on the same data.
func (s *server) restart(o options) *server {
	s.t.Helper()
	s.run.Terminate()
	o.Folder = s.run.Folder
	return start(s.t, o)
}

// client returns a new client of RESP2 or RESP3. The client never repeats a call.
func (s *server) client(protocol int) *redis.Client {
	c := s.run.Client(func(o *redis.Options) { o.Protocol, o.PoolSize = protocol, 100 })
	s.t.Cleanup(func() { c.Close() })
	return c
}

// sees waits until the server has seen the time of its clock.
func (s *server) sees(c *servers.Clock) {
	s.t.Helper()
	eventually(s.t, "the server has seen the time", func() bool { return s.now() == c.Wall*1000 })
}

// buildModule builds the module with further arguments of go build, and returns the file. With -tags gothrottle_panic it has
// one more command, GO.PANIC, whose handler calls panic, or dereferences nil if the argument says so.
func buildModule(t *testing.T, args ...string) string {
	t.Helper()
	module := filepath.Join(t.TempDir(), "gothrottle.so")
	build := exec.Command("go", append(append([]string{"build", "-buildmode=c-shared", "-buildvcs=false", "-o", module}, args...),
		"gothrottle/module")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOARCH="+goarch(), "CC="+cmp.Or(os.Getenv("GOTHROTTLE_CC"), "cc"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(module, 0o755)) // the server loads only executable files
	return module
}

// goarch is the architecture of the server and of what it loads.
func goarch() string { return cmp.Or(os.Getenv("GOTHROTTLE_GOARCH"), runtime.GOARCH) }

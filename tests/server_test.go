package tests

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

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
	t    testing.TB
	addr string
	run  *servers.Server
	*redis.Client
}

// launch fills options in for this run.
func launch(o options) options {
	// With the load argument module-name the configuration has another name.
	if !o.Bare && !slices.Contains(o.ModuleArgs, "redis-cell") {
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
	s := &server{t: t, addr: run.Addr, run: run}
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

func (s *server) log() string  { return s.run.Log() }
func (s *server) exited() bool { return s.run.Exited() }
func (s *server) terminate()   { s.run.Terminate() } // SIGTERM, and wait for the end

// restart ends the server with SIGTERM and starts a server with o on the same data.
func (s *server) restart(o options) *server {
	s.t.Helper()
	s.terminate()
	require.True(s.t, s.exited())
	o.Folder = s.run.Folder
	return start(s.t, o)
}

// client returns a new client of RESP2 or RESP3. The client never repeats a call.
func (s *server) client(protocol int) *redis.Client {
	c := s.run.Client(func(o *redis.Options) { o.Protocol, o.PoolSize = protocol, 100 })
	s.t.Cleanup(func() { c.Close() })
	return c
}

// follow makes s a replica of master and waits until s has received everything.
func (s *server) follow(master *server) {
	s.t.Helper()
	require.NoError(s.t, s.run.Follow(master.run))
}

// inStep waits until s has received everything that its master sent.
func (s *server) inStep(master *server) {
	s.t.Helper()
	require.NoError(s.t, s.run.InStep(master.run))
}

// clock is the wall clock of a server that was started with it. The server's monotonic clock stays the real one.
type clock struct {
	t testing.TB
	*servers.Clock
}

// newClock returns a clock that shows the real time.
func newClock(t testing.TB) *clock {
	t.Helper()
	c, err := servers.NewClock(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &clock{t, c}
}

// sees waits until the server has seen the time of its clock.
func (s *server) sees(at time.Time) {
	s.t.Helper()
	eventually(s.t, "the server has seen the time", func() bool { return s.now() == at.UnixNano() })
}

// freeze stops the clock at a time.
func (c *clock) freeze(at time.Time) {
	c.t.Helper()
	c.Frozen, c.Wall = true, at.UnixMicro()
	require.NoError(c.t, c.Write())
}

// inImage says whether the tests run in a container.
func inImage() bool { return os.Getenv("GOTHROTTLE_IN_IMAGE") != "" }

// localOnly skips a test that needs programs that a container lacks.
func localOnly(t testing.TB) {
	t.Helper()
	if inImage() {
		t.Skip("the run outside of the container has this test")
	}
}

// buildModule builds the module with further arguments of go build, and returns the file. With -tags gothrottle_panic it has
// one more command, GO.PANIC, whose handler calls panic, or dereferences nil if the argument says so.
func buildModule(t *testing.T, args ...string) string {
	t.Helper()
	localOnly(t)
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

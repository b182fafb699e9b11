package tests

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// image returns the image that GOTHROTTLE_IMAGE names.
func image(t *testing.T) string {
	t.Helper()
	name := os.Getenv("GOTHROTTLE_IMAGE")
	if name == "" {
		t.Skip("make test-docker runs this test")
	}
	return name
}

// runImage starts a container. The words are options of docker run, the image and its arguments.
func runImage(t *testing.T, words ...string) (container string, s *server) {
	t.Helper()
	container, addr := servers.Container(t, words...)
	return container, connect(t, &servers.Server{Addr: addr})
}

// The image works as users start it: without arguments, with arguments of the server, with a
// command, and with arguments of the module.
func TestImage_asAUserRunsIt(t *testing.T) {
	name := image(t)
	for _, c := range []struct {
		args []string
		cell bool
	}{
		{nil, true},
		{[]string{"--maxmemory", "100mb"}, true},
		{[]string{"redis-server", "--appendonly", "yes"}, true},
		{[]string{"redis-server", "--loadmodule", ourModule, "cl-throttle", "no"}, false},
	} {
		what := strings.Join(c.args, " ")
		_, s := runImage(t, append([]string{name}, c.args...)...)
		eventually(t, "the server answers", func() bool { return s.Ping(ctx).Err() == nil })
		assert.Equal(t, "[0 16 15 -1 2]", s.must("GO.THROTTLE user:42 15 30 60"), what)
		err := s.Do(ctx, "CL.THROTTLE", "user:43", 15, 30, 60).Err()
		assert.Equal(t, c.cell, err == nil, "%s: %v", what, err)
	}
}

func TestImage_isHealthyAndNotRoot(t *testing.T) {
	name := image(t)
	c, s := runImage(t, name)
	eventually(t, "the container is healthy", func() bool { return servers.Docker(t, "inspect", "-f", "{{.State.Health.Status}}", c) == "healthy" })
	assert.NotEqual(t, "0", servers.Docker(t, "exec", c, "id", "-u"))
	assert.Equal(t, "safe", servers.Docker(t, "exec", c, "sh", "-c", "test -w "+ourModule+" || echo safe"),
		"the user of the server must not be able to replace the module")
	// SIGTERM ends the container in good order. After a start the saved limiter is there.
	assert.Equal(t, "[0 2 1 -1 3600]", s.must("GO.THROTTLE k 1 1 3600"))
	servers.Docker(t, "stop", c)
	require.Equal(t, "0", servers.Docker(t, "inspect", "-f", "{{.State.ExitCode}}", c))
	servers.Docker(t, "start", c)
	eventually(t, "the server has loaded its data", func() bool { return strings.HasPrefix(s.ask("GO.THROTTLE k 1 1 3600"), "[0 2 0 -1 ") })
}

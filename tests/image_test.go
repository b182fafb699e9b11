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

// A user's words reach the server and the module. build/image_test.go has more words, and TestDocker_composeFile those of a user
// without a configuration file.
func TestImage_arguments(t *testing.T) {
	_, s := runImage(t, image(t), "redis-server", "--loadmodule", ourModule, "cl-throttle", "no")
	eventually(t, "the server answers", func() bool { return s.Ping(ctx).Err() == nil })
	s.works()
	assert.False(t, s.has("CL.THROTTLE"))
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

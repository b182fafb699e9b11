package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func imageOnly(t *testing.T) {
	t.Helper()
	if env.image == "" {
		t.Skip("only with GOTHROTTLE_IMAGE")
	}
}

// The image works as users start it: without arguments, with arguments of the server, with a
// command, and with arguments of the module.
func TestImage_asAUserRunsIt(t *testing.T) {
	imageOnly(t)
	for _, c := range []struct {
		args []string
		cell bool
	}{
		{nil, true},
		{[]string{"--maxmemory", "100mb"}, true},
		{[]string{env.server, "--appendonly", "yes"}, true},
		{[]string{env.server, "--loadmodule", env.module, "cl-throttle", "no"}, false},
	} {
		what := strings.Join(c.args, " ")
		s := connect(t, env.docker.Run(t, append([]string{env.image}, c.args...)...))
		require.NoError(t, s.run.Await(), what)
		assert.Equal(t, "[0 16 15 -1 2]", s.must("GO.THROTTLE user:42 15 30 60"), what)
		err := s.Do(ctx, "CL.THROTTLE", "user:43", 15, 30, 60).Err()
		assert.Equal(t, c.cell, err == nil, "%s: %v", what, err)
	}
}

func TestImage_isHealthyAndNotRoot(t *testing.T) {
	imageOnly(t)
	c := env.docker.Run(t, env.image)
	eventually(t, "the container is healthy", func() bool {
		require.False(t, c.Exited(), c.Log())
		out, err := env.docker.Do("inspect", "-f", "{{.State.Health.Status}}", c.Name)
		return err == nil && out == "healthy"
	})
	assert.NotEqual(t, "0", mustDocker(t, "exec", c.Name, "id", "-u"))
	assert.Equal(t, "safe", mustDocker(t, "exec", c.Name, "sh", "-c",
		"test -w "+env.module+" || echo safe"), "the user of the server must not be able to replace the module")
	// SIGTERM ends the container in good order. After a start the saved limiter is there.
	assert.Equal(t, "[0 2 1 -1 3600]", connect(t, c).must("GO.THROTTLE k 1 1 3600"))
	c.Terminate()
	require.Equal(t, "0", mustDocker(t, "inspect", "-f", "{{.State.ExitCode}}", c.Name))
	require.NoError(t, c.Restart())
	assert.Regexp(t, `^\[0 2 0 -1 `, connect(t, c).must("GO.THROTTLE k 1 1 3600"))
}

// CONFIG REWRITE writes a loadmodule line into the configuration file. The container starts again all
// the same: the entrypoint does not add a second one.
func TestImage_startsAgainAfterConfigRewrite(t *testing.T) {
	imageOnly(t)
	volume := newVolume(t) + ":/data"
	mustDocker(t, "run", "--rm", "--pull=never", "--label", env.docker.Label, "-v", volume, "--entrypoint", "/bin/sh", env.image,
		"-c", "echo dir /data >/data/server.conf")
	c := env.docker.Run(t, "-v", volume, env.image, "/data/server.conf")
	throttle := func() string {
		out, err := env.docker.Do("exec", c.Name, "sh", "-c",
			"$(command -v redis-cli || command -v valkey-cli) -e GO.THROTTLE k 1 1 3600")
		if err != nil {
			return ""
		}
		return strings.Join(strings.Fields(out), " ")
	}
	eventually(t, "the server answers", func() bool { return strings.HasPrefix(throttle(), "0 2 1 ") })
	mustDocker(t, "exec", c.Name, "sh", "-c", "$(command -v redis-cli || command -v valkey-cli) -e CONFIG REWRITE")
	mustDocker(t, "restart", c.Name)
	eventually(t, "the server answers again", func() bool { return strings.HasPrefix(throttle(), "0 2 0 ") })
	file := mustDocker(t, "exec", c.Name, "cat", "/data/server.conf")
	assert.Equal(t, 1, strings.Count(file, "loadmodule "), file)
}

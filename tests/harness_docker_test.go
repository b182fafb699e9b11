package tests

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// docker runs the docker command and returns its output without surrounding space.
func docker(args ...string) (string, error) {
	out, err := dockerOutput(args...)
	return strings.TrimSpace(out), err
}

func dockerOutput(args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(env.docker, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func mustDocker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := docker(args...)
	require.NoError(t, err)
	return out
}

// serial makes names unique within a run.
var serial atomic.Int64

func dockerName() string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(env.label, "=", "-"), serial.Add(1))
}

// guardContainers starts a shell that waits until this process ends, even if it is killed.
// The shell then removes all containers, networks and volumes with the label of this run.
// stop makes the shell do so at once and waits for its end.
func guardContainers() (stop func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", `read -r line
for kind in container network volume; do
	flags=-q; [ "$kind" = container ] && flags=-aq
	ids=$("$1" "$kind" ls $flags --filter "label=$2")
	[ -z "$ids" ] || "$1" "$kind" rm -f $ids >/dev/null 2>&1
done`, "sh", env.docker, env.label)
	cmd.SysProcAttr = ownGroup()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		_ = cmd.Wait()
	}, nil
}

func newVolume(t testing.TB) *data {
	t.Helper()
	name := mustDocker(t, "volume", "create", "--label", env.label, dockerName())
	// Cleanups run last in, first out, so the containers are removed before the volume.
	t.Cleanup(func() { _, _ = docker("volume", "rm", "-f", name) })
	return &data{inside: "/data", volume: name}
}

func (d *data) readVolume(t testing.TB, pattern string) string {
	t.Helper()
	text, err := dockerOutput("run", "--rm", "--pull=never", "--label", env.label, "-v", d.volume+":/data:ro",
		"--entrypoint", "/bin/sh", env.baseImage, "-c", "cat /data/"+pattern)
	require.NoError(t, err)
	return text
}

// newNetwork creates a network on which containers reach each other by name. It returns ""
// if servers are local processes.
func newNetwork(t testing.TB) string {
	t.Helper()
	if env.image == "" {
		return ""
	}
	name := dockerName()
	mustDocker(t, "network", "create", "--label", env.label, name)
	t.Cleanup(func() { _, _ = docker("network", "rm", name) })
	return name
}

// container is a server in Docker.
type container struct{ name string }

func launchContainer(t testing.TB, o options, args []string) (instance, string) {
	t.Helper()
	require.Empty(t, o.module, "a container runs the module of its image")
	image := env.image
	if o.bare {
		image = env.baseImage
	}
	run := []string{"-v", o.data.volume + ":/data"}
	if o.net != "" {
		run = append(run, "--network", o.net)
	}
	// The port is published on the loopback address only, so the server may listen on all
	// addresses of its container.
	args = append([]string{env.server, "--bind", "0.0.0.0", "--protected-mode", "no"}, args...)
	c := runContainer(t, run, image, args...)
	if c.exited() {
		return c, ""
	}
	return c, c.published(t)
}

// runContainer starts a container. The end of the test removes the container.
func runContainer(t testing.TB, run []string, image string, args ...string) *container {
	t.Helper()
	c := &container{name: dockerName()}
	all := append([]string{"run", "--pull=never", "-d", "--name", c.name, "--label", env.label,
		"-p", "127.0.0.1:0:6379"}, run...)
	mustDocker(t, append(append(all, image), args...)...)
	t.Cleanup(func() { _, _ = docker("rm", "-f", "-v", c.name) })
	return c
}

// published returns the address of the container on this machine, "" if the container has
// ended.
func (c *container) published(t testing.TB) string {
	t.Helper()
	addr, err := docker("port", c.name, "6379/tcp")
	if err != nil {
		require.True(t, c.exited(), "%v", err)
		return ""
	}
	host, _, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host, "the port must be published on the loopback address only")
	return addr
}

func (c *container) log() string {
	out, _ := exec.Command(env.docker, "logs", c.name).CombinedOutput()
	return string(out)
}

func (c *container) exited() bool {
	state, err := docker("inspect", "-f", "{{.State.Status}}", c.name)
	return err != nil || state == "exited" || state == "dead"
}

func (c *container) terminate()             { _, _ = docker("stop", "-t", "20", c.name) }
func (c *container) kill()                  { _, _ = docker("kill", c.name) }
func (c *container) peer() (string, string) { return c.name, "6379" }

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

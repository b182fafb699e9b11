package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	servers "gothrottle/tests/server"
)

// build/test-deploy.sh sets the variables.
func needDocker(t *testing.T) {
	t.Helper()
	if os.Getenv("GOTHROTTLE_DOCKER_CLI") == "" {
		t.Skip("only with GOTHROTTLE_DOCKER_CLI, GOTHROTTLE_COMPOSE, GOTHROTTLE_IMAGE, GOTHROTTLE_INIT and GOTHROTTLE_BASE_IMAGE")
	}
}

// succeeds waits until a command in the container succeeds.
func succeeds(t *testing.T, container string, command ...string) {
	t.Helper()
	until := []string{"exec", container, "timeout", "60", "sh", "-c", `until "$@"; do sleep 0.1; done`, "sh"}
	servers.Docker(t, append(until, command...)...)
}

// throttled makes a call of a limiter of 2, which must admit and have so many left.
func throttled(t *testing.T, container string, left int) {
	t.Helper()
	out := servers.Docker(t, "exec", container, "redis-cli", "-e", "GO.THROTTLE", "user:42", "1", "1", "3600")
	assert.Equal(t, fmt.Sprintf("0 2 %d", left), strings.Join(strings.Fields(out)[:3], " "))
}

// volumes makes a folder for each volume of the pod, as a node does: it belongs to the pod's group, and one of a ConfigMap or a
// Secret has its files.
func volumes(t *testing.T, set *appsv1.StatefulSet, files map[string]map[string]string) map[string]string {
	t.Helper()
	pod, from := set.Spec.Template.Spec, map[string]string{set.Spec.VolumeClaimTemplates[0].Name: t.TempDir()}
	for _, volume := range pod.Volumes {
		from[volume.Name] = t.TempDir()
	}
	for name, folder := range from {
		require.NoError(t, os.Chown(folder, -1, int(*pod.SecurityContext.FSGroup)))
		require.NoError(t, os.Chmod(folder, 0o775))
		for file, text := range files[name] {
			path := filepath.Join(folder, file)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			require.NoError(t, os.Chmod(path, 0o644)) // whatever the umask is
		}
	}
	return from
}

// arguments returns the arguments of docker run for a container of the pod. TestChart_fitsTogether holds its rights.
func arguments(pod corev1.PodSpec, c corev1.Container, image string, from map[string]string) []string {
	s := pod.SecurityContext
	args := []string{"--user", fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup), "--group-add", strconv.FormatInt(*s.FSGroup, 10),
		"--cap-drop", "ALL", "--read-only", "--security-opt", "no-new-privileges", "--memory", strconv.FormatInt(c.Resources.Limits.Memory().Value(), 10)}
	for _, mount := range c.VolumeMounts {
		args = append(args, "--volume", from[mount.Name]+":"+mount.MountPath+map[bool]string{true: ":ro"}[mount.ReadOnly])
	}
	if len(c.Command) > 0 {
		return append(append(args, "--entrypoint", c.Command[0], image), append(c.Command[1:], c.Args...)...)
	}
	return append(append(args, image), c.Args...)
}

// The pod of the chart works in Docker: the init container copies the module, the plain server loads it and wants the
// password, the probes succeed, and the data outlives a restart. A second pod follows the first one. The claim, the
// Services, the policies and the scheduling are not tried: Docker isn't a node.
func TestDocker_podOfTheChart(t *testing.T) {
	needDocker(t)
	const password = `a b"c`
	all := render(t, "--set", "password="+password)
	set, secret := all["StatefulSet limits"].(*appsv1.StatefulSet), all["Secret limits"].(*corev1.Secret).StringData
	files := map[string]map[string]string{"config": all["ConfigMap limits"].(*corev1.ConfigMap).Data, "auth": secret}
	pod := set.Spec.Template.Spec
	first, redis := pod.InitContainers[0], pod.Containers[0]
	assert.Equal(t, "REDISCLI_AUTH", redis.Env[0].Name)
	assert.Equal(t, "limits", redis.Env[0].ValueFrom.SecretKeyRef.Name)
	assert.Equal(t, password, secret[redis.Env[0].ValueFrom.SecretKeyRef.Key])
	version := servers.Docker(t, "image", "inspect", "--format", `{{index .Config.Labels "org.opencontainers.image.version"}}`, os.Getenv("GOTHROTTLE_INIT"))
	assert.Regexp(t, `^\d+\.\d+\.\d+\s*$`, version)
	started := map[string]string{}
	for _, host := range []string{"limits-0", "limits-1"} {
		from := volumes(t, set, files)
		servers.Docker(t, append([]string{"run", "--rm", "--pull=never"}, arguments(pod, first, os.Getenv("GOTHROTTLE_INIT"), from)...)...)
		args := append([]string{"--env", "REDISCLI_AUTH=" + password, "--env", "HOSTNAME=" + host}, arguments(pod, redis, os.Getenv("GOTHROTTLE_BASE_IMAGE"), from)...)
		started[host], _ = servers.Container(t, args...)
		succeeds(t, started[host], redis.ReadinessProbe.Exec.Command...)
		succeeds(t, started[host], redis.LivenessProbe.Exec.Command...)
	}
	name := started["limits-0"]
	throttled(t, name, 1)
	assert.Contains(t, servers.Docker(t, "exec", "--env", "REDISCLI_AUTH=", name, "redis-cli", "PING"), "NOAUTH")
	assert.Contains(t, servers.Docker(t, "exec", started["limits-1"], "redis-cli", "ROLE"), "limits-0.limits-nodes")
	servers.Docker(t, "restart", name)
	succeeds(t, name, redis.ReadinessProbe.Exec.Command...)
	throttled(t, name, 0)
}

// The compose file starts a confined and healthy server with the module, on 127.0.0.1 only, and its data outlives the
// container.
func TestDocker_composeFile(t *testing.T) {
	needDocker(t)
	port := servers.FreePort()
	run := func(args ...string) string {
		cmd := exec.Command(os.Getenv("GOTHROTTLE_COMPOSE"), append([]string{"--file", "compose.yaml", "--project-name", fmt.Sprintf("gothrottle-compose-%d", os.Getpid())}, args...)...)
		cmd.Env = append(os.Environ(), "IMAGE="+os.Getenv("GOTHROTTLE_IMAGE"), "PORT="+port)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		assert.NoError(t, err, "%q", args)
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run("down", "--volumes", "--timeout", "5") })
	for left := 1; left >= 0; left-- {
		run("up", "--detach", "--no-build")
		id := run("ps", "--quiet", "gothrottle")
		healthy := func() bool {
			return servers.Docker(t, "inspect", "--format", "{{.State.Health.Status}}", id) == "healthy"
		}
		require.NoError(t, servers.Await("the server is healthy", healthy))
		throttled(t, id, left)
		assert.Equal(t, "127.0.0.1:"+port, servers.Docker(t, "port", id, "6379/tcp"))
		assert.Equal(t, "true [ALL]", servers.Docker(t, "inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}", id))
		run("down", "--timeout", "20")
	}
}

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	servers "gothrottle/tests/server"
)

// images are the images to run. build/test-deploy.sh sets the variables.
type images struct {
	*servers.Docker
	server, init, plain string
}

func needDocker(t *testing.T) images {
	t.Helper()
	if os.Getenv("GOTHROTTLE_DOCKER_CLI") == "" {
		t.Skip("only with GOTHROTTLE_DOCKER_CLI, GOTHROTTLE_IMAGE, GOTHROTTLE_INIT and GOTHROTTLE_BASE_IMAGE")
	}
	d, err := servers.NewDocker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return images{d, os.Getenv("GOTHROTTLE_IMAGE"), os.Getenv("GOTHROTTLE_INIT"), os.Getenv("GOTHROTTLE_BASE_IMAGE")}
}

func (i images) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := i.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// succeeds waits until a command in the container succeeds.
func (i images) succeeds(t *testing.T, container string, command ...string) {
	t.Helper()
	err := servers.Await(strings.Join(command, " ")+" succeeds", func() bool {
		_, err := i.Do(append([]string{"exec", container}, command...)...)
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// throttled makes a call of a limiter of 2, which must admit and have so many left.
func (i images) throttled(t *testing.T, container string, left int) {
	t.Helper()
	out := i.must(t, "exec", container, "redis-cli", "-e", "GO.THROTTLE", "user:42", "1", "1", "3600")
	if got, want := strings.Join(strings.Fields(out)[:3], " "), fmt.Sprintf("0 2 %d", left); got != want {
		t.Errorf("GO.THROTTLE replies %s, want %s", got, want)
	}
}

// volumes makes the volumes of a pod, as a node does: an empty folder belongs to the pod's group, and a folder of a
// ConfigMap or a Secret has its files. It returns for each volume a folder of this machine, or a volume of Docker.
func (i images) volumes(t *testing.T, set *appsv1.StatefulSet, files map[string]map[string]string) map[string]string {
	t.Helper()
	pod, from := set.Spec.Template.Spec, map[string]string{}
	empty := []string{set.Spec.VolumeClaimTemplates[0].Name}
	for _, volume := range pod.Volumes {
		if volume.EmptyDir != nil {
			empty = append(empty, volume.Name)
			continue
		}
		from[volume.Name] = t.TempDir()
		for file, text := range files[volume.Name] {
			if err := os.WriteFile(filepath.Join(from[volume.Name], file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// The pod's user is another one.
		if err := exec.Command("chmod", "-R", "a+rX", from[volume.Name]).Run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, volume := range empty {
		var err error
		if from[volume], err = i.Volume(); err != nil {
			t.Fatal(err)
		}
		i.must(t, "run", "--rm", "--pull=never", "--user", "0", "--volume", from[volume]+":/volume", "--entrypoint", "/bin/sh", i.plain,
			"-c", fmt.Sprintf("chgrp %d /volume && chmod 2775 /volume", *pod.SecurityContext.FSGroup))
	}
	return from
}

// arguments returns the arguments of docker run for a container of the pod. TestChart_fitsTogether holds its rights.
func arguments(pod corev1.PodSpec, c corev1.Container, image string, from map[string]string) []string {
	s := pod.SecurityContext
	args := []string{"--user", fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup), "--group-add", strconv.FormatInt(*s.FSGroup, 10),
		"--cap-drop", "ALL", "--read-only", "--security-opt", "no-new-privileges", "--memory", strconv.FormatInt(c.Resources.Limits.Memory().Value(), 10)}
	for _, mount := range c.VolumeMounts {
		mode := map[bool]string{true: ":ro", false: ":rw"}[mount.ReadOnly]
		// A node does not change a volume to what the image has at its path. Docker does, unless nocopy is set.
		if !filepath.IsAbs(from[mount.Name]) {
			mode += ",nocopy"
		}
		args = append(args, "--volume", from[mount.Name]+":"+mount.MountPath+mode)
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
	i := needDocker(t)
	const password = `a b"c`
	all := render(t, "--set", "password="+password)
	set, secret := all["StatefulSet limits"].(*appsv1.StatefulSet), all["Secret limits"].(*corev1.Secret).StringData
	files := map[string]map[string]string{"config": all["ConfigMap limits"].(*corev1.ConfigMap).Data, "auth": secret}
	pod := set.Spec.Template.Spec
	first, redis := pod.InitContainers[0], pod.Containers[0]
	if ref := redis.Env[0].ValueFrom.SecretKeyRef; redis.Env[0].Name != "REDISCLI_AUTH" || ref.Name != "limits" || secret[ref.Key] != password {
		t.Fatalf("the probes get their password from %v", ref)
	}
	started := map[string]string{}
	for _, host := range []string{"limits-0", "limits-1"} {
		from := i.volumes(t, set, files)
		i.must(t, append([]string{"run", "--rm", "--pull=never"}, arguments(pod, first, i.init, from)...)...)
		args := append([]string{"--env", "REDISCLI_AUTH=" + password, "--env", "HOSTNAME=" + host}, arguments(pod, redis, i.plain, from)...)
		started[host], _ = i.Run(t, args...)
		i.succeeds(t, started[host], redis.ReadinessProbe.Exec.Command...)
		i.succeeds(t, started[host], redis.LivenessProbe.Exec.Command...)
	}
	name := started["limits-0"]
	i.throttled(t, name, 1)
	if out := i.must(t, "exec", "--env", "REDISCLI_AUTH=", name, "redis-cli", "PING"); !strings.Contains(out, "NOAUTH") {
		t.Errorf("without the password: %s", out)
	}
	if out := i.must(t, "exec", started["limits-1"], "redis-cli", "ROLE"); !strings.Contains(out, "limits-0.limits-nodes") {
		t.Errorf("the second pod is %s", out)
	}
	i.must(t, "restart", name)
	i.succeeds(t, name, redis.ReadinessProbe.Exec.Command...)
	i.throttled(t, name, 0)
}

// The compose file starts a confined and healthy server with the module, on 127.0.0.1 only, and its data outlives the
// container.
func TestDocker_composeFile(t *testing.T) {
	i := needDocker(t)
	compose := os.Getenv("GOTHROTTLE_COMPOSE")
	if compose == "" {
		t.Skip("only with GOTHROTTLE_COMPOSE, a docker-compose command")
	}
	port := servers.FreePort()
	run := func(args ...string) string {
		cmd := exec.Command(compose, append([]string{"--file", "compose.yaml", "--project-name", fmt.Sprintf("gothrottle-compose-%d", os.Getpid())}, args...)...)
		cmd.Env = append(os.Environ(), "IMAGE="+i.server, "PORT="+port)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run("down", "--volumes", "--timeout", "5") })
	for left := 1; left >= 0; left-- {
		run("up", "--detach", "--no-build")
		id := run("ps", "--quiet", "gothrottle")
		healthy := func() bool { return i.must(t, "inspect", "--format", "{{.State.Health.Status}}", id) == "healthy" }
		if err := servers.Await("the server is healthy", healthy); err != nil {
			t.Fatal(err)
		}
		i.throttled(t, id, left)
		if got, want := i.must(t, "port", id, "6379/tcp"), "127.0.0.1:"+port; got != want {
			t.Errorf("the port is published on %s, want %s", got, want)
		}
		if got, want := i.must(t, "inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}", id), "true [ALL]"; got != want {
			t.Errorf("the container has the rights %s, want %s", got, want)
		}
		run("down", "--timeout", "20")
	}
}

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	servers "gothrottle/tests/server"
)

// images are the images to run, by the names that the files have for them. build/test-deploy.sh sets
// the variables.
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

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := servers.Await(what, done); err != nil {
		t.Fatal(err)
	}
}

// throttled checks the first integers of a reply of GO.THROTTLE, which tell what is left of 2.
func (i images) throttled(t *testing.T, container string, left int) {
	t.Helper()
	out := i.must(t, "exec", container, "redis-cli", "-e", "GO.THROTTLE", "user:42", "1", "1", "3600")
	if got, want := strings.Join(strings.Fields(out)[:3], " "), fmt.Sprintf("0 2 %d", left); got != want {
		t.Errorf("GO.THROTTLE replies %s, want %s", got, want)
	}
}

// pod runs the containers of a pod in Docker.
type pod struct {
	images
	spec corev1.PodSpec
	from map[string]string // by the volume's name: a folder of this machine, or a volume of Docker
}

// newPod makes the volumes of a pod, as a node does: an empty folder belongs to the pod's group, and a
// folder of a ConfigMap holds its files.
func newPod(t *testing.T, i images, m manifests) *pod {
	t.Helper()
	p := &pod{images: i, spec: m.set.Spec.Template.Spec, from: map[string]string{}}
	group := strconv.FormatInt(*p.spec.SecurityContext.FSGroup, 10)
	empty := func(name string) {
		volume, err := i.Create("volume")
		if err != nil {
			t.Fatal(err)
		}
		i.must(t, "run", "--rm", "--pull=never", "--user", "0", "--volume", volume+":/volume", "--entrypoint", "/bin/sh", i.plain,
			"-c", "chgrp "+group+" /volume && chmod 2775 /volume")
		p.from[name] = volume
	}
	for _, volume := range p.spec.Volumes {
		if volume.EmptyDir != nil {
			empty(volume.Name)
			continue
		}
		folder := t.TempDir()
		readable(t, folder, 0o755)
		for name, text := range m.config.Data {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			readable(t, filepath.Join(folder, name), 0o644)
		}
		p.from[volume.Name] = folder
	}
	for _, claim := range m.set.Spec.VolumeClaimTemplates {
		empty(claim.Name)
	}
	return p
}

// readable sets the mode of a file or folder, whatever the umask is. The pod's user is another one.
func readable(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// args returns the arguments of docker run for a container of the pod.
func (p *pod) args(c corev1.Container, image string) []string {
	s := p.spec.SecurityContext
	args := []string{"--user", fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup), "--group-add", strconv.FormatInt(*s.FSGroup, 10)}
	for _, drop := range c.SecurityContext.Capabilities.Drop {
		args = append(args, "--cap-drop", string(drop))
	}
	if *c.SecurityContext.ReadOnlyRootFilesystem {
		args = append(args, "--read-only")
	}
	if !*c.SecurityContext.AllowPrivilegeEscalation {
		args = append(args, "--security-opt", "no-new-privileges")
	}
	args = append(args, "--memory", strconv.FormatInt(c.Resources.Limits.Memory().Value(), 10))
	for _, mount := range c.VolumeMounts {
		mode := ":rw"
		if mount.ReadOnly {
			mode = ":ro"
		}
		// A node does not change a volume to what the image has at its path. Docker does, unless told not to.
		if !filepath.IsAbs(p.from[mount.Name]) {
			mode += ",nocopy"
		}
		args = append(args, "--volume", p.from[mount.Name]+":"+mount.MountPath+mode)
	}
	if len(c.Command) > 0 {
		args = append(args, "--entrypoint", c.Command[0], image)
		return append(append(args, c.Command[1:]...), c.Args...)
	}
	return append(append(args, image), c.Args...)
}

// What the manifests ask for works in Docker: the init container copies the module, the plain server
// loads it, the probes succeed, and the data outlives a restart. Docker is no node: the claim, the
// Service and the scheduling are not tried.
func TestDocker_podOfTheManifests(t *testing.T) {
	i := needDocker(t)
	m, err := decode(readFile(t, "kubernetes/gothrottle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPod(t, i, m)
	first, redis := p.spec.InitContainers[0], p.spec.Containers[0]
	i.must(t, append([]string{"run", "--rm", "--pull=never"}, p.args(first, i.init)...)...)
	name := i.Run(t, p.args(redis, i.plain)...).Name
	probe := func(probe *corev1.Probe) func() bool {
		return func() bool {
			_, err := i.Do(append([]string{"exec", name}, probe.Exec.Command...)...)
			return err == nil
		}
	}
	eventually(t, "the server is ready", probe(redis.ReadinessProbe))
	eventually(t, "the server is alive", probe(redis.LivenessProbe))
	i.throttled(t, name, 1)
	if out, err := i.Do("exec", name, "redis-cli", "-e", "CONFIG", "REWRITE"); err == nil {
		t.Errorf("CONFIG REWRITE replies %s: the file says that it fails", out)
	}
	i.must(t, "restart", name)
	eventually(t, "the server is ready again", probe(redis.ReadinessProbe))
	i.throttled(t, name, 0)
}

// The operator's command ends with the args of the manifest, and replaces the image's entrypoint.
func TestDocker_operatorsArguments(t *testing.T) {
	i := needDocker(t)
	var o operated
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "kubernetes/valkey-operator.yaml")), &o); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--entrypoint", "redis-server", i.server, "--cluster-announce-ip", "127.0.0.1"}, o.Spec.Containers[0].Args...)
	name := i.Run(t, args...).Name
	eventually(t, "the server answers", func() bool {
		_, err := i.Do("exec", name, "redis-cli", "-e", "ping")
		return err == nil
	})
	i.throttled(t, name, 1)
}

// The compose file starts a healthy server with the module, on 127.0.0.1 only, and its data outlives
// the container.
func TestDocker_composeFile(t *testing.T) {
	i := needDocker(t)
	compose := os.Getenv("GOTHROTTLE_COMPOSE")
	if compose == "" {
		t.Skip("only with GOTHROTTLE_COMPOSE, a docker-compose command")
	}
	project, port := fmt.Sprintf("gothrottle-compose-%d", os.Getpid()), servers.FreePort()
	run := func(args ...string) (string, error) {
		cmd := exec.Command(compose, append([]string{"--file", "compose.yaml", "--project-name", project}, args...)...)
		cmd.Env = append(os.Environ(), "IMAGE="+i.server, "PORT="+port)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	t.Cleanup(func() {
		if _, err := run("down", "--volumes", "--timeout", "5"); err != nil {
			t.Error(err)
		}
	})
	up := func() string {
		if _, err := run("up", "--detach", "--no-build"); err != nil {
			t.Fatal(err)
		}
		id, err := run("ps", "--quiet", "gothrottle")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server is healthy", func() bool {
			return i.must(t, "inspect", "--format", "{{.State.Health.Status}}", id) == "healthy"
		})
		return id
	}
	id := up()
	i.throttled(t, id, 1)
	if got := i.must(t, "port", id, "6379/tcp"); got != "127.0.0.1:"+port {
		t.Errorf("the port is published on %s", got)
	}
	if _, err := run("down", "--timeout", "20"); err != nil {
		t.Fatal(err)
	}
	i.throttled(t, up(), 0)
}

package server

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// ImageProgram and ImageModule are the server and the module of an image.
const (
	ImageProgram = "redis-server"
	ImageModule  = "/usr/lib/redis/modules/gothrottle.so"
)

func docker() string { return cmp.Or(os.Getenv("GOTHROTTLE_DOCKER_CLI"), "docker") }

// Docker runs the docker command and returns its output without surrounding space.
func Docker(args ...string) (string, error) {
	out, err := exec.Command(docker(), args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// MustDocker is Docker in a test, which ends if the command fails.
func MustDocker(tb testing.TB, args ...string) string {
	tb.Helper()
	out, err := Docker(args...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// made runs a docker command that makes a thing, and returns its name. The thing is removed when the test ends, even if this
// process is killed: a shell waits until its input ends. It tries again, because a volume may still have its container.
func made(tb testing.TB, remove string, args ...string) string {
	tb.Helper()
	name := MustDocker(tb, args...)
	script := fmt.Sprintf(`read -r line; for try in 1 2 3 4 5; do "$0" %s "$1" && exit; sleep 1; done`, remove)
	cmd := exec.Command("/bin/sh", "-c", script, docker(), name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C does not end it
	in, err := cmd.StdinPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return name
}

// Volume makes a volume that ends with the test, and returns its name.
func Volume(tb testing.TB) string { return made(tb, "volume rm", "volume", "create") }

// Container starts a container as a user does, which ends with the test: the words are options of docker run, the image and its
// arguments. Its port 6379 is published at addr, on 127.0.0.1 only. If the test fails, it shows the container's log. Container
// does not wait until the server answers.
func Container(tb testing.TB, words ...string) (container, addr string) {
	tb.Helper()
	addr = "127.0.0.1:" + FreePort()
	container = made(tb, "rm -f -v", append([]string{"run", "--detach", "--pull=never", "--publish", addr + ":6379"}, words...)...)
	tb.Cleanup(func() {
		if tb.Failed() {
			log, err := Docker("logs", container)
			tb.Logf("log of the container: %s", cmp.Or(log, fmt.Sprint(err)))
		}
	})
	return container, addr
}

package server

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func docker(args ...string) *exec.Cmd {
	return exec.Command(cmp.Or(os.Getenv("GOTHROTTLE_DOCKER_CLI"), "docker"), args...)
}

// Docker runs the docker command in a test, which ends if the command fails. It returns the output without surrounding space.
func Docker(tb testing.TB, args ...string) string {
	tb.Helper()
	cmd, wrong := docker(args...), strings.Builder{}
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s: %v: %s", cmd, err, wrong.String())
	}
	return strings.TrimSpace(string(out))
}

// Container starts a container as a user does, which ends with the test: the words are options of docker run, the image and its
// arguments. Its port 6379 is published at addr, on 127.0.0.1 only. If the test fails, it shows the container's log. Container
// does not wait until the server answers.
func Container(tb testing.TB, words ...string) (container, addr string) {
	tb.Helper()
	addr = "127.0.0.1:" + FreePort()
	container = Docker(tb, append([]string{"run", "--detach", "--pull=never", "--publish", addr + ":6379"}, words...)...)
	// The container is removed even if this process is killed: a shell waits until its input ends.
	remove := exec.Command("/bin/sh", "-c", `read -r line; exec "$@"`, "sh", docker().Path, "rm", "-f", "-v", container)
	remove.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C does not end it
	in, err := remove.StdinPipe()
	if err = errors.Join(err, remove.Start()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			log, err := docker("logs", container).CombinedOutput()
			tb.Logf("log of the container: %s %v", log, err)
		}
		in.Close()
		_ = remove.Wait()
	})
	return container, addr
}

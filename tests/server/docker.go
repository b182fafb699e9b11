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
	"time"
)

// ImageProgram and ImageModule are the server and the module of an image.
const (
	ImageProgram = "redis-server"
	ImageModule  = "/usr/lib/redis/modules/gothrottle.so"
)

// Docker runs the docker command. All that is created with its label is removed when this process ends, even if this
// process is killed.
type Docker struct {
	Label   string
	program string
	end     func()
}

// NewDocker starts a shell that waits until this process ends and then removes all that has the label.
func NewDocker() (*Docker, error) {
	d := &Docker{program: cmp.Or(os.Getenv("GOTHROTTLE_DOCKER_CLI"), "docker"),
		Label: fmt.Sprintf("gothrottle.tests=%d.%d", os.Getpid(), time.Now().UnixNano())}
	cmd := exec.Command("/bin/sh", "-c", `read -r line
"$1" rm -f -v $("$1" ps -aq --filter "label=$2")
"$1" volume rm -f $("$1" volume ls -q --filter "label=$2")`, "sh", d.program, d.Label)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C does not end it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	d.end = func() {
		in.Close()
		_ = cmd.Wait()
	}
	return d, cmd.Start()
}

// Close removes all that has the label.
func (d *Docker) Close() { d.end() }

// Do runs the docker command and returns its output without surrounding space.
func (d *Docker) Do(args ...string) (string, error) {
	out, err := exec.Command(d.program, args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Volume makes a volume and returns its name.
func (d *Docker) Volume() (string, error) { return d.Do("volume", "create", "--label", d.Label) }

// Run starts a container as a user does, which ends with the test: the words are options of docker run, the image and its
// arguments. Its port 6379 is published at addr, on 127.0.0.1 only. If the test fails, it shows the container's log. Run does
// not wait until the server answers.
func (d *Docker) Run(tb testing.TB, words ...string) (container, addr string) {
	tb.Helper()
	addr = "127.0.0.1:" + FreePort()
	container, err := d.Do(append([]string{"run", "--detach", "--pull=never", "--label", d.Label, "--publish", addr + ":6379"}, words...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			log, err := d.Do("logs", container)
			tb.Logf("log of the container: %s", cmp.Or(log, fmt.Sprint(err)))
		}
		_, _ = d.Do("rm", "--force", "--volumes", container)
	})
	return container, addr
}

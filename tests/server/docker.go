package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
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
	serial  atomic.Int64
	network func() (name string, err error) // where servers reach each other by name
	end     func()
}

// NewDocker finds the docker command. The client in /usr/bin fits the engine of the same distribution. A client elsewhere on
// PATH may not.
func NewDocker() (*Docker, error) {
	d := &Docker{Label: fmt.Sprintf("gothrottle.tests=%d.%d", os.Getpid(), time.Now().UnixNano())}
	d.network = sync.OnceValues(func() (string, error) { return d.Create("network") })
	for _, name := range []string{os.Getenv("GOTHROTTLE_DOCKER_CLI"), "/usr/bin/docker", "docker"} {
		if d.program, _ = exec.LookPath(name); d.program != "" {
			return d, d.guard()
		}
	}
	return nil, errors.New("there is no docker command")
}

// guard starts a shell that waits until this process ends and then removes all that has the label.
func (d *Docker) guard() error {
	cmd := exec.Command("/bin/sh", "-c", `read -r line
for kind in container network volume; do
	flags=-q; [ "$kind" = container ] && flags=-aq
	ids=$("$1" "$kind" ls $flags --filter "label=$2")
	[ -z "$ids" ] || "$1" "$kind" rm -f $ids >/dev/null 2>&1
done`, "sh", d.program, d.Label)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C does not end it
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	d.end = func() {
		in.Close()
		_ = cmd.Wait()
	}
	return cmd.Start()
}

// Close removes all that has the label.
func (d *Docker) Close() { d.end() }

// Do runs the docker command and returns its output without surrounding space.
func (d *Docker) Do(args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(d.program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String()), err
}

// Create makes a volume or a network.
func (d *Docker) Create(kind string) (name string, err error) {
	return d.Do(kind, "create", "--label", d.Label, d.name())
}

func (d *Docker) name() string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(d.Label, "=", "-"), d.serial.Add(1))
}

// Run starts a container as a user does, which ends with the test: the words are options of docker run, the image and its
// arguments. Run does not wait until the server answers.
func (d *Docker) Run(tb testing.TB, words ...string) *Server {
	tb.Helper()
	s, err := launch(Options{Docker: d, Run: words})
	s.closeWith(tb)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// container sets the command of a container. Its port is published on 127.0.0.1 only, so the server may listen on all
// addresses of the container.
func (s *Server) container() error {
	run := s.Run
	if run == nil {
		if s.Folder != "" {
			run = append(run, "--volume", s.Folder+":/data")
		}
		network, err := s.Docker.network()
		if err != nil {
			return err
		}
		s.Program, s.Module = cmp.Or(s.Program, ImageProgram), cmp.Or(s.Module, ImageModule)
		run = append(append(run, "--network", network, s.Image, s.Program), s.words("--bind", "0.0.0.0", "--protected-mode", "no", "--dir", "/data")...)
	}
	s.Name = s.Docker.name()
	s.command = append([]string{s.Docker.program, "run", "--pull=never", "--name", s.Name, "--label", s.Docker.Label,
		"--publish", s.Addr + ":6379"}, run...)
	return nil
}

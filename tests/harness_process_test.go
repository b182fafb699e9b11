package tests

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/tests/ports"
)

// data is the folder of a server.
type data struct {
	inside string // path as the server sees it
	volume string // Docker volume, when the server is a container
}

func newData(t testing.TB) *data {
	t.Helper()
	if env.image != "" {
		return newVolume(t)
	}
	return &data{inside: t.TempDir()}
}

// read returns the contents of all files that match pattern, joined.
func (d *data) read(t testing.TB, pattern string) string {
	t.Helper()
	if env.image != "" {
		return d.readVolume(t, pattern)
	}
	files, err := filepath.Glob(filepath.Join(d.inside, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(b)
	}
	return all.String()
}

// process is a server on this machine.
type process struct {
	cmd  *exec.Cmd
	port string
	out  string
	done chan struct{} // closed after Wait has returned
}

func launchProcess(t testing.TB, o options, args []string) (instance, string) {
	t.Helper()
	require.Empty(t, o.net)
	p := &process{port: ports.Free(), done: make(chan struct{})}
	out, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	p.out = out.Name()
	// The arguments of the test come last. The server uses the last value of a repeated
	// setting. A configuration file must be the first argument.
	args = append([]string{"--bind", "127.0.0.1", "--port", p.port}, args...)
	if o.config != "" {
		args = append([]string{o.config}, args...)
	}
	p.cmd = exec.Command(env.server, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Dir = o.data.inside
	if o.clock != nil {
		p.cmd.Env = append(os.Environ(), o.clock.env...)
	}
	p.cmd.SysProcAttr = guardProcess()
	require.NoError(t, startPinned(p.cmd))
	go func() {
		_ = p.cmd.Wait()
		out.Close()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p, net.JoinHostPort("127.0.0.1", p.port)
}

func (p *process) log() string {
	b, _ := os.ReadFile(p.out)
	return string(b)
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) terminate() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) peer() (string, string) { return "127.0.0.1", p.port }

// startPinned starts commands from one thread that lives as long as this process. The
// kernel sends a parent-death signal when the thread that forked ends (golang/go#27505).
var startPinned = func() func(*exec.Cmd) error {
	type job struct {
		cmd *exec.Cmd
		err chan error
	}
	jobs := make(chan job)
	var once sync.Once
	return func(cmd *exec.Cmd) error {
		once.Do(func() {
			go func() {
				runtime.LockOSThread()
				for j := range jobs {
					j.err <- j.cmd.Start()
				}
			}()
		})
		j := job{cmd, make(chan error)}
		jobs <- j
		return <-j.err
	}
}()

// buildPanicking builds the module with one more command, GO.PANIC. Its handler calls panic,
// or dereferences nil if the argument says so.
func buildPanicking(t *testing.T) string { return buildModule(t, "-tags", "gothrottle_panic") }

// buildModule builds the module with further arguments of go build, and returns the file.
func buildModule(t *testing.T, args ...string) string {
	t.Helper()
	if env.image != "" {
		t.Skip("the image has the released module only; the run with local servers has this test")
	}
	module := filepath.Join(t.TempDir(), "gothrottle.so")
	build := exec.Command("go", append(append([]string{"build", "-buildmode=c-shared", "-buildvcs=false", "-o", module}, args...),
		"gothrottle/module")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOARCH="+env.goarch, "CC="+env.cc)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(module, 0o755)) // the server loads only executable files
	return module
}

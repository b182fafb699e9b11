package failover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must happen. It also holds on a slow and busy machine.
const patience = 60 * time.Second

var ctx = context.Background()

// server is a process on a host, and a client that watches it from that host.
type server struct {
	*redis.Client
	*host
	t      *testing.T
	addr   string
	folder string
	args   []string
	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended
}

// newServer starts a server with the module on a new host.
func newServer(n *network, name string, args ...string) *server {
	n.t.Helper()
	s := &server{host: n.host(name), t: n.t, folder: n.t.TempDir()}
	s.addr = s.ip + ":6379"
	s.args = append([]string{"--bind", s.ip, "--port", "6379", "--protected-mode", "no", "--save", "", "--dir", s.folder,
		"--logfile", filepath.Join(s.folder, "log"), "--loadmodule", os.Getenv("GOTHROTTLE_MODULE"),
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}, args...)
	s.Client = redis.NewClient(s.plain(s.host))
	n.t.Cleanup(func() { s.Client.Close() })
	n.t.Cleanup(s.kill)
	s.start()
	eventually(n.t, name+" answers", func() bool { return s.Ping(ctx).Err() == nil })
	return s
}

// plain returns options of a client of this server.
func (s *server) plain(from *host) *redis.Options {
	return &redis.Options{Addr: s.addr, Dialer: from.dial, DialTimeout: callTimeout, ReadTimeout: callTimeout, DialerRetries: 1,
		ContextTimeoutEnabled: true, MaxRetries: -1, DisableIdentity: true, MaintNotificationsConfig: noNotifications}
}

var noNotifications = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

func (s *server) start(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command(os.Getenv("GOTHROTTLE_SERVER"), append(s.args, args...)...)
	s.cmd.Dir = s.folder
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, pinned(func() error { return s.inside(s.cmd.Start) }))
	cmd, done := s.cmd, make(chan struct{})
	s.done = done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
}

// pinned calls f on one thread that lives as long as this process: the kernel sends a parent-death signal when the thread
// that started a process ends.
var pinned = func() func(func() error) error {
	type job struct {
		f    func() error
		done chan error
	}
	jobs := make(chan job)
	var once sync.Once
	return func(f func() error) error {
		once.Do(func() {
			go func() {
				runtime.LockOSThread()
				for j := range jobs {
					j.done <- j.f()
				}
			}()
		})
		j := job{f, make(chan error)}
		jobs <- j
		return <-j.done
	}
}()

func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

func (s *server) kill() {
	s.signal(syscall.SIGKILL)
	<-s.done
}

// replication returns a field of INFO replication, or "" if the server does not answer.
func (s *server) replication(field string) string {
	for line := range strings.Lines(s.Info(ctx, "replication").Val()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == field {
			return value
		}
	}
	return ""
}

// follows reports whether the server is a replica in step with a master.
func (s *server) follows(master *server) bool {
	return s.replication("role") == "slave" && s.replication("master_host") == master.ip &&
		s.replication("master_link_status") == "up" && s.replication("slave_repl_offset") == master.replication("master_repl_offset")
}

// log returns the last lines of the server's log.
func (s *server) log() string {
	b, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(b[max(0, len(b)-3000):])
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal(fmt.Sprintf("not within %s: %s", patience, what))
		}
	}
}

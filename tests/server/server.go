// Package server starts the servers of tests and measurements: processes of this machine or Docker containers, alone or in
// networks. Nothing else in the repository starts one: see build/build_test.go. Servers listen on 127.0.0.1 only, have a
// folder and a port of their own, save nothing by themselves, and end with the process that started them, even if that
// process is killed.
//
// Environment:
//
//	GOTHROTTLE_SERVER      the server (default redis-server, else valkey-server, on PATH)
//	GOTHROTTLE_MODULE      the shared object (default build/out/gothrottle.so)
//	GOTHROTTLE_CC          a C compiler for the server's architecture (default cc)
//	GOTHROTTLE_DOCKER_CLI  the docker command (default /usr/bin/docker, else on PATH)
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Patience bounds every wait for something that usually happens at once. The machine may be busy.
const Patience = 60 * time.Second

// Options says how a server differs from the default, which loads the module without arguments.
type Options struct {
	Program    string   // default: what Program returns
	Module     string   // default: what Module returns
	Bare       bool     // without the module
	ModuleArgs []string // load arguments of the module
	Args       []string // more arguments of the server; of a repeated setting the last value counts
	Config     string   // path of a configuration file
	Sentinel   []string // lines of the configuration of a Sentinel, which takes the place of the server
	Cluster    bool     // a node of a cluster: see Join
	Folder     string   // the server's files, by default a new one, which Close removes; for a container, a volume if it is to stay
	Host, Port string   // default: 127.0.0.1 and a free port
	Bus        string   // port of a cluster's node for other nodes, by default a free one
	Before     []string // a command that starts the program, such as taskset -c 0
	Clock      *Clock   // for processes
	// Inside calls a function that starts the process or connects to it, for example in a network namespace.
	Inside func(func() error) error

	Docker *Docker  // if set, the server is a container
	Image  string   // of the container; an image without the module needs Bare
	Run    []string // options of docker run, an image and its arguments, in place of all of the above
}

// Server is a server that was started.
type Server struct {
	Options          // with the defaults filled in
	Addr    string   // under which this process reaches the server
	Name    string   // of the container
	LogFile string   // what the server prints
	home    string   // folder of the log and, if there is no other, of the server's files
	command []string // starts the process, or the container, whose process is the docker command
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
}

// Start starts a server and waits until it answers. The caller closes the server.
func Start(o Options) (*Server, error) {
	for attempt := 1; ; attempt++ {
		s, err := launch(o)
		if err == nil {
			err = s.Await()
		}
		if err == nil {
			return s, nil
		}
		s.Close()
		if o.Port != "" || attempt == 4 || !strings.Contains(err.Error(), "ddress already in use") {
			return nil, err
		}
	}
}

// New starts a server that ends with the test. If the test fails, it shows the server's log.
func New(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	s.closeWith(tb)
	return s
}

func (s *Server) closeWith(tb testing.TB) {
	tb.Cleanup(s.Close)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of the server at %s:\n%s", s.Addr, Tail(s.Log(), 60))
		}
	})
}

// Refused starts a server that must end by itself, and returns its log.
func Refused(o Options) (log string, err error) {
	s, err := launch(o)
	if err == nil {
		err = Await("the server ends by itself", s.Exited)
	}
	defer s.Close()
	return s.Log(), err
}

// launch starts a server without waiting until it answers. The server that it returns can be closed even after an error.
func launch(o Options) (s *Server, err error) {
	s = &Server{Options: o}
	if s.home, err = os.MkdirTemp("", "gothrottle-server-"); err != nil {
		return s, err
	}
	s.Host, s.Port, s.Bus = cmp.Or(s.Host, "127.0.0.1"), cmp.Or(s.Port, FreePort()), cmp.Or(s.Bus, FreePort())
	s.Addr, s.LogFile = net.JoinHostPort(s.Host, s.Port), filepath.Join(s.home, "log")
	if s.Docker != nil {
		err = s.container()
	} else {
		err = s.process()
	}
	if err != nil {
		return s, err
	}
	return s, s.start(s.command)
}

// process sets the command of a process.
func (s *Server) process() (err error) {
	if s.Program, err = program(cmp.Or(s.Program, os.Getenv("GOTHROTTLE_SERVER"))); err != nil {
		return err
	}
	s.Folder = cmp.Or(s.Folder, s.home)
	if len(s.Sentinel) > 0 {
		s.Bare, s.Config, s.Args = true, filepath.Join(s.home, "sentinel.conf"), append([]string{"--sentinel"}, s.Args...)
		if err := os.WriteFile(s.Config, []byte(strings.Join(s.Sentinel, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	if s.Module == "" && !s.Bare {
		if s.Module, err = Module(); err != nil {
			return err
		}
	}
	s.command = slices.Concat(s.Before, []string{s.Program}, s.words("--bind", s.Host, "--port", s.Port))
	return nil
}

// words returns the arguments of the program. A configuration file must be the first one.
func (s *Server) words(bind ...string) (words []string) {
	if s.Config != "" {
		words = []string{s.Config}
	}
	words = append(append(words, bind...), "--save", "", "--repl-diskless-sync-delay", "0")
	if s.Cluster {
		words = append(words, "--cluster-enabled", "yes", "--cluster-port", s.Bus)
	}
	if !s.Bare {
		words = append(append(words, "--loadmodule", s.Module), s.ModuleArgs...)
	}
	return append(words, s.Args...)
}

// Await waits until the server answers and has loaded its data.
func (s *Server) Await() error {
	err := Await("the server at "+s.Addr+" answers", func() bool { return s.Exited() || s.answers() })
	if s.Exited() {
		err = errors.New("it has ended")
	}
	if err != nil {
		return fmt.Errorf("the server at %s: %w; the end of its log:\n%s", s.Addr, err, Tail(s.Log(), 20))
	}
	return nil
}

func (s *Server) answers() bool {
	conn, err := s.dial(context.Background(), "tcp", s.Addr) // go-redis would log an attempt that fails
	if err != nil {
		return false
	}
	conn.Close()
	_, err = s.Do("PING")
	return err == nil || strings.HasPrefix(err.Error(), "NOAUTH")
}

func (s *Server) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	err = s.inside(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

func (s *Server) inside(f func() error) error {
	if s.Inside == nil {
		return f()
	}
	return s.Inside(f)
}

// Client returns a new client that never repeats a call. The caller closes it.
func (s *Server) Client(changes ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr, Dialer: s.dial, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		ReadTimeout: Patience, WriteTimeout: Patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	for _, change := range changes {
		change(o)
	}
	return redis.NewClient(o)
}

// Do sends a command over a connection of its own.
func (s *Server) Do(words ...any) (any, error) {
	c := s.Client()
	defer c.Close()
	return c.Do(context.Background(), words...).Result()
}

// Kill ends the server at once.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Terminate lets the server end in good order.
func (s *Server) Terminate() { s.end(syscall.SIGTERM) }

func (s *Server) end(signal syscall.Signal) {
	_ = s.Signal(signal)
	if Await("the server ends", s.Exited) != nil {
		_ = s.Signal(syscall.SIGKILL)
	}
}

// Pause stops the process, as a machine that hangs does, and Resume lets it go on.
func (s *Server) Pause() error  { return s.Signal(syscall.SIGSTOP) }
func (s *Server) Resume() error { return s.Signal(syscall.SIGCONT) }

// Restart starts a server that has ended again, at its address and on its files. The arguments are for this time, and not
// for containers.
func (s *Server) Restart(args ...string) error {
	command := slices.Concat(s.command, args)
	if s.Docker != nil {
		command = []string{s.Docker.program, "start", "--attach", s.Name}
	}
	if err := s.start(command); err != nil {
		return err
	}
	return s.Await()
}

// Close ends the server and removes what belongs to it.
func (s *Server) Close() {
	if s.Docker != nil {
		_, _ = s.Docker.Do("rm", "--force", "--volumes", s.Name)
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	os.RemoveAll(s.home)
}

// Await waits until ok returns true.
func Await(what string, ok func() bool) error {
	for end := time.Now().Add(Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("waited %v, but never saw: %s", Patience, what)
		}
	}
	return nil
}

// Tail returns the last n lines of text.
func Tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Field returns a field of the text that INFO returns, "" if it is absent.
func Field(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

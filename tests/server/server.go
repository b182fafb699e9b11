// Package server starts the servers of tests and measurements: processes of this machine, alone or in networks, and
// containers. Nothing else in the repository starts one: see build/build_test.go. Servers listen on 127.0.0.1 only, have a
// folder and a port of their own, save nothing by themselves, and end with the process that started them, even if that
// process is killed.
//
// Environment:
//
//	GOTHROTTLE_SERVER         the server (default redis-server, else valkey-server, on PATH)
//	GOTHROTTLE_MODULE         the shared object (default build/out/gothrottle.so)
//	GOTHROTTLE_CC             a C compiler for the server's architecture (default cc)
//	GOTHROTTLE_CLOCK_LIBRARY  testdata/clock.c as a library, where there is no compiler
//	GOTHROTTLE_DOCKER_CLI     the docker command (default docker)
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
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis would log each attempt to reach a server that does not answer.
func init() { logging.Disable() }

// Patience bounds every wait for something that usually happens at once. The machine may be busy.
const Patience = 60 * time.Second

// Options says how a server differs from the default, which loads the module without arguments.
type Options struct {
	Program    string   // default: what Program returns
	Module     string   // default: what Module returns
	Bare       bool     // without the module
	Args       []string // more arguments of the server; of a repeated setting the last value counts
	Config     string   // path of a configuration file
	Sentinel   []string // lines of the configuration of a Sentinel, which takes the place of the server
	Cluster    bool     // a node of a cluster: see Join
	Folder     string   // the server's files, by default a new one, which Close removes
	Host, Port string   // default: 127.0.0.1 and a free port
	Bus        string   // port of a cluster's node for other nodes, by default a free one
	Before     []string // a command that starts the program, such as taskset -c 0
	Clock      *Clock
}

// Server is a server that was started.
type Server struct {
	Options        // with the defaults filled in
	Addr    string // under which this process reaches the server
	LogFile string // what the server prints
	Process *exec.Cmd
	home    string        // folder of the log and, if there is no other, of the server's files
	done    chan struct{} // closed when the process has ended
}

// Start starts a server and waits until it answers. The caller closes the server. If the server ends, the error shows the end
// of its log.
func Start(o Options) (s *Server, err error) {
	s = &Server{Options: o}
	if s.home, err = os.MkdirTemp("", "gothrottle-server-"); err == nil {
		err = s.defaults()
	}
	if err == nil {
		err = s.Restart()
	}
	if err != nil {
		s.Close()
		if o.Port == "" && strings.Contains(err.Error(), "ddress already in use") { // other tests have just taken it
			return Start(o)
		}
		return nil, err
	}
	return s, nil
}

// New starts a server that ends with the test. If the test fails, it shows the server's log.
func New(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of the server at %s:\n%s", s.Addr, Tail(s.Log(), 60))
		}
	})
	return s
}

func (s *Server) defaults() (err error) {
	s.Host, s.Port, s.Bus = cmp.Or(s.Host, "127.0.0.1"), cmp.Or(s.Port, FreePort()), cmp.Or(s.Bus, FreePort())
	s.Addr, s.LogFile, s.Folder = net.JoinHostPort(s.Host, s.Port), filepath.Join(s.home, "log"), cmp.Or(s.Folder, s.home)
	if len(s.Sentinel) > 0 {
		s.Bare, s.Config, s.Args = true, filepath.Join(s.home, "sentinel.conf"), append([]string{"--sentinel"}, s.Args...)
		err = os.WriteFile(s.Config, []byte(strings.Join(s.Sentinel, "\n")+"\n"), 0o600)
	}
	if err == nil {
		s.Program, err = Program(s.Program)
	}
	if err == nil && s.Module == "" && !s.Bare {
		s.Module, err = Module()
	}
	return err
}

// command returns the words that start the server. A configuration file must be the first argument.
func (s *Server) command() []string {
	words := append(slices.Clone(s.Before), s.Program)
	if s.Config != "" {
		words = append(words, s.Config)
	}
	words = append(words, "--bind", s.Host, "--port", s.Port, "--save", "", "--repl-diskless-sync-delay", "0")
	if s.valgrind() {
		words = append(words, "--set-proc-title", "no") // the title is written where Go reads its environment
	}
	if s.Cluster {
		words = append(words, "--cluster-enabled", "yes", "--cluster-port", s.Bus)
	}
	if !s.Bare {
		words = append(words, "--loadmodule", s.Module)
	}
	return append(words, s.Args...)
}

func (s *Server) valgrind() bool { return slices.Contains(s.Before, "valgrind") }

// Restart starts a server that has ended again, at its address and on its files, and waits until it answers and has loaded its
// data. The arguments are for this time.
func (s *Server) Restart(args ...string) error {
	log, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	words := append(s.command(), args...)
	cmd, done := exec.Command(words[0], words[1:]...), make(chan struct{})
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Folder, log, log
	cmd.Env = os.Environ()
	if s.Clock != nil {
		cmd.Env = append(cmd.Env, s.Clock.env...)
	}
	if s.valgrind() {
		cmd.Env = append(cmd.Env, "GODEBUG=cpu.rdtscp=off") // valgrind offers this instruction even where the machine lacks it
	}
	if err := StartGuarded(cmd); err != nil {
		return err
	}
	s.Process, s.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return s.Await()
}

// Await waits until the server answers and has loaded its data.
func (s *Server) Await() error {
	err := Await("it answers", func() bool {
		_, err := s.Do("PING")
		return s.Exited() || err == nil || strings.HasPrefix(err.Error(), "NOAUTH")
	})
	if s.Exited() {
		err = errors.New("it has ended")
	}
	if err != nil {
		return fmt.Errorf("the server at %s: %w; the end of its log:\n%s", s.Addr, err, Tail(s.Log(), 60))
	}
	return nil
}

// Client returns a new client that never repeats a call. The caller closes it.
func (s *Server) Client(changes ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
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

// Exited says whether the server has ended.
func (s *Server) Exited() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the server.
func (s *Server) Signal(signal syscall.Signal) error { return s.Process.Process.Signal(signal) }

// Log returns what the server has printed since it was started first.
func (s *Server) Log() string {
	b, _ := os.ReadFile(s.LogFile)
	return string(b)
}

// Kill ends the server at once.
func (s *Server) Kill() {
	_ = s.Signal(syscall.SIGKILL)
	<-s.done
}

// Terminate lets the server end in good order, and kills it if it does not.
func (s *Server) Terminate() {
	_ = s.Signal(syscall.SIGTERM)
	if Await("the server ends", s.Exited) != nil {
		s.Kill()
	}
}

// Pause stops the process, as a machine that hangs does, and Resume lets it go on.
func (s *Server) Pause() error  { return s.Signal(syscall.SIGSTOP) }
func (s *Server) Resume() error { return s.Signal(syscall.SIGCONT) }

// Close ends the server and removes what belongs to it.
func (s *Server) Close() {
	if s.Process != nil {
		s.Kill()
	}
	os.RemoveAll(s.home)
}

// Await waits until ok returns true.
func Await(what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for ; !ok(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
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
	_, after, _ := strings.Cut("\n"+info, "\n"+field+":")
	value, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(value)
}

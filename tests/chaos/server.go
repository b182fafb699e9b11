package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	servers "gothrottle/tests/server"
)

// patience bounds every wait for something that usually happens at once.
const patience = 60 * time.Second

var ctx = context.Background()

// lab is what all servers of a program share.
type lab struct {
	server, module string // paths
	library        string // the clock
	folder         string
}

// newLab compiles the clock. The caller removes the folder.
func newLab(server, module, clockSource string) (*lab, error) {
	folder, err := os.MkdirTemp("", "gothrottle-chaos-")
	if err != nil {
		return nil, err
	}
	l := &lab{server: server, module: module, folder: folder, library: filepath.Join(folder, "clock.so")}
	out, err := exec.Command("cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", l.library, clockSource, "-ldl").CombinedOutput()
	if err != nil {
		return l, fmt.Errorf("%w: %s", err, out)
	}
	return l, nil
}

// clock is the wall clock of servers, and the monotonic clock of their modules.
type clock struct {
	file   *os.File
	frozen bool
	wall   int64 // µs since the Unix epoch; of a clock that runs: what is added to the real time
	mono   int64 // µs
}

func (c *clock) write() error {
	b := make([]byte, 0, 24)
	n := uint64(0)
	if c.frozen {
		n = 1
	}
	for _, v := range []uint64{n, uint64(c.wall), uint64(c.mono)} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	_, err := c.file.WriteAt(b, 0)
	return err
}

// server is a process.
type server struct {
	lab    *lab
	name   string
	folder string
	port   string
	args   []string
	cmd    *exec.Cmd
	done   chan struct{}
	log    string
	client *redis.Client // for questions beside the calls
	module moduleClock   // of the process
}

// start starts a server in a folder of its own and waits until it answers.
func (l *lab) start(name, folder string, c *clock, args ...string) (*server, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	s := &server{lab: l, name: name, folder: folder, log: filepath.Join(folder, "log"), args: args}
	return s, s.launch(c)
}

// launch starts the process. The port stays the same for the life of the server, if it is free.
func (s *server) launch(c *clock) error {
	for attempt := 0; ; attempt++ {
		if s.port == "" || attempt > 3 {
			s.port = servers.FreePort()
		}
		err := s.try(c)
		if err == nil || attempt == 6 || s.loaded() {
			return err
		}
	}
}

// loaded reports whether the server is still there.
func (s *server) loaded() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

func (s *server) try(c *clock) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.lab.server, append([]string{"--bind", "127.0.0.1", "--port", s.port, "--dir", s.folder}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(os.Environ(), "LD_PRELOAD="+s.lab.library, "GOTHROTTLE_CLOCK="+c.file.Name())
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := startPinned(s.cmd); err != nil {
		return err
	}
	s.done, s.module = make(chan struct{}), moduleClock{}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	if s.client != nil {
		s.client.Close()
	}
	s.client = s.connect(2)
	return s.answers()
}

// answers waits until the server answers and has loaded its data.
func (s *server) answers() error {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if !s.loaded() {
			return fmt.Errorf("the %s ended: %s", s.name, s.tail())
		}
		if conn, err := net.Dial("tcp", "127.0.0.1:"+s.port); err == nil {
			conn.Close()
			if s.client.Ping(ctx).Err() == nil {
				return nil
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("the %s does not answer: %s", s.name, s.tail())
		}
	}
}

// stop sends a signal and waits for the end of the process.
func (s *server) stop(signal os.Signal) {
	if s == nil || s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.done:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// connect returns a client that has one connection and repeats nothing.
func (s *server) connect(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + s.port, Protocol: protocol, MaxRetries: -1, DisableIdentity: true, DialerRetries: 1,
		ReadTimeout: patience, WriteTimeout: patience, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// ask sends one command and returns its reply as text.
func (s *server) ask(words ...any) string { return replyText(s.client.Do(ctx, words...)) }

// info returns a field of INFO.
func (s *server) info(section, field string) string {
	text, _ := s.client.Info(ctx, section).Result()
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *server) number(section, field string) int64 {
	n, _ := strconv.ParseInt(s.info(section, field), 10, 64)
	return n
}

// tail returns the end of the log.
func (s *server) tail() string {
	b, _ := os.ReadFile(s.log)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

var starts = make(chan func())

// startPinned starts commands from one thread that lives as long as this process. The kernel sends
// a parent-death signal when the thread that forked ends (golang/go#27505).
func startPinned(cmd *exec.Cmd) error {
	err := make(chan error)
	starts <- func() { err <- cmd.Start() }
	return <-err
}

func init() {
	go func() {
		runtime.LockOSThread()
		for f := range starts {
			f()
		}
	}()
}

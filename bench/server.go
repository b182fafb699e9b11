package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A server is a server process on a free port of 127.0.0.1 with an empty folder.
type server struct {
	addr    string
	dir     string
	process *exec.Cmd
	ended   chan struct{}
	control *conn
	forget  func() bool
}

// launch starts a server and returns when it answers. cpus lists the CPUs that it may run
// on, in taskset's form. The server ends when ctx ends.
func launch(ctx context.Context, binary, cpus string, args ...string) (*server, error) {
	var err error
	for range 3 { // another process may take the port in between
		var s *server
		if s, err = launchOnce(ctx, binary, cpus, args); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, err
}

func launchOnce(ctx context.Context, binary, cpus string, args []string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: listener.Addr().String(), ended: make(chan struct{})}
	listener.Close()
	if s.dir, err = os.MkdirTemp("", "gothrottle-bench-"); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(s.addr)
	words := append([]string{"-c", cpus, binary, "--bind", "127.0.0.1", "--port", port, "--dir", s.dir,
		"--save", "", "--logfile", filepath.Join(s.dir, "log")}, args...)
	s.process = exec.Command("taskset", words...)
	// The kernel kills the server when the thread that started it ends. So that thread
	// must live as long as this process: see main.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	go func() {
		s.process.Wait()
		close(s.ended)
	}()
	s.forget = context.AfterFunc(ctx, func() { s.process.Process.Kill() })
	if err := s.await(); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		s.stop()
		return nil, fmt.Errorf("%w; its log:\n%s", err, log)
	}
	return s, nil
}

// await connects to the server and returns when it answers.
func (s *server) await() error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(3 * time.Millisecond) {
		select {
		case <-s.ended:
			return errors.New("the server did not start")
		default:
		}
		conns, err := dial(s.addr, 1)
		if err != nil {
			continue
		}
		if _, err = conns[0].ask("PING"); err == nil {
			s.control = conns[0]
			return nil
		}
		hangUp(conns)
	}
	return errors.New("the server does not answer")
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	s.forget()
	s.process.Process.Kill()
	<-s.ended
	if s.control != nil {
		s.control.Close()
	}
	os.RemoveAll(s.dir)
}

// info returns a section of INFO.
func (s *server) info(section string) (map[string]string, error) {
	text, err := s.control.ask("INFO", section)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// cpu returns the processor time that the server has used, in µs.
func (s *server) cpu() (float64, error) {
	fields, err := s.info("cpu")
	if err != nil {
		return 0, err
	}
	return cpuIn(fields, "")
}

// cpuIn adds up the processor time that the section cpu of INFO tells, in µs. The suffix
// chooses the fields: "" is all threads, and "_main_thread" is the main thread.
func cpuIn(fields map[string]string, suffix string) (float64, error) {
	user, err := strconv.ParseFloat(fields["used_cpu_user"+suffix], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields["used_cpu_sys"+suffix], 64)
	return (user + system) * 1e6, err
}

// number returns a field of INFO as a number.
func (s *server) number(section, field string) (float64, error) {
	fields, err := s.info(section)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fields[field], 64)
}

// settledMemory waits until the server's tables have stopped growing and returns
// used_memory in bytes.
func (s *server) settledMemory() (float64, error) {
	last := -1.0
	for range 40 {
		now, err := s.number("memory", "used_memory")
		if err != nil {
			return 0, err
		}
		// The server's own memory changes by less than this.
		if d := now - last; d > -20_000 && d < 20_000 {
			return now, nil
		}
		last = now
		time.Sleep(250 * time.Millisecond)
	}
	return last, nil
}

// pinSelf ties this process to some CPUs, listed in taskset's form.
func pinSelf(cpus string) error {
	return exec.Command("taskset", "-a", "-c", "-p", cpus, strconv.Itoa(os.Getpid())).Run()
}

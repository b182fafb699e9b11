package server

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Program returns the path of the server's program.
func Program() (string, error) { return program(os.Getenv("GOTHROTTLE_SERVER")) }

// program returns an absolute path, because a server has another working folder than this process.
func program(name string) (path string, err error) {
	names := []string{name}
	if name == "" {
		names = []string{"redis-server", "valkey-server"}
	}
	for _, name := range names {
		if path, err = exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", err
}

// Module returns the path of the module. Make build writes it where programs and tests, at most two folders deep, find it.
func Module() (string, error) {
	file, err := os.Getenv("GOTHROTTLE_MODULE"), error(nil)
	for _, up := range []string{"", "../", "../../"} {
		path := cmp.Or(file, up+"build/out/gothrottle.so")
		if _, err = os.Stat(path); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("no module: %w (make build creates it)", err)
}

// Version returns the product and the version of a program, such as "Redis server v=7.0.15".
func Version(program string) (string, error) {
	out, err := exec.Command(program, "--version").Output()
	version, _, _ := strings.Cut(string(out), " sha=")
	return version, err
}

// Needed skips a test unless the environment names the server and the module, as a make target does.
func Needed(tb testing.TB, target string) {
	tb.Helper()
	if os.Getenv("GOTHROTTLE_MODULE") == "" || os.Getenv("GOTHROTTLE_SERVER") == "" {
		tb.Skipf("make %s runs this test: GOTHROTTLE_MODULE and GOTHROTTLE_SERVER name the module and the server", target)
	}
}

//go:embed testdata/hostile.c
var hostileSource []byte

// Hostile returns a module that changes keys in keyspace events: testdata/hostile.c says how. The file is in the folder.
func Hostile(folder string) (module string, err error) {
	return Library(folder, "hostile", hostileSource)
}

// Library returns a shared library for the server, of this name, in the folder, and makes it of C if need be.
func Library(folder, name string, source []byte) (library string, err error) {
	library, file := filepath.Join(folder, name+".so"), filepath.Join(folder, name+".c")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command(cmp.Or(os.Getenv("GOTHROTTLE_CC"), "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC",
		"-o", library, file, "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return library, nil
}

func (s *Server) start(words []string) error {
	log, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, done := exec.Command(words[0], words[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	if s.Docker == nil {
		cmd.Dir = s.Folder
	}
	if s.Clock != nil {
		cmd.Env = append(os.Environ(), s.Clock.env...)
	}
	if err := s.inside(func() error { return StartGuarded(cmd) }); err != nil {
		return err
	}
	s.cmd, s.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
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
func (s *Server) Signal(signal syscall.Signal) error {
	if s.Docker != nil {
		_, err := s.Docker.Do("kill", "--signal", fmt.Sprint(int(signal)), s.Name)
		return err
	}
	return s.cmd.Process.Signal(signal)
}

// EndedBy returns the signal that ended the process of a server that has exited, -1 if none did.
func (s *Server) EndedBy() syscall.Signal {
	return s.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}

// Log returns what the server has printed since it was started first.
func (s *Server) Log() string {
	if s.Docker != nil { // the docker command that runs the container prints later
		out, _ := exec.Command(s.Docker.program, "logs", s.Name).CombinedOutput()
		return string(out)
	}
	b, _ := os.ReadFile(s.LogFile)
	return string(b)
}

// StartGuarded starts a command that ends with this process, even if this process is killed. The kernel ends the command when
// the thread that started it ends. Go's threads stay, but for that of a goroutine that ends while it is locked to the thread
// (golang/go#27505).
func StartGuarded(cmd *exec.Cmd) error {
	guard(cmd)
	return cmd.Start()
}

package server

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Program returns the path of the server's program.
func Program() (path string, err error) {
	if named := os.Getenv("GOTHROTTLE_SERVER"); named != "" {
		return find(named)
	}
	if path, err = find("redis-server"); err != nil {
		path, err = find("valkey-server")
	}
	return path, err
}

// find returns the absolute path of a program, because a server has another working folder than this process.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Module returns the path of the module.
func Module() (string, error) {
	file, err := filepath.Abs(os.Getenv("GOTHROTTLE_MODULE"))
	if os.Getenv("GOTHROTTLE_MODULE") == "" {
		file, err = built()
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("no module: %w (make build creates it)", err)
	}
	if info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not executable: the server would refuse to load it", file)
	}
	return file, nil
}

// built finds the module that make build writes, from any folder of the repository.
func built() (string, error) {
	for folder, err := os.Getwd(); ; folder = filepath.Dir(folder) {
		file := filepath.Join(folder, "build/out/gothrottle.so")
		if _, e := os.Stat(file); e == nil || err != nil || folder == filepath.Dir(folder) {
			return file, err
		}
	}
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

// CompileC makes a shared library for the server.
func CompileC(source, library string) error {
	out, err := exec.Command(cmp.Or(os.Getenv("GOTHROTTLE_CC"), "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC",
		"-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (s *Server) startProcess(args []string) error {
	words, err := s.words("--bind", s.Host, "--port", s.Port)
	if err != nil {
		return err
	}
	words = slices.Concat(s.Before, []string{s.Program}, words, args)
	log, err := os.OpenFile(s.LogFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, done := exec.Command(words[0], words[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Folder
	if s.Clock != nil {
		cmd.Env = append(os.Environ(), s.Clock.env...)
	}
	start := func() error { return cmd.Start() }
	if s.Inside != nil {
		start = func() error { return s.Inside(cmd.Start) }
	}
	if err := startGuarded(cmd, start); err != nil {
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
	if s.Docker != nil {
		return s.containerExited()
	}
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
	if s.Docker != nil {
		return s.Docker.logs(s.Name)
	}
	b, _ := os.ReadFile(s.LogFile)
	return string(b)
}

// Files returns the contents of all files of the server's folder that match a pattern, joined.
func (s *Server) Files(pattern string) (string, error) {
	if s.Docker != nil {
		return s.readVolume(pattern)
	}
	files, err := filepath.Glob(filepath.Join(s.Folder, pattern))
	if len(files) == 0 {
		err = errors.Join(err, fmt.Errorf("there is no file %s", pattern))
	}
	var all strings.Builder
	for _, file := range files {
		b, e := os.ReadFile(file)
		err = errors.Join(err, e)
		all.Write(b)
	}
	return all.String(), err
}

// StartGuarded starts a command that ends with this process, even if this process is killed.
func StartGuarded(cmd *exec.Cmd) error { return startGuarded(cmd, cmd.Start) }

func startGuarded(cmd *exec.Cmd, start func() error) error {
	guard(cmd)
	err := make(chan error)
	pinned() <- func() { err <- start() }
	return <-err
}

// pinned starts a thread that lives as long as this process and calls functions. The kernel sends a parent-death signal when
// the thread that forked ends (golang/go#27505).
var pinned = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

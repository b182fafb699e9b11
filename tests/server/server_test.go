package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A server ends when the process that started it is killed.
func TestStart_killed(t *testing.T) {
	const marker = "GOTHROTTLE_TEST_KILLED"
	if os.Getenv(marker) != "" {
		s, err := Start(Options{Bare: true})
		if err == nil {
			fmt.Print(s.Addr)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	Needed(t, "test-server")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), marker+"=1", "TMPDIR="+t.TempDir()) // nobody removes the folder of its server
	out, _ := cmd.Output()
	addr := string(out)
	if _, _, err := net.SplitHostPort(addr); err != nil {
		t.Fatalf("there is no server: %s", addr)
	}
	err := Await("nothing listens at "+addr, func() bool {
		_, err := net.Dial("tcp", addr)
		return err != nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A server that does not start leaves nothing behind, and the error shows the end of its log. A server that was killed comes
// back at its address, on its files.
func TestStart(t *testing.T) {
	Needed(t, "test-server")
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := Start(Options{Args: []string{"--no-such-setting", "1"}}); err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a wrong argument: %v", err)
	}
	s := New(t, Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	if _, err := s.Do("GO.QUOTA", "kept", 1, 3600); err != nil {
		t.Error(err)
	}
	s.Kill()
	if err := s.Restart("--maxclients", "99"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Do("EXISTS", "kept"); n != int64(1) || err != nil {
		t.Errorf("after a restart: %v, %v", n, err)
	}
	if reply, err := s.Do("CONFIG", "GET", "maxclients"); !strings.Contains(fmt.Sprint(reply), "99") {
		t.Errorf("an argument of a restart: %v, %v", reply, err)
	}
	s.Close()
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	servers "gothrottle/tests/server"
)

var ctx = context.Background()

// patience is how long a test waits for what must happen. It only bounds a test that fails.
const patience = time.Minute

// moduleFile returns the module's file. build/test-monitoring.sh names it; without it there is nothing to monitor.
func moduleFile(t *testing.T) string {
	t.Helper()
	file := os.Getenv("GOTHROTTLE_MONITORED")
	if file == "" {
		t.Skip("build/test-monitoring.sh runs this test")
	}
	return file
}

// background starts a program that ends with the test. What the program prints is shown if the test fails.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd, out.String())
		}
	})
}

// until asks again and again until nothing is wrong any more.
func until(t *testing.T, wrong func() error) {
	t.Helper()
	err := wrong()
	for end := time.Now().Add(patience); err != nil; err = wrong() {
		if time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// startServer starts a server and returns its port and a client.
func startServer(t *testing.T, o servers.Options) (string, *redis.Client) {
	t.Helper()
	s := servers.New(t, o)
	client := s.Client(func(o *redis.Options) { o.Protocol = 2 })
	t.Cleanup(func() { client.Close() })
	return s.Port, client
}

// blocks returns the code blocks of docs/monitoring.md under a heading.
func blocks(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	text := read(t, "../../docs/monitoring.md")
	_, section, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("no section %s", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	block := ""
	for line := range strings.Lines(section + "end") {
		if code, indented := strings.CutPrefix(line, "    "); indented {
			block += code
		} else if block != "" {
			blocks, block = append(blocks, block), ""
		}
	}
	return blocks
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell runs lines of the page in the repository's root, with the ports and files of this test.
type shell struct {
	t        *testing.T
	bin      string // has a redis-cli that asks the test's server
	replaced *strings.Replacer
}

func newShell(t *testing.T, serverPort string, replace ...string) *shell {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, bin: t.TempDir(), replaced: strings.NewReplacer(append(replace, "127.0.0.1:6379", "127.0.0.1:"+serverPort)...)}
	text := fmt.Sprintf("#!/bin/sh\nexec %s -p %s \"$@\"\n", cli, serverPort)
	if err := os.WriteFile(filepath.Join(s.bin, "redis-cli"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shell) command(lines string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", s.replaced.Replace(lines))
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"))
	return cmd
}

// try runs lines and returns what they print.
func (s *shell) try(lines string) (string, error) {
	out, err := s.command(lines).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %v: %s", lines, err, out)
	}
	return string(out), nil
}

// run runs lines that must succeed and print the text.
func (s *shell) run(lines, text string) {
	s.t.Helper()
	if out, err := s.try(lines); err != nil || !strings.Contains(out, text) {
		s.t.Fatalf("%s prints %q, want %q, %v", lines, out, text, err)
	}
}

// eventually runs lines until they print the text.
func (s *shell) eventually(lines, text string) {
	s.t.Helper()
	until(s.t, func() error {
		out, err := s.try(lines)
		if err == nil && !strings.Contains(out, text) {
			err = fmt.Errorf("%s prints %q, want %q", lines, out, text)
		}
		return err
	})
}

// start starts the program of one line.
func (s *shell) start(line string) {
	s.t.Helper()
	background(s.t, s.command("exec "+line))
}

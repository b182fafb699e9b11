package server

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Program returns the path of a server's program, by default of the one that GOTHROTTLE_SERVER names. The path is absolute,
// because a server has another working folder than this process.
func Program(name string) (path string, err error) {
	names := []string{cmp.Or(name, os.Getenv("GOTHROTTLE_SERVER"))}
	if names[0] == "" {
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

// Background starts a command that ends with the test, even if this process is killed. If the test fails, it shows what the
// command printed.
func Background(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second // its children may go on printing
	if err := StartGuarded(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Logf("%s:\n%s", cmd, out.String())
		}
	})
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

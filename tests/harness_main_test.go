// Package tests tests gothrottle as a black box: real servers load the built module, and
// the tests talk to the servers over connections. The package imports nothing of the
// project but the command table. Files named harness_*_test.go hold machinery, the other
// files hold tests.
//
// Environment:
//
//	GOTHROTTLE_MODULE      the shared object (default ../build/out/gothrottle.so)
//	GOTHROTTLE_SERVER      the server (default redis-server, else valkey-server, on PATH)
//	GOTHROTTLE_GOARCH      the server's architecture (default: that of this machine)
//	GOTHROTTLE_CC          a C compiler for it (default cc)
//	GOTHROTTLE_IMAGE       if set, servers are containers of this image instead
//	GOTHROTTLE_BASE_IMAGE  the server image without the module, with GOTHROTTLE_IMAGE
//	GOTHROTTLE_DOCKER_CLI  the docker command (default /usr/bin/docker, else on PATH)
//
// If something is missing, the run fails. It does not skip tests.
package tests

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// env holds the settings of the whole run. readEnv fills it once.
var env struct {
	module    string // path of the module as the server sees it
	server    string // server binary, on this machine or in the image
	goarch    string // architecture of the server and of what it loads
	cc        string // C compiler for goarch
	image     string // image with the module; empty when servers are local processes
	baseImage string // image without it
	docker    string // docker CLI
	label     string // of all that this run creates in Docker
}

// patience bounds every wait for something that usually happens at once. The machine may be busy.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := readEnv(); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		return 1
	}
	if env.image != "" {
		stop, err := guardContainers()
		if err != nil {
			fmt.Fprintln(os.Stderr, "tests:", err)
			return 1
		}
		defer stop()
	}
	return m.Run()
}

func readEnv() error {
	env.image = os.Getenv("GOTHROTTLE_IMAGE")
	if env.image != "" {
		return readDockerEnv()
	}
	module, err := filepath.Abs(cmp.Or(os.Getenv("GOTHROTTLE_MODULE"), "../build/out/gothrottle.so"))
	if err != nil {
		return err
	}
	info, err := os.Stat(module)
	if err != nil {
		return fmt.Errorf("no module: %w (make build creates it)", err)
	}
	if info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not executable: the server would refuse to load it", module)
	}
	env.module = module
	env.goarch = cmp.Or(os.Getenv("GOTHROTTLE_GOARCH"), runtime.GOARCH)
	env.cc = cmp.Or(os.Getenv("GOTHROTTLE_CC"), "cc")
	for _, name := range []string{os.Getenv("GOTHROTTLE_SERVER"), "redis-server", "valkey-server"} {
		if name == "" {
			continue
		}
		if env.server, err = exec.LookPath(name); err == nil || name == os.Getenv("GOTHROTTLE_SERVER") {
			break
		}
	}
	return err
}

func readDockerEnv() error {
	env.module = "/usr/lib/redis/modules/gothrottle.so"
	env.server = "redis-server"
	env.label = fmt.Sprintf("gothrottle.tests=%d.%d", os.Getpid(), time.Now().UnixNano())
	if env.baseImage = os.Getenv("GOTHROTTLE_BASE_IMAGE"); env.baseImage == "" {
		return fmt.Errorf("GOTHROTTLE_IMAGE is set but GOTHROTTLE_BASE_IMAGE, an image without the module, is not")
	}
	// The client in /usr/bin fits the engine of the same distribution. A client elsewhere on
	// PATH may not.
	for _, name := range []string{os.Getenv("GOTHROTTLE_DOCKER_CLI"), "/usr/bin/docker", "docker"} {
		if env.docker, _ = exec.LookPath(name); env.docker != "" {
			break
		}
	}
	if env.docker == "" {
		return fmt.Errorf("GOTHROTTLE_IMAGE is set, but there is no docker")
	}
	for _, image := range []string{env.image, env.baseImage} {
		if _, err := docker("image", "inspect", image); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until ok returns true. It fails the test after patience.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v, but never saw: %s", patience, what)
		}
	}
}

// ctx is for all calls. The time-outs of the client bound how long they take.
var ctx = context.Background()

// Package tests tests gothrottle as a black box: real servers load the built module, and the tests talk to the servers over
// connections. What a call replies and writes is in the transcripts of tests/corpus. The tests in Go are about what no
// transcript shows: replicas, clusters, users, loads, clocks, memory, threads, forks, containers.
//
// Environment:
//
//	GOTHROTTLE_GOARCH      the server's architecture (default: that of this machine)
//	GOTHROTTLE_IMAGE       if set, servers are containers of this image instead
//	GOTHROTTLE_BASE_IMAGE  the server image without the module, with GOTHROTTLE_IMAGE
//
// Package server has more: the server, the module and the docker command.
//
// If something is missing, the run fails. It does not skip tests.
package tests

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	servers "gothrottle/tests/server"
)

// env holds the settings of the whole run. readEnv fills it once.
var env struct {
	module    string // path of the module as the server sees it
	server    string // server binary, on this machine or in the image
	goarch    string // architecture of the server and of what it loads
	image     string // image with the module; empty when servers are local processes
	baseImage string // image without it
	docker    *servers.Docker
}

// patience bounds every wait for something that usually happens at once. The machine may be busy.
const patience = servers.Patience

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := readEnv(); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		return 1
	}
	if env.docker != nil {
		defer env.docker.Close()
	}
	return m.Run()
}

func readEnv() (err error) {
	env.image = os.Getenv("GOTHROTTLE_IMAGE")
	if env.image != "" {
		return readDockerEnv()
	}
	env.goarch = cmp.Or(os.Getenv("GOTHROTTLE_GOARCH"), runtime.GOARCH)
	if env.module, err = servers.Module(); err == nil {
		env.server, err = servers.Program()
	}
	return err
}

func readDockerEnv() (err error) {
	env.module, env.server = servers.ImageModule, servers.ImageProgram
	if env.baseImage = os.Getenv("GOTHROTTLE_BASE_IMAGE"); env.baseImage == "" {
		return fmt.Errorf("GOTHROTTLE_IMAGE is set but GOTHROTTLE_BASE_IMAGE, an image without the module, is not")
	}
	if env.docker, err = servers.NewDocker(); err != nil {
		return fmt.Errorf("GOTHROTTLE_IMAGE is set, but %w", err)
	}
	for _, image := range []string{env.image, env.baseImage} {
		if _, err := env.docker.Do("image", "inspect", image); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until ok returns true. It fails the test after patience.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if err := servers.Await(what, ok); err != nil {
		t.Fatal(err)
	}
}

// ctx is for all calls. The time-outs of the client bound how long they take.
var ctx = context.Background()

// lasts leaves a test that takes seconds out of the short run, which make test makes.
func lasts(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short")
	}
}

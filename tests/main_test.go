// Package tests tests gothrottle as a black box: real servers load the built module, and the tests talk to the servers over
// connections. The replies and effects of calls are in the transcripts of tests/corpus. The tests in Go are about what no
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
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	servers "gothrottle/tests/server"
)

// env holds the settings of the whole run. readEnv fills it once.
var env struct {
	module    string // path of the module as the server sees it
	server    string // server binary, on this machine or in the image
	image     string // image with the module; empty when servers are local processes
	baseImage string // image without it
	docker    *servers.Docker
}

// patience bounds every wait for something that usually happens at once. The machine may be busy.
const patience = servers.Patience

func TestMain(m *testing.M) {
	err := readEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
	logging.Disable() // a server that was killed does not answer
	code := m.Run()
	if env.docker != nil {
		env.docker.Close()
	}
	os.Exit(code)
}

func readEnv() (err error) {
	if env.image = os.Getenv("GOTHROTTLE_IMAGE"); env.image == "" {
		if env.module, err = servers.Module(); err == nil {
			env.server, err = servers.Program()
		}
		return err
	}
	env.module, env.server, env.baseImage = servers.ImageModule, servers.ImageProgram, os.Getenv("GOTHROTTLE_BASE_IMAGE")
	if env.docker, err = servers.NewDocker(); err != nil {
		return fmt.Errorf("GOTHROTTLE_IMAGE is set, but %w", err)
	}
	_, err = env.docker.Do("image", "inspect", env.image, env.baseImage)
	return err
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

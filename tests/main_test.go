// Package tests tests gothrottle as a black box: real servers load the built module, and the tests talk to the servers over
// connections. The replies and effects of calls are in the transcripts of tests/corpus. The tests in Go are about what no
// transcript shows: replicas, clusters, users, loads, clocks, threads, forks, containers.
//
// Environment:
//
//	GOTHROTTLE_GOARCH    the server's architecture (default: that of this machine)
//	GOTHROTTLE_IMAGE     if set, an image for the tests TestImage
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

	servers "gothrottle/tests/server"
)

// env holds the settings of the whole run. TestMain fills it once.
var env struct{ module, server string }

func TestMain(m *testing.M) {
	var err error
	if env.module, err = servers.Module(); err == nil {
		env.server, err = servers.Program("")
	}
	if err != nil && os.Getenv("GOTHROTTLE_IMAGE") == "" {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// eventually waits until ok returns true. It fails the test after servers.Patience.
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

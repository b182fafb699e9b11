package main

import (
	"slices"
	"strings"
	"testing"
)

// make test-sim runs the simulation with a number of steps, passes SEED on, and fails if the simulation fails.
func TestScript_testSim(t *testing.T) {
	s := copyScripts(t, []string{"build/test-sim.sh"}, []string{"go"})
	s.write("bin/go", "#!/bin/sh\n[ \"$1\" != version ] || { echo go version go1.99.0 linux/amd64; exit; }\n"+
		"echo \"go $* SEED=$SEED STEPS=$STEPS\" >>\"$CALLS\"\necho told\n[ -z \"${FAILING-}\" ]\n")
	s.write("go.mod", "go 1.26.0\n")
	want := []string{"go test -count=1 -timeout 30m -v -run ^TestSim ./tests/sim SEED=7/12 STEPS=10000000"}
	if calls, out, ok := s.run("build/test-sim.sh", "SEED=7/12"); !ok || !slices.Equal(calls, want) || !strings.Contains(out, "told") {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	if _, out, ok := s.run("build/test-sim.sh", "FAILING=go"); ok {
		t.Errorf("a failing go is no failure: %s", out)
	}
}

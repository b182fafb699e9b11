package main

import (
	"slices"
	"strings"
	"testing"
)

// goThatBuilds is a go command that writes a program, which writes down how it is called.
const goThatBuilds = writesDown + `
mkdir -p build/out
printf '#!/bin/sh\necho chaos "$@" >>"$CALLS"\n[ -z "${FAILING-}" ]\n' >build/out/chaos-program
chmod +x build/out/chaos-program
`

// make test-chaos builds the module and the program, and shares its time out to the servers. make soak
// takes minutes.
func TestScript_testChaosAndSoak(t *testing.T) {
	s := copyScripts(t, []string{"build/test-chaos.sh", "build/soak.sh"}, []string{"build/module.sh", "some-server", "other-server"})
	s.write("bin/go", goThatBuilds)
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	built := []string{"module.sh", "go build -o build/out/chaos-program ./tests/chaos"}
	for _, c := range []struct {
		script   string
		settings []string
		want     []string
	}{
		{"build/test-chaos.sh", nil, []string{"some-server --version", "chaos -server some-server -time 108s -seed 1",
			"chaos -cluster -server some-server -time 12s -steps 60 -seed 1"}},
		{"build/test-chaos.sh", []string{"SERVER=some-server other-server", "CHAOS_SECONDS=60", "SEED=7"}, []string{"some-server --version",
			"chaos -server some-server -time 27s -seed 7", "chaos -cluster -server some-server -time 3s -steps 60 -seed 7",
			"other-server --version", "chaos -server other-server -time 27s -seed 7", "chaos -cluster -server other-server -time 3s -steps 60 -seed 7"}},
		{"build/soak.sh", []string{"MINUTES=5"}, []string{"some-server --version", "chaos -server some-server -time 5m -steps 4000 -shrink 20m -seed 0"}},
	} {
		calls, out, ok := s.run(c.script, c.settings...)
		if !ok || !slices.Equal(calls, append(slices.Clone(built), c.want...)) {
			t.Errorf("%s %q: %t, %q, %s", c.script, c.settings, ok, calls, out)
		}
		if _, out, ok := s.run(c.script, append(c.settings, "FAILING=1")...); ok {
			t.Errorf("%s: a difference is no failure: %s", c.script, out)
		}
	}
	s.write("build/server.sh", "#!/bin/sh\nexit 1\n")
	if _, out, ok := s.run("build/test-chaos.sh"); ok || !strings.Contains(out, "no server to test against") {
		t.Errorf("without a server: %s", out)
	}
}

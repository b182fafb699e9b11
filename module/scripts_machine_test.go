package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo"
)

// A Docker engine that a script has started ends with the command that needed it, also if the command
// fails. An engine that answers is used and not started.
func TestScript_startedEngineEnds(t *testing.T) {
	s := copyScripts(t, []string{"build/docker-engine.sh"}, []string{"work"})
	for name, replaced := range map[string]string{"build/docker-engine.sh": "/var/run", "build/lib.sh": "/usr/bin/docker"} {
		text, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.ReplaceAll(strings.ReplaceAll(string(text), replaced, s.path("none")), "/usr/bin/docker", s.path("none")))
		s.write(name, string(text))
	}
	s.write("bin/id", "#!/bin/sh\necho 0\n")
	s.write("bin/docker", "#!/bin/sh\n[ -e \"$(dirname \"$CALLS\")/up\" ]\n")
	s.write("bin/dockerd", writesDown+`up=$(dirname "$CALLS")/up
touch "$up"
trap 'rm "$up"; echo dockerd ended >>"$CALLS"; exit' TERM
while [ -d "${up%/*}" ]; do sleep 0.05; done
`)
	s.write("start", "#!/bin/sh\nexec build/docker-engine.sh run work hard\n")
	want := []string{"dockerd --ip 127.0.0.1 --mtu 1400", "work hard", "dockerd ended"}
	for _, failing := range []string{"", "work"} {
		if calls, out, ok := s.run("start", "FAILING="+failing); ok == (failing != "") || !slices.Equal(calls, want) {
			t.Errorf("failing %q: %t, %q, %s", failing, ok, calls, out)
		}
	}
	s.write("up", "")
	if calls, out, ok := s.run("start"); !ok || !slices.Equal(calls, want[1:2]) {
		t.Errorf("with an engine: %t, %q, %s", ok, calls, out)
	}
}

// A Go version is compared number by number with the one that go.mod asks for.
func TestScript_goVersion(t *testing.T) {
	s := copyScripts(t, nil, nil)
	s.write("go.mod", "module x\n\ngo 1.26.0\n")
	s.write("ask", "#!/bin/bash\n. build/lib.sh\nneed_go\n")
	for version, want := range map[string]bool{"1.9.0": false, "1.25.9": false, "1.26.0": true, "1.26.10": true, "1.100.0": true, "2.0.0": true} {
		s.write("bin/go", "#!/bin/sh\necho go version go"+version+" linux/amd64\n")
		if _, out, ok := s.run("ask"); ok != want || !ok && !strings.Contains(out, "Go 1.26.0 or newer is needed and this is "+version) {
			t.Errorf("Go %s: %t, %s", version, ok, out)
		}
	}
}

// GOTHROTTLE_SERVER names the server to use.
func TestScript_namedServer(t *testing.T) {
	s := copyScripts(t, []string{"build/server.sh"}, []string{"redis-server", "valkey-server", "other-server"})
	for name, want := range map[string]string{"": "redis-server", "other-server": "other-server", "no-such-server": "valkey-server"} {
		if _, out, ok := s.run("build/server.sh", "GOTHROTTLE_SERVER="+name); !ok || out != s.path("bin/"+want)+"\n" {
			t.Errorf("%q: %t, %s", name, ok, out)
		}
	}
}

// Each stand-in for a base image says what it is.
func TestScript_standinsAreLabelled(t *testing.T) {
	text := strings.Join(readLines(t, "build/standin-images.sh"), "\n")
	if !strings.Contains(text, `for change in "LABEL gothrottle.standin=\"made from Debian $suite packages, not the official image\"" "$@"; do`) {
		t.Error("a stand-in has no label")
	}
}

// All times in packages are SOURCE_DATE_EPOCH, else the date of the last commit, else a fixed one. The
// packages take the module's version from its source.
func TestScript_packagesHaveADateAndAVersion(t *testing.T) {
	s := copyScripts(t, []string{"module/main.go", "build/version.sh"}, nil)
	s.env = append(s.env, "SOURCE_DATE_EPOCH=")
	s.write("bin/git", "#!/bin/sh\ncase $* in *' log -1 --format=%ct') echo 7 ;; *) exit 1 ;; esac\n")
	s.write("ask", "#!/bin/bash\n. build/lib.sh\necho $(source_date) $(build/version.sh)\n")
	check := func(want string, env ...string) {
		t.Helper()
		if _, out, ok := s.run("ask", env...); !ok || out != want+" "+cgo.Version+"\n" {
			t.Errorf("%q: %t, %s, want %s", env, ok, out, want)
		}
	}
	check("1767225600")
	s.write(".git/HEAD", "")
	check("7")
	check("9", "SOURCE_DATE_EPOCH=9")
	s.write("bin/git", "#!/bin/sh\nexit 1\n")
	check("1767225600")
}

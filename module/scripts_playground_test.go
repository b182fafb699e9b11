package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// playgroundScripts has copies of the playground's script and stand-ins for what it starts: the page's program writes
// down its arguments, and the server listens as a server does.
func playgroundScripts(t *testing.T) *scripts {
	s := copyScripts(t, []string{"build/playground.sh"}, []string{"build/module.sh"})
	s.write("go.mod", "go 1.26.0\n")
	s.write("page", writesDown+"case $* in *--play*) until grep -q some-server \"$CALLS\"; do sleep 0.1; done ;; esac\n")
	s.write("bin/go", `#!/bin/sh
[ "$1" != version ] || { echo go version go1.99.0 linux/amd64; exit; }
while [ $# -gt 1 ]; do [ "$1" != -o ] || cp page "$2"; shift; done
`)
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	if err := os.Mkdir(s.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "TMPDIR="+s.path("tmp"))
	return s
}

// make playground starts a server of its own for the page, on 127.0.0.1 only, and stops it when the page ends. Its files
// are removed.
func TestScript_playgroundStopsItsServer(t *testing.T) {
	s := playgroundScripts(t)
	s.write("bin/some-server", `#!/bin/sh
trap 'echo stopped >>"$CALLS"; exit' TERM
echo "some-server $*" >>"$CALLS"
while :; do sleep 0.1; done
`)
	// A port that something listens on already stands for the server that is ready.
	text, err := os.ReadFile(s.path("build/playground.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("build/playground.sh", strings.ReplaceAll(strings.Replace(string(text), "  if (exec 3", "  if false && (exec 3", 1), "until (exec 3<>", "until true || (exec 3<>"))
	calls, out, ok := s.run("build/playground.sh", "PORT=7", "LISTEN=127.0.0.1:9", "ARGS=--name box")
	slices.Sort(calls)
	if !ok || len(calls) < 4 || calls[0] != "module.sh" || calls[1] != "playground --addr 127.0.0.1:7 --play --listen 127.0.0.1:9 --name box" ||
		!strings.HasPrefix(calls[2], "some-server --bind 127.0.0.1 --port 7 --dir ") || calls[3] != "stopped" {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	if left, err := os.ReadDir(s.path("tmp")); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v, %v", left, err)
	}
}

// With ADDR no server is started, and the page may not send traffic.
func TestScript_playgroundOnlyWatches(t *testing.T) {
	s := playgroundScripts(t)
	calls, out, ok := s.run("build/playground.sh", "ADDR=db.example:6379")
	if want := []string{"playground --addr db.example:6379 --listen 127.0.0.1:8080"}; !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
}

// make test-playground takes axe-core from its lock file only, and tests the module that it has built. The lock file names no registry.
func TestScript_testPlayground(t *testing.T) {
	s := copyScripts(t, []string{"build/test-playground.sh"}, []string{"build/module.sh", "chromium", "npm"})
	s.write("bin/go", goWithSettings)
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	s.write("go.mod", "go 1.26.0\n")
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text := strings.Join(readLines(t, "playground/axe/"+name), "\n")
		if strings.Contains(text, "//") {
			t.Errorf("playground/axe/%s names a registry", name)
		}
		s.write("playground/axe/"+name, text)
	}
	want := []string{"go version", "module.sh", "npm ci --ignore-scripts --no-audit --no-fund --loglevel=error", "go -C playground test -count=1 -timeout 30m ./... -run X",
		"GOTHROTTLE_AXE=build/out/axe/node_modules/axe-core/axe.min.js", "GOTHROTTLE_CHROMIUM=chromium", "GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server"}
	text, err := os.ReadFile(s.path("build/test-playground.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("build/test-playground.sh", strings.Replace(string(text), `"$@"`, `"$@" -run X`, 1))
	if calls, out, ok := s.run("build/test-playground.sh"); !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
}

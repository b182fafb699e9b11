package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scripts is a copy of the repository's scripts in which programs are replaced by ones that only
// write down how they were called.
type scripts struct {
	t      *testing.T
	folder string
	env    []string
}

// writesDown is a program that adds its name, CGO_ENABLED and its arguments to the file "calls". It
// fails if its name is in FAILING.
const writesDown = `#!/bin/sh
name=$(basename "$0")
echo "$name${CGO_ENABLED:+ cgo=$CGO_ENABLED} $*" >>"$CALLS"
[ "$name" != "${FAILING-}" ] || exit 1
`

// copyScripts copies these scripts and build/lib.sh. programs are replaced: those with a slash in the
// copy, the others on PATH.
func copyScripts(t *testing.T, copied, programs []string) *scripts {
	t.Helper()
	s := &scripts{t: t, folder: t.TempDir()}
	for _, name := range append(copied, "build/lib.sh") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		s.write(name, string(text))
	}
	for _, name := range programs {
		if !strings.Contains(name, "/") {
			name = "bin/" + name
		}
		s.write(name, writesDown)
	}
	s.env = append(os.Environ(), "PATH="+s.path("bin")+":"+os.Getenv("PATH"), "CALLS="+s.path("calls"), "DOCKER=docker",
		"CI=", "COMPOSE=", "REQUIRE_DOCKER=", "STANDIN=", "PORT=", "CGO_ENABLED=", "CC=", "IMAGE=", "INIT=", "GO_IMAGE=", "SERVER_IMAGE=", "INIT_IMAGE=",
		"GOTHROTTLE_SERVER=", "GOTHROTTLE_MODULE=", "GOTHROTTLE_IMAGE=", "GOTHROTTLE_INIT=", "GOTHROTTLE_BASE_IMAGE=", "GOTHROTTLE_COMPOSE=", "GOTHROTTLE_DOCKER_CLI=")
	return s
}

func (s *scripts) path(name string) string { return filepath.Join(s.folder, name) }

// write makes a file that may be executed.
func (s *scripts) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a script. It returns the calls that the script made, what the script printed, and whether
// it succeeded.
func (s *scripts) run(name string, env ...string) (calls []string, out string, ok bool) {
	s.t.Helper()
	os.Remove(s.path("calls"))
	command := exec.Command(s.path(name))
	command.Dir, command.Env = s.folder, append(s.env, env...)
	b, err := command.CombinedOutput()
	text, _ := os.ReadFile(s.path("calls"))
	for line := range strings.Lines(strings.ReplaceAll(string(text), s.folder+"/", "")) {
		calls = append(calls, strings.TrimSpace(line))
	}
	return calls, string(b), err == nil
}

// make test runs every part, in order. It stops at the first part that fails, names the part, and
// fails. Without a Docker engine it says that the Docker part was not run.
func TestScript_testRunsEveryPart(t *testing.T) {
	parts := []string{"build/lint.sh", "build/test-unit.sh", "build/test-server.sh", "build/docker-engine.sh"}
	s := copyScripts(t, []string{"build/test.sh"}, parts)
	all := []string{"lint.sh", "test-unit.sh", "test-server.sh", "docker-engine.sh run build/test-docker.sh"}
	for _, env := range []string{"CI=true", "REQUIRE_DOCKER=1"} {
		if calls, out, ok := s.run("build/test.sh", env); !ok || !slices.Equal(calls, all) || !strings.Contains(out, "passed (lint, unit, server, Docker)") {
			t.Errorf("%s: %t, %q, %s", env, ok, calls, out)
		}
	}
	asks := slices.Insert(slices.Clone(all), 3, "docker-engine.sh check")
	if calls, out, ok := s.run("build/test.sh"); !ok || !slices.Equal(calls, asks) || !strings.Contains(out, "Docker)") {
		t.Errorf("with an engine: %t, %q, %s", ok, calls, out)
	}
	if calls, out, ok := s.run("build/test.sh", "FAILING=docker-engine.sh"); !ok || !slices.Equal(calls, asks[:4]) ||
		!strings.Contains(out, "passed (lint, unit, server); the Docker part was NOT run") {
		t.Errorf("without an engine: %t, %q, %s", ok, calls, out)
	}
	for i, part := range parts {
		name := filepath.Base(part)
		step := strings.Fields("lint test-unit test-server test-docker")[i]
		calls, out, ok := s.run("build/test.sh", "CI=true", "FAILING="+name)
		if ok || !slices.Equal(calls, all[:i+1]) || !strings.HasSuffix(out, "FAILED in "+step+"\n") {
			t.Errorf("%s fails: %t, %q, %s", name, ok, calls, out)
		}
	}
}

// make test-unit tests the decisions and the commands without cgo, everything with it, and then again
// with the race checker and the address checker.
func TestScript_testUnitUsesTheCheckers(t *testing.T) {
	s := copyScripts(t, []string{"build/test-unit.sh"}, []string{"go"})
	s.write("bin/go", writesDown+"[ \"$1\" != version ] || echo go version go1.99.0 linux/amd64\n"+
		"[ -z \"${CGO_CFLAGS-}\" ] || echo \"$CGO_CFLAGS $CGO_LDFLAGS\" >>\"$CALLS\"\n")
	s.write("bin/compiler", "#!/bin/sh\ncat >/dev/null\n")
	s.write("go.mod", "go 1.26.0\n")
	calls, out, ok := s.run("build/test-unit.sh", "CC=compiler", "CGO_CFLAGS=", "CGO_LDFLAGS=")
	if !ok {
		t.Fatalf("%q, %s", calls, out)
	}
	for _, want := range []string{
		"go cgo=0 vet ./funnel/... ./commands/... ./throttle/...",
		"go cgo=0 test -count=1 ./funnel/... ./commands/... ./throttle/...",
		"go cgo=1 vet ./cgo/... ./module/... ./build",
		"go cgo=1 test -count=1 ./cgo/... ./module/... ./build",
		"go cgo=1 test -count=1 -race ./funnel/... ./commands/... ./cgo/...",
		"go cgo=1 test -count=1 -race -short ./throttle/...",
		"go cgo=1 test -count=1 -asan ./cgo/...",
		"-g -O2 -fsanitize=undefined -fno-sanitize-recover=all -fsanitize=undefined",
		"go cgo=1 -C bench test -count=1 ./...",
	} {
		if !slices.Contains(calls, want) {
			t.Errorf("no %q in %q", want, calls)
		}
	}
	if _, _, ok := s.run("build/test-unit.sh", "CC=compiler", "FAILING=go"); ok {
		t.Error("a failing go is no failure")
	}
}

// The file that make build writes may be executed, whatever the umask: servers refuse other files.
// It takes the place of the old file, which a running server has mapped, and does not change it.
func TestScript_moduleMayBeExecuted(t *testing.T) {
	s := copyScripts(t, []string{"build/module.sh"}, nil)
	s.write("bin/compiler", "#!/bin/sh\ncat >/dev/null\n")
	s.write("bin/go", writesDown+`
[ "$1" != version ] || echo go version go1.99.0 linux/amd64
while [ $# -gt 1 ]; do
  [ "$1" != -o ] || { umask 077; echo new >"$2"; }
  shift
done
`)
	s.write("go.mod", "go 1.26.0\n")
	s.write("build/out/gothrottle.so", "old\n")
	if err := os.Link(s.path("build/out/gothrottle.so"), s.path("mapped")); err != nil {
		t.Fatal(err)
	}
	calls, out, ok := s.run("build/module.sh", "CC=compiler")
	built, err := os.Stat(s.path("build/out/gothrottle.so"))
	if !ok || err != nil || built.Mode() != 0o755 {
		t.Fatalf("%q, %s, %v, %v", calls, out, built, err)
	}
	if text, _ := os.ReadFile(s.path("mapped")); string(text) != "old\n" {
		t.Errorf("the old file holds %q", text)
	}
	flags := `-s -w -buildid= "-extldflags=-Wl,-z,relro,-z,now,-z,noexecstack '-Wl,--version-script=cgo/exports.map'"`
	want := "go cgo=1 build -buildmode=c-shared -buildvcs=false -trimpath -ldflags " + flags + " -o build/out/new.so ./module"
	if !slices.Contains(calls, want) {
		t.Errorf("no %q in %q", want, calls)
	}
}

// make run listens on 127.0.0.1 only, with a local server and with a container.
func TestScript_runListensLocally(t *testing.T) {
	s := copyScripts(t, []string{"build/run.sh"}, []string{"build/module.sh", "build/image.sh", "docker", "some-server"})
	port := "PORT=1" // nothing listens there
	if err := os.Mkdir(s.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "TMPDIR="+s.path("tmp"))
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	calls, out, _ := s.run("build/run.sh", port)
	if len(calls) != 2 || calls[0] != "module.sh" || !strings.HasPrefix(calls[1], "some-server --bind 127.0.0.1 --port 1 --dir ") ||
		!strings.HasSuffix(calls[1], " --save  --loadmodule build/out/gothrottle.so") {
		t.Errorf("%q, %s", calls, out)
	}
	s.write("build/server.sh", "#!/bin/sh\nexit 1\n")
	calls, out, _ = s.run("build/run.sh", port)
	want := []string{"docker info", "image.sh", "docker run --rm --name gothrottle-run-1 --publish 127.0.0.1:1:6379 gothrottle:dev --save"}
	if !slices.Equal(calls, want) {
		t.Errorf("%q, %s", calls, out)
	}
	if left, err := os.ReadDir(s.path("tmp")); err != nil || len(left) > 0 {
		t.Errorf("the server's files are left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"PORT=0", "PORT=65536", "PORT=1x"} {
		if calls, _, ok := s.run("build/run.sh", wrong); ok || calls != nil {
			t.Errorf("%s: %t, %q", wrong, ok, calls)
		}
	}
}

// No script publishes a port on another address than 127.0.0.1.
func TestScript_dockerPublishesLocally(t *testing.T) {
	files, err := filepath.Glob("../build/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	started := 0
	for _, file := range append(files, "../tests/harness_docker_test.go", "../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:--publish|docker run -p)[ ,"]+(\S+)`).FindAllSubmatch(text, -1) {
			if !strings.HasPrefix(strings.Trim(string(m[1]), `"`), "127.0.0.1:") {
				t.Errorf("%s publishes %s", file, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^ *dockerd (.*)`).FindAllSubmatch(text, -1) {
			started++
			if !strings.HasPrefix(string(m[1]), "--ip 127.0.0.1 ") {
				t.Errorf("%s starts dockerd %s", file, m[1])
			}
		}
	}
	if started == 0 {
		t.Error("no script starts an engine")
	}
}

// The run on a bare machine needs Docker and runs make test-all, with nothing to read from.
func TestScript_ciRunsMakeTestAll(t *testing.T) {
	s := copyScripts(t, []string{".ci/run"}, []string{"gcc", "redis-server", "dockerd", "debootstrap", "git", "apt-get"})
	s.write("bin/make", "#!/bin/sh\necho \"make $* CI=$CI $(cat)\" >>\"$CALLS\"\n[ -z \"${FAILING-}\" ]\n")
	if calls, out, ok := s.run(".ci/run"); !ok || !slices.Equal(calls, []string{"make test-all CI=true"}) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	if _, out, ok := s.run(".ci/run", "FAILING=make"); ok {
		t.Errorf("a failing make is no failure: %s", out)
	}
}

// Each target of make runs the script of its name.
func TestMakefile_targetsRunTheirScripts(t *testing.T) {
	text := strings.Join(readLines(t, "Makefile"), "\n")
	special := map[string]string{
		"help": "", "clean": "",
		"build":         "build/module.sh",
		"bench-scaling": "SCALING=1 build/bench.sh",
		"bench-client":  "CLIENT=1 build/bench.sh",
		"pictures":      "go -C bench run ./choosing ../docs",
		"test-docker":   "build/docker-engine.sh run build/test-docker.sh",
		"image":         "build/docker-engine.sh run build/image.sh",

		"playground-pictures": "build/test-playground.sh -run Pictures -pictures pictures",
	}
	targets := regexp.MustCompile(`(?m)^([a-z-]+): ## .*\n\t(.*)`).FindAllStringSubmatch(text, -1)
	for _, m := range targets {
		want, known := special[m[1]]
		if !known {
			want = "build/" + m[1] + ".sh"
		}
		if want != "" && m[2] != "@"+want {
			t.Errorf("%s runs %q, want %q", m[1], m[2], want)
		}
	}
	if len(targets) < 11 {
		t.Errorf("%d targets", len(targets))
	}
}

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// goWithSettings is a go command that also writes down the settings of the black-box tests.
const goWithSettings = writesDown + `
[ "$1" != version ] || echo go version go1.99.0 linux/amd64
env | grep ^GOTHROTTLE_ | grep -v '=$' | sort >>"$CALLS"
`

// make test-server builds the module and tests just this file, with the server that was found. The
// result of an earlier run does not count.
func TestScript_testServerTestsTheBuiltModule(t *testing.T) {
	s := copyScripts(t, []string{"build/test-server.sh"}, []string{"build/module.sh", "some-server"})
	s.write("bin/go", goWithSettings)
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	calls, out, ok := s.run("build/test-server.sh")
	want := []string{"module.sh", "some-server --version",
		"go test -count=1 -timeout 40m ./tests/server ./tests", "GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server",
		"go test -count=1 -timeout 20m -run Server_ ./throttle", "GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server",
		"go test -count=1 -timeout 20m -run ^TestGoGet$ ./module", "GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server"}
	if !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	s.write("build/server.sh", "#!/bin/sh\nexit 1\n")
	if calls, out, ok := s.run("build/test-server.sh"); ok || !strings.Contains(out, "no server to test against") {
		t.Errorf("without a server: %q, %s", calls, out)
	}
}

// make test-examples builds the module and tests just this file, with the server that was found.
func TestScript_testExamplesTestsTheBuiltModule(t *testing.T) {
	s := copyScripts(t, []string{"build/test-examples.sh"}, []string{"build/module.sh"})
	s.write("bin/go", goWithSettings)
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	s.write("go.mod", "go 1.26.0\n")
	settings := []string{"GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server"}
	want := append([]string{"go version", "module.sh", "go -C examples/go vet ./..."}, settings...)
	want = append(append(want, "go -C examples/go test -count=1 -timeout 20m ./..."), settings...)
	if calls, out, ok := s.run("build/test-examples.sh"); !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	s.write("build/server.sh", "#!/bin/sh\nexit 1\n")
	if calls, out, ok := s.run("build/test-examples.sh"); ok || !strings.Contains(out, "no server to test against") {
		t.Errorf("without a server: %q, %s", calls, out)
	}
}

// make test-monitoring installs what is missing, builds the module and tests just this file. Its arguments reach the test.
func TestScript_testMonitoringTestsTheBuiltModule(t *testing.T) {
	programs := []string{"prometheus", "promtool", "prometheus-redis-exporter", "curl", "redis-cli"}
	s := copyScripts(t, []string{"build/test-monitoring.sh"}, append(programs, "build/module.sh"))
	s.write("bin/go", goWithSettings)
	s.write("bin/id", "#!/bin/sh\necho 1000\n") // may install nothing
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	s.write("go.mod", "go 1.26.0\n")
	s.write("start", "#!/bin/sh\nexec build/test-monitoring.sh -run X\n")
	want := []string{"go version", "module.sh", "go -C deploy test -count=1 -timeout 30m ./monitoring/ -run X",
		"GOTHROTTLE_MONITORED=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server"}
	if calls, out, ok := s.run("start"); !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	text, _ := os.ReadFile(s.path("build/test-monitoring.sh"))
	s.write("build/test-monitoring.sh", strings.NewReplacer("have curl", "have absent", "curl redis-cli", "absent redis-cli").Replace(string(text)))
	if calls, out, ok := s.run("start"); ok || len(calls) > 1 || !strings.Contains(out, "absent is needed: please install the packages prometheus,") {
		t.Errorf("without a program: %q, %s", calls, out)
	}
	lib, _ := os.ReadFile(s.path("build/lib.sh"))
	s.write("build/lib.sh", strings.Replace(string(lib), "/usr/sbin/policy-rc.d", s.path("policy-rc.d"), 1))
	s.write("bin/id", "#!/bin/sh\necho 0\n")
	s.write("bin/apt-get", writesDown)
	if calls, out, _ := s.run("start"); len(calls) != 3 || !strings.HasSuffix(calls[2], " prometheus prometheus-redis-exporter curl") {
		t.Errorf("as root: %q, %s", calls, out)
	}
}

// make test-memory tests the built module. LONG=1 makes the run long, and each part can be set by itself.
func TestScript_testMemoryIsShortUnlessAsked(t *testing.T) {
	s := copyScripts(t, []string{"build/test-memory.sh"}, []string{"build/module.sh", "some-server", "valgrind"})
	s.write("bin/go", goWithSettings+"[ \"$1\" != test ] || echo \"${MINUTES-} ${FORKS-} ${PIPELINES-} ${VALGRIND_CALLS-}\" >>\"$CALLS\"\n")
	s.write("bin/id", "#!/bin/sh\necho 1000\n") // may install nothing
	s.write("build/server.sh", "#!/bin/sh\necho some-server\n")
	s.write("go.mod", "go 1.26.0\n")
	empty := []string{"LONG=", "MINUTES=", "FORKS=", "PIPELINES=", "VALGRIND_CALLS="}
	for _, c := range []struct{ set, timeout, sizes string }{
		{"LONG=", "15m", ""}, {"LONG=1", "135m", "60 200 100 50000"}, {"MINUTES=3", "21m", "3"},
	} {
		want := []string{"go version", "module.sh", "some-server --version", "go test -count=1 -v -timeout " + c.timeout + " -run ^TestMemory_ ./tests",
			"GOTHROTTLE_MEMORY=1", "GOTHROTTLE_MODULE=build/out/gothrottle.so", "GOTHROTTLE_SERVER=some-server", c.sizes}
		if calls, out, ok := s.run("build/test-memory.sh", append(empty, c.set)...); !ok || !slices.Equal(calls, want) {
			t.Errorf("%s: %t, %q, %s", c.set, ok, calls, out)
		}
	}
	text, _ := os.ReadFile(s.path("build/test-memory.sh"))
	s.write("build/test-memory.sh", strings.ReplaceAll(string(text), "have valgrind", "have absent"))
	if calls, out, ok := s.run("build/test-memory.sh"); ok || len(calls) > 1 || !strings.Contains(out, "valgrind is needed") {
		t.Errorf("without valgrind: %q, %s", calls, out)
	}
}

// make test-docker builds the image and tests just this image. It pulls the server image only if the
// server image is absent.
func TestScript_testDockerTestsTheBuiltImage(t *testing.T) {
	s := copyScripts(t, []string{"build/test-docker.sh"}, []string{"build/image.sh", "docker"})
	s.write("bin/go", goWithSettings)
	s.write("go.mod", "go 1.26.0\n")
	tests := []string{"go test -count=1 -timeout 40m ./tests", "GOTHROTTLE_BASE_IMAGE=base", "GOTHROTTLE_DOCKER_CLI=docker", "GOTHROTTLE_IMAGE=ours"}
	for _, absent := range []bool{false, true} {
		want := []string{"go version", "image.sh", "docker image inspect base"}
		if absent {
			s.write("bin/docker", writesDown+"[ \"$1\" != image ]\n")
			want = append(want, "docker pull base")
		}
		calls, out, ok := s.run("build/test-docker.sh", "IMAGE=ours", "SERVER_IMAGE=base")
		if want = append(want, tests...); !ok || !slices.Equal(calls, want) {
			t.Errorf("%t, %q, %s", ok, calls, out)
		}
	}
}

// make image builds the server and the init container from the base images that were asked for. It
// makes stand-ins for them only if that was asked for, too.
func TestScript_imageTakesTheBaseImages(t *testing.T) {
	s := copyScripts(t, []string{"build/image.sh"}, []string{"build/standin-images.sh", "docker"})
	const from = "docker build --build-arg GO_IMAGE=a --build-arg SERVER_IMAGE=b --build-arg INIT_IMAGE=c "
	builds := []string{from + "--tag d .", from + "--target init --tag e ."}
	images := []string{"GO_IMAGE=a", "SERVER_IMAGE=b", "INIT_IMAGE=c", "IMAGE=d", "INIT=e"}
	for _, env := range []string{"", "CI=true", "STANDIN=1"} {
		want, all := builds, images
		if env != "" {
			want, all = append([]string{"standin-images.sh"}, builds...), append(slices.Clone(images), env)
		}
		if calls, out, ok := s.run("build/image.sh", all...); !ok || !slices.Equal(calls, want) {
			t.Errorf("%q: %t, %q, %s", env, ok, calls, out)
		}
	}
	if calls, out, ok := s.run("build/image.sh", "FAILING=docker"); ok || len(calls) != 1 || !strings.Contains(out, "the image was not built") {
		t.Errorf("a failing build: %t, %q, %s", ok, calls, out)
	}
}

// The tests of what deploy/ ships run the images that were just built. They pull the server image only
// if it is absent. Without docker-compose they fail where Docker is required, and else say what is not
// run.
func TestScript_testDeployRunsTheBuiltImages(t *testing.T) {
	s := copyScripts(t, []string{"build/test-deploy.sh"}, []string{"build/image.sh", "docker", "docker-compose"})
	s.write("bin/go", goWithSettings+"echo \"COMPOSE=$GOTHROTTLE_COMPOSE\" >>\"$CALLS\"\n")
	s.write("bin/id", "#!/bin/sh\necho 1000\n")
	s.write("go.mod", "go 1.26.0\n")
	tests := []string{"go -C deploy test -count=1 -timeout 30m .", "GOTHROTTLE_BASE_IMAGE=base", "GOTHROTTLE_COMPOSE=docker-compose",
		"GOTHROTTLE_DOCKER_CLI=docker", "GOTHROTTLE_IMAGE=ours", "GOTHROTTLE_INIT=first", "COMPOSE=docker-compose"}
	images := []string{"IMAGE=ours", "INIT=first", "SERVER_IMAGE=base"}
	for _, absent := range []bool{false, true} {
		want := []string{"go version", "COMPOSE=", "image.sh", "docker image inspect base"}
		if absent {
			s.write("bin/docker", writesDown+"[ \"$1\" != image ]\n")
			want = append(want, "docker pull base")
		}
		if calls, out, ok := s.run("build/test-deploy.sh", images...); !ok || !slices.Equal(calls, append(want, tests...)) {
			t.Errorf("%t, %q, %s", ok, calls, out)
		}
	}
	images = append(images, "COMPOSE=none")
	if calls, out, ok := s.run("build/test-deploy.sh", images...); !ok || calls[len(calls)-1] != "COMPOSE=" || !strings.Contains(out, "NOT run") {
		t.Errorf("without docker-compose: %t, %q, %s", ok, calls, out)
	}
	if calls, out, ok := s.run("build/test-deploy.sh", append(images, "REQUIRE_DOCKER=1")...); ok || !strings.Contains(out, "none is needed") {
		t.Errorf("docker-compose is required: %q, %s", calls, out)
	}
}

// The service of a package that is installed must not start. The file that prevents this is there only
// during the installation. A file of the machine's owner stays.
func TestScript_installedServiceDoesNotStart(t *testing.T) {
	s := copyScripts(t, nil, nil)
	policy := s.path("policy-rc.d")
	lib, err := os.ReadFile(s.path("build/lib.sh"))
	if err != nil || !strings.Contains(string(lib), "policy=/usr/sbin/policy-rc.d\n") {
		t.Fatal("build/lib.sh does not name the file", err)
	}
	s.write("build/lib.sh", strings.Replace(string(lib), "/usr/sbin/policy-rc.d", policy, 1))
	s.write("install", "#!/bin/bash\n. build/lib.sh\napt_install a b\n")
	s.write("bin/apt-get", "#!/bin/sh\n[ \"$1\" != install ] || { status=0; "+policy+" || status=$?; echo \"$status $*\" >>\"$CALLS\"; }\n")
	check := func(status string) {
		t.Helper()
		calls, out, ok := s.run("install")
		if !ok || len(calls) != 1 || !strings.HasPrefix(calls[0], status+" install -y ") || !strings.HasSuffix(calls[0], " a b") {
			t.Errorf("%t, %q, %s", ok, calls, out)
		}
	}
	check("101") // forbidden by policy
	if _, err := os.Stat(policy); err == nil {
		t.Error("the policy is left behind")
	}
	s.write("policy-rc.d", "#!/bin/sh\nexit 7\n")
	check("7")
	if _, err := os.Stat(policy); err != nil {
		t.Error("the owner's policy is gone")
	}
}

// An orchestrator learns from the image whether the server answers.
func TestDockerfile_hasAHealthCheck(t *testing.T) {
	text := strings.Join(readLines(t, "Dockerfile"), "\n")
	if !strings.Contains(text, "\nHEALTHCHECK ") || !strings.Contains(text, " ping | grep -Eq 'PONG|NOAUTH'") {
		t.Error("the image has no health check")
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arm64Scripts returns build/test-arm64.sh with fake programs. apt-get fetches one package, from
// which dpkg-deb unpacks nothing. readelf shows one segment.
func arm64Scripts(t *testing.T) *scripts {
	s := copyScripts(t, []string{"build/test-arm64.sh", "build/arm64-server.sh"},
		[]string{"qemu-aarch64-static", "aarch64-linux-gnu-gcc", "dpkg-deb"})
	// Debian's keys need not be on the machine that runs this test.
	text, err := os.ReadFile(s.path("build/lib.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("build/lib.sh", strings.NewReplacer("/usr/share/keyrings/", s.folder+"/", "sleep 5", ":").Replace(string(text)))
	s.write("debian-archive-keyring.gpg", "")
	s.write("go.mod", "go 1.26.0\n")
	s.write("bin/go", `#!/bin/sh
case "$*" in
version) echo go version go1.99.0 linux/amd64 ;;
'env GOHOSTARCH') echo "${HOST:-amd64}" ;;
test*)
  kind=native
  [ -z "${GOARCH-}" ] || kind="$GOARCH CC=$CC"
  echo "$kind: $* ${GOTHROTTLE_MODULE+ $GOTHROTTLE_MODULE $GOTHROTTLE_SERVER $GOTHROTTLE_GOARCH $GOTHROTTLE_CC}" >>"$CALLS"
  [ "$kind" != "${FAILING_TESTS-}" ] || { echo "output of $kind"; exit 1; }
  ;;
esac
`)
	s.write("build/module.sh", strings.Replace(writesDown, "$*", "for ${GOARCH-}", 1))
	s.write("bin/readelf", "#!/bin/sh\necho '  LOAD 0x0 0x0 0x0 0x1 0x1 R E' ${ALIGN:-0x10000}\n")
	s.write("bin/apt-get", `#!/bin/sh
for a; do
  case $a in
  indextargets) echo http://mirror ;;
  Dir::Cache=*) cache=${a#*=} ;;
  esac
done
case "$*" in *download-only*) touch "$cache/archives/server.deb" ;; esac
`)
	s.env = append(s.env, "XDG_CACHE_HOME="+s.path("cache"), "QEMU_LD_PREFIX=", "GOARCH=")
	return s
}

const (
	arm64Units    = "arm64 CC=aarch64-linux-gnu-gcc: test -count=1 -short -exec qemu-aarch64-static ./funnel/... ./commands ./cgo/..."
	arm64BlackBox = "native: test -count=1 -timeout 40m -skip ^(TestCluster_ioThreads$|TestPages_(aBroken|every)Block|TestSwap_|TestState_noCallLeaksMemory$) ./tests  build/out/arm64/gothrottle.so build/arm64-server.sh arm64 aarch64-linux-gnu-gcc"
)

// The Go tests run as arm64 programs. The black-box tests run natively and get the arm64 module, the arm64
// server and the cross compiler. A second run takes the server from the cache.
func TestScript_testArm64RunsBothKindsOfTests(t *testing.T) {
	s := arm64Scripts(t)
	for _, unpacks := range []bool{true, false} {
		calls, out, ok := s.run("build/test-arm64.sh")
		if !ok || !strings.Contains(out, "test-arm64: passed") {
			t.Fatalf("%q, %s", calls, out)
		}
		for _, want := range []string{"module.sh for arm64", arm64Units, arm64BlackBox} {
			if !slices.Contains(calls, want) {
				t.Errorf("no %q in %q", want, calls)
			}
		}
		if slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "dpkg-deb -x ") }) != unpacks {
			t.Errorf("unpacks must be %t: %q", unpacks, calls)
		}
	}
	left, err := filepath.Glob(s.path("cache/gothrottle/*"))
	if err != nil || !slices.Equal(left, []string{s.path("cache/gothrottle/arm64-bookworm")}) {
		t.Errorf("the cache holds %q, %v", left, err)
	}
}

// A failure of either kind of tests, and a segment that kernels with large pages cannot map, fail the
// script, which says why.
func TestScript_testArm64Fails(t *testing.T) {
	s := arm64Scripts(t)
	for env, want := range map[string]string{
		"FAILING=module.sh":    "",
		"FAILING=dpkg-deb":     "",
		"ALIGN=0x1000":         "is not aligned to 64 KiB",
		"FAILING_TESTS=native": "output of native",
		"FAILING_TESTS=arm64 CC=aarch64-linux-gnu-gcc": "output of arm64",
	} {
		os.RemoveAll(s.path("cache"))
		if _, out, ok := s.run("build/test-arm64.sh", env); ok || strings.Contains(out, "passed") || !strings.Contains(out, want) {
			t.Errorf("%s: %t, %s", env, ok, out)
		}
	}
	os.RemoveAll(s.path("cache"))
	s.write("bin/apt-get", "#!/bin/sh\n[ \"$1\" = indextargets ] && echo http://mirror\n")
	if _, out, ok := s.run("build/test-arm64.sh"); ok || !strings.Contains(out, "redis-server of bookworm for arm64 could not be fetched") {
		t.Errorf("without a network: %t, %s", ok, out)
	}
	if left, _ := filepath.Glob(s.path("cache/gothrottle/*")); left != nil {
		t.Errorf("the cache holds %q", left)
	}
}

// There is nothing to test on a machine that is arm64 itself: make test does it.
func TestScript_testArm64OnArm64(t *testing.T) {
	s := arm64Scripts(t)
	if calls, out, ok := s.run("build/test-arm64.sh", "HOST=arm64"); !ok || calls != nil || !strings.Contains(out, "nothing to do") {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
}

// The server replaces its start script, so that the process that is started is the process to kill.
func TestScript_arm64ServerIsTheProcess(t *testing.T) {
	s := arm64Scripts(t)
	s.write("bin/qemu-aarch64-static", "#!/bin/sh\necho $$ \"$@\"\n")
	server := exec.Command(s.path("build/arm64-server.sh"), "--port", "1 2")
	server.Env = append(s.env, "QEMU_LD_PREFIX=/tree")
	var out strings.Builder
	server.Stdout = &out
	err := server.Run()
	fields := strings.Fields(out.String())
	want := []string{"-0", s.path("build/arm64-server.sh"), "/tree/usr/bin/redis-server", "--port", "1", "2"}
	if err != nil || len(fields) == 0 || fields[0] != strconv.Itoa(server.Process.Pid) || !slices.Equal(fields[1:], want) {
		t.Errorf("%v, %q, pid %d", err, out.String(), server.Process.Pid)
	}
}

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// serverScripts returns the scripts of make test-servers with a list of three servers. Compiled tests and servers are
// shell scripts. RESULTS tells what the tests of a server print, as in "new80=FAIL".
func serverScripts(t *testing.T) *scripts {
	s := copyScripts(t, []string{"build/test-servers.sh"}, []string{"build/module.sh", "apt-get"})
	s.write("go.mod", "go 1.26.0\n")
	s.write("build/servers.txt", "# comment\nold70 a - redis-server 7.0 required\nnew80 b c valkey-server 8.0 required\nnext91 sid - valkey-server 9.1 moving\n")
	s.write("tests/keep", "")
	s.write("throttle/keep", "")
	s.write("local/redis-server", "#!/bin/sh\necho Redis server v=7.0.15 sha=0\n")
	s.write("build/server.sh", "#!/bin/sh\necho "+s.path("local/redis-server")+"\n")
	s.write("build/fetch-server.sh", `#!/bin/sh
case "${LOST-}" in "$1") echo no mirror >&2; exit 1 ;; esac
folder=$PWD/servers/$1
version=8.0.1
[ "$1" != next91 ] || version=${NEXT:-9.1.0}
mkdir -p "$folder"
printf '#!/bin/sh\necho Valkey server v=%s sha=0\n' "$version" >"$folder/valkey-server"
chmod 755 "$folder/valkey-server"
echo "$folder/valkey-server"
`)
	s.write("bin/go", `#!/bin/sh
[ "$1 $2" = "test -c" ] || exit 0
cat >"$4" <<'END'
#!/bin/sh
name=$(basename "$(dirname "$GOTHROTTLE_SERVER")")
echo "${NETWORK-no network} $(basename "$PWD") $name $*" >>"$CALLS"
echo '=== RUN   TestGood'
echo 'text of the good one'
echo '--- PASS: TestGood (0.00s)'
echo '--- SKIP: TestImage (0.00s)'
case " ${RESULTS-} " in *" $name=FAIL "*)
  echo '=== RUN   TestBad'
  echo '=== RUN   TestBad/part'
  echo "the module of $GOTHROTTLE_MODULE is wrong"
  echo '--- FAIL: TestBad (0.10s)'
  exit 1
esac
END
chmod 755 "$4"
`)
	s.write("bin/ip", "#!/bin/sh\n")
	s.write("bin/unshare", "#!/bin/sh\nexport NETWORK=network\nshift\nexec \"$@\"\n")
	return s
}

// make test-servers runs both kinds of tests on each server but the one of this machine, each in a network of its own if
// that can be had. Its table has all servers.
func TestScript_testServersTestsAll(t *testing.T) {
	s := serverScripts(t)
	for _, network := range []string{"network", "no network"} {
		if network == "no network" {
			s.write("bin/unshare", "#!/bin/sh\nexit 1\n")
		}
		calls, out, ok := s.run("build/test-servers.sh")
		wanted := []string{"module.sh"}
		for _, server := range []string{"new80", "next91"} {
			wanted = append(wanted, network+" tests "+server+" -test.v -test.timeout 40m",
				network+" throttle "+server+" -test.v -test.timeout 40m -test.run Server_")
		}
		slices.Sort(calls)
		slices.Sort(wanted)
		if !ok || !slices.Equal(calls, wanted) {
			t.Errorf("%s: %t, %q, %s", network, ok, calls, out)
		}
		_, table, _ := strings.Cut(out, "\nserver ")
		table = strings.Join(strings.Fields(table), " ")
		want := `^version result passed failed skipped seconds old70 7\.0\.15 test-server - - - - new80 8\.0\.1 passed 2 0 2 \d+ next91 9\.1\.0 passed 2 0 2 \d+ test-servers: passed$`
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("%s: %s", network, table)
		}
		if network == "no network" && !strings.Contains(out, "one after another") {
			t.Errorf("not told: %s", out)
		}
	}
}

// A failure is told with what the test printed, and fails the script. A server of a suite that moves may be away. If such
// a server is newer than expected, its failure does not count.
func TestScript_testServersFails(t *testing.T) {
	s := serverScripts(t)
	for _, c := range []struct {
		env  []string
		ok   bool
		says string
	}{
		{[]string{"RESULTS=new80=FAIL"}, false, "FAILED on new80: "},
		{[]string{"RESULTS=next91=FAIL"}, false, "FAILED on next91: "},
		{[]string{"RESULTS=next91=FAIL", "NEXT=9.10.0"}, true, "next91 is newer than the 9.1 in build/servers.txt, so its failure does not count."},
		{[]string{"LOST=next91"}, true, "NOT TESTED"},
		{[]string{"LOST=new80"}, false, "new80 is required and could not be had"},
	} {
		_, out, ok := s.run("build/test-servers.sh", c.env...)
		if ok != c.ok || !strings.Contains(out, c.says) {
			t.Errorf("%q: %t, %s", c.env, ok, out)
		}
		failure := "the module of " + s.path("build/out/gothrottle.so") + " is wrong"
		if strings.HasPrefix(c.env[0], "RESULTS") != strings.Contains(out, failure) || strings.Contains(out, "good one") {
			t.Errorf("%q: want just what TestBad prints: %s", c.env, out)
		}
	}
}

// fetchScripts returns build/fetch-server.sh with an apt-get that fetches one package. The package has a loader, which
// tells the version in VERSION.
func fetchScripts(t *testing.T) *scripts {
	s := copyScripts(t, []string{"build/fetch-server.sh"}, nil)
	lib, err := os.ReadFile(s.path("build/lib.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("build/lib.sh", strings.NewReplacer("/usr/share/keyrings/", s.folder+"/", "sleep 5", ":").Replace(string(lib)))
	s.write("debian-archive-keyring.gpg", "")
	s.write("build/servers.txt", "fixed a - redis-server 7.0 required\nmoves a b redis-server 7.0 moving\n")
	s.write("bin/apt-get", `#!/bin/sh
for a; do
  case $a in
  indextargets) echo http://mirror; exit ;;
  Dir::Cache=*) cache=${a#*=} ;;
  Dir::Etc::sourcelist=*) list=${a#*=} ;;
  esac
done
case "$*" in *' update')
  echo update >>"$CALLS"
  sed 's/.*\] //' "$list" >>"$CALLS"
  [ "$(grep -c update "$CALLS")" -gt "${HICCUPS:-0}" ] || exit 100
  ;;
*)
  echo "$*" | sed 's/.*Languages=none//' >>"$CALLS"
  touch "$cache/archives/server.deb"
esac
`)
	s.write("bin/dpkg", "#!/bin/sh\necho amd64\n")
	s.write("bin/dpkg-deb", `#!/bin/sh
mkdir -p "$3/usr/lib/x86_64-linux-gnu"
printf '#!/bin/sh\necho "Redis server v=%s sha=0 $*"\n' "$VERSION" >"$3/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
chmod 755 "$3/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
`)
	s.env = append(s.env, "XDG_CACHE_HOME="+s.path("cache"))
	for name, server := range map[string]string{"start": "fixed", "start-moves": "moves", "start-other": "other"} {
		s.write(name, "#!/bin/sh\nexec build/fetch-server.sh "+server+"\n")
	}
	return s
}

// A server is fetched from the mirror that apt uses, also after a failure of the network, and then kept. It runs by the
// loader that came with it.
func TestScript_fetchServerKeepsWhatItHas(t *testing.T) {
	s := fetchScripts(t)
	fetched := []string{"update", "http://mirror a main", "update", "http://mirror a main",
		"-o Acquire::Retries=3 --no-install-recommends --download-only install redis-server"}
	for _, want := range [][]string{fetched, nil} {
		calls, out, ok := s.run("start", "VERSION=7.0.15", "HICCUPS=1")
		if !ok || !slices.Equal(calls, want) || !strings.HasSuffix(out, s.path("build/out/servers/fixed/bin/redis-server")+"\n") {
			t.Errorf("%t, %q, %s", ok, calls, out)
		}
	}
	root := s.path("build/out/servers/fixed/root")
	_, out, ok := s.run("build/out/servers/fixed/bin/redis-server", "VERSION=")
	if want := "--argv0 " + s.path("build/out/servers/fixed/bin/redis-server") + " --library-path " + root + "/usr/lib/x86_64-linux-gnu:" +
		root + "/lib/x86_64-linux-gnu " + root + "/usr/bin/redis-server\n"; !ok || !strings.HasSuffix(out, want) {
		t.Errorf("%t, %s, want %s", ok, out, want)
	}
}

// The wrong version of a released suite fails. A suite that moves may be newer, and its preferred suite is asked first.
func TestScript_fetchServerHoldsTheVersion(t *testing.T) {
	s := fetchScripts(t)
	if _, out, ok := s.run("start", "VERSION=7.01.0"); ok || !strings.Contains(out, "fixed is 7.01.0, and build/servers.txt expects 7.0.") {
		t.Errorf("%t, %s", ok, out)
	}
	calls, out, ok := s.run("start-moves", "VERSION=7.2.0")
	want := []string{"update", "http://mirror a main", "http://mirror b main",
		"-o Acquire::Retries=3 -t b --no-install-recommends --download-only install redis-server"}
	if !ok || !slices.Equal(calls, want) {
		t.Errorf("%t, %q, %s", ok, calls, out)
	}
	if _, out, ok := s.run("start-other"); ok || !strings.Contains(out, "build/servers.txt has no server 'other'") {
		t.Errorf("%t, %s", ok, out)
	}
	if _, out, ok := s.run("start", "VERSION=7.0.0", "HICCUPS=3"); ok || !strings.Contains(out, "could not be fetched") {
		t.Errorf("without a network: %t, %s", ok, out)
	}
}

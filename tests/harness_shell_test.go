package tests

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// moduleFolder is where the pages say that the module is.
const moduleFolder = "/usr/lib/redis/modules"

// desk is where the shell lines, the configurations and the Go programs of the pages run: a copy of the repository
// with the module built in it.
type desk struct {
	t      testing.TB
	folder string  // the copy
	server *server // with the module, for the lines that talk to a server
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, folder: filepath.Join(t.TempDir(), "gothrottle")}
	require.NoError(t, os.Mkdir(d.folder, 0o755))
	out, err := exec.Command("sh", "-c", `tar -C .. --exclude=./.git --exclude=./build/out --exclude=./bench/out -c . | tar -C "$1" -x`, "sh", d.folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, folder := range []string{d.modules(), filepath.Join(d.folder, "build/out")} {
		d.install(folder)
	}
	writeStandIns(t, d.programs())
	d.server = start(t, options{args: []string{"--enable-module-command", "local"}})
	return d
}

// modules returns the folder that stands for moduleFolder.
func (d *desk) modules() string { return filepath.Join(filepath.Dir(d.folder), "modules") }

// programs returns the folder of the stand-ins.
func (d *desk) programs() string { return filepath.Join(filepath.Dir(d.folder), "programs") }

func (d *desk) install(folder string) {
	d.t.Helper()
	module, err := os.ReadFile(env.module)
	require.NoError(d.t, err)
	require.NoError(d.t, os.MkdirAll(folder, 0o755))
	require.NoError(d.t, os.WriteFile(filepath.Join(folder, "gothrottle.so"), module, 0o755))
}

// begin empties the server for a new section. It then has one limiter, limits:bob.
func (d *desk) begin() {
	d.server.must("FLUSHALL")
	d.server.must("CONFIG RESETSTAT")
	require.NoError(d.t, d.server.ConfigSet(ctx, "gothrottle.policies", pagePolicies).Err())
	require.NoError(d.t, d.server.ConfigSet(ctx, "gothrottle.top-keys", "100").Err())
	d.server.throttle("limits:bob", 9, 1, 3600)
}

// here returns a text with the places of this machine in place of those of the pages.
func (d *desk) here(text string) string {
	return strings.NewReplacer(
		moduleFolder, d.modules(),
		"<this repository>", d.folder,
		"127.0.0.1:6379", d.server.addr,
	).Replace(text)
}

// The programs that stand for what a test cannot do as a user does it. In the shell lines they come first on PATH.
// What changes the machine is refused: a test elsewhere must run such lines.
var standIns = map[string]string{
	// The client of the server under test, with its port. An error reply is a failure.
	"redis-cli valkey-cli": `case " $* " in *" -p "*|*" -h "*|*" -u "*|*" -s "*|*" --cluster "*) echo "a test elsewhere must run: $*" >&2; exit 1 ;; esac
exec "$CLI" -e -p "$SERVER_PORT" "$@"`,
	// git clone copies the tree: a test machine may have no git and no repository.
	"git": `[ "$#$1" = 3clone ] && mkdir "$3" || exit 1
tar -C "$2" --exclude="./$3" --exclude=./build/out -c . | tar -C "$3" -x`,
	// make run gets a port. As soon as the server is ready, it gets a call and stops. make playground gets two ports. As
	// soon as the page is there, it is read, and the playground stops.
	"make": `if [ "$1" = playground ]; then
  "$REAL_MAKE" "$@" "PORT=$FREE_PORT" "LISTEN=127.0.0.1:$PAGE_PORT" >page.log 2>&1 &
  until grep -q "http://127.0.0.1:$PAGE_PORT" page.log; do kill -0 $! || { cat page.log >&2; exit 1; }; sleep 0.1; done
  exec 3<>"/dev/tcp/127.0.0.1/$PAGE_PORT"
  printf 'GET / HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n\r\n' "$PAGE_PORT" >&3
  grep -q '200 OK' <&3
  kill $!
  wait $! || exit 0
fi
[ "$1" = run ] || exec "$REAL_MAKE" "$@"
"$REAL_MAKE" "$@" "PORT=$FREE_PORT" >run.log 2>&1 &
until grep -q ready run.log; do kill -0 $! || { cat run.log >&2; exit 1; }; sleep 0.1; done
"$CLI" -e -p "$FREE_PORT" GO.THROTTLE user:42 15 30 60
"$CLI" -p "$FREE_PORT" SHUTDOWN NOSAVE
wait $!`,
	"redis-server valkey-server redis-sentinel apt apt-get dpkg rpm dnf systemctl service docker kubectl helm sudo": `echo "a test elsewhere must run: $0" >&2
exit 1`,
}

func writeStandIns(t testing.TB, folder string) {
	t.Helper()
	require.NoError(t, os.Mkdir(folder, 0o755))
	for names, script := range standIns {
		for _, name := range strings.Fields(names) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755))
		}
	}
}

// strangePath is an absolute path of this machine, or of a user's home.
var strangePath = regexp.MustCompile(`(?m)(?:^|[\s'"=<>:])((?:/(?:etc|var|usr|opt|lib|root|home|tmp|srv|run|boot)\b|~/)[^\s'"|]*)`)

// shell runs lines by bash in the copy of the repository. promised are the words that the lines print, if any are
// promised.
func (d *desk) shell(lines, promised []string) error {
	for _, path := range strangePath.FindAllStringSubmatch(d.here(strings.Join(lines, "\n")), -1) {
		if !strings.HasPrefix(path[1], filepath.Dir(d.folder)) {
			return fmt.Errorf("a test elsewhere must run lines with the path %s: %q", path[1], lines)
		}
	}
	s := d.server
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "MODULE LOAD") }) {
		s = start(d.t, options{bare: true, args: []string{"--enable-module-command", "local"}})
		defer s.terminate()
	}
	_, port, _ := net.SplitHostPort(s.addr)
	free := servers.FreePort()
	script := "set -euo pipefail\n"
	for _, line := range lines {
		script += d.here(line) + "\n"
		if strings.Contains(line, " && ") { // set -e ignores a failure before &&
			script += "[ $? = 0 ] || exit 1\n"
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = d.folder
	realMake, err := exec.LookPath("make")
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "PATH="+d.programs()+":"+os.Getenv("PATH"), "REAL_MAKE="+realMake, "CLI="+clientProgram(d.t), "SERVER_PORT="+port, "FREE_PORT="+free, "PAGE_PORT="+servers.FreePort(), "GOTHROTTLE_SERVER="+env.server)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := servers.StartGuarded(cmd); err != nil {
		return err
	}
	timer := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%q: %w: %s%s", lines, err, out.String(), errs.String())
	}
	got, want := strings.Join(strings.Fields(out.String()), " "), strings.Join(promised, " ")
	if promised != nil && got != want {
		return fmt.Errorf("%q print %q, the page says %q", lines, got, want)
	}
	return nil
}

// clientProgram returns the command-line client beside the server under test, else the one on PATH.
func clientProgram(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-cli", "valkey-cli"} {
		for _, path := range []string{filepath.Join(filepath.Dir(env.server), name), name} {
			if found, err := exec.LookPath(path); err == nil {
				return found
			}
		}
	}
	t.Fatal("no redis-cli or valkey-cli")
	return ""
}

// comment is a remark after a line of a configuration file. The server's own files have none.
var comment = regexp.MustCompile(`\s+# .*$`)

// config starts a server with lines of a configuration file. Without a loadmodule line the module is loaded as well.
func (d *desk) config(lines []string) error {
	file := filepath.Join(d.t.TempDir(), "redis.conf")
	text := ""
	for _, line := range lines {
		text += comment.ReplaceAllString(d.here(line), "") + "\n"
	}
	require.NoError(d.t, os.WriteFile(file, []byte(text), 0o644))
	o := options{bare: true, config: file}
	if !strings.Contains(text, "loadmodule ") {
		o.args = []string{"--loadmodule", env.module}
	}
	s, err := servers.Start(o.launch())
	if err != nil {
		return fmt.Errorf("with the lines %q: %w", lines, err)
	}
	defer s.Close()
	if !strings.Contains(s.Log(), "Module 'gothrottle' loaded") {
		return fmt.Errorf("the lines %q do not load the module", lines)
	}
	return nil
}

// goProgram compiles and runs a Go snippet that makes one call with the Go client and has the variables result and err.
func (d *desk) goProgram(b *block) error {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(d.t, err)
	path, _, _ := strings.Cut(strings.TrimPrefix(string(mod), "module "), "\n")
	program := "package main\n\nimport (\n\"context\"\n\"fmt\"\n\n\"github.com/redis/go-redis/v9\"\n\n\"" + path + "/throttle\"\n)\n\n" +
		"func main() {\nif err := run(context.Background()); err != nil {\npanic(err)\n}\n}\n\n" +
		"func run(ctx context.Context) error {\n" + d.here(b.text()) +
		"\nfmt.Println(result.Allowed, result.Limit, result.Remaining, result.ResetAfter, result.Source)\nreturn err\n}\n"
	file := filepath.Join(d.t.TempDir(), "main.go")
	require.NoError(d.t, os.WriteFile(file, []byte(program), 0o644))
	build := exec.Command("go", "build", "-o", file+".program", file)
	build.Dir = d.folder
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for attempt := 1; ; attempt++ {
		out, err := exec.Command(file + ".program").CombinedOutput()
		switch got := strings.TrimSpace(string(out)); {
		case err != nil && strings.Contains(got, "the server is unavailable") && attempt < 50:
			d.begin() // on a busy machine the call may last longer than its limit
		case err != nil:
			return fmt.Errorf("%w: %s", err, got)
		case got != "true 16 15 2s server":
			return fmt.Errorf("the program prints %s", got)
		default:
			return nil
		}
	}
}

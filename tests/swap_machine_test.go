package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// machine is the one of docs/swap.md: servers with a configuration file and a folder each.
// The page names the servers by ports. Here each of those ports is a free one.
type machine struct {
	t     *testing.T
	dir   string // in place of / for the files of the page
	paths *strings.Replacer
	ports map[string]string
	nodes map[string]*server // by the port of the page
}

const (
	ourModule  = "/usr/lib/redis/modules/gothrottle.so"
	cellModule = "/usr/lib/redis/modules/libredis_cell.so"
)

// newMachine writes a configuration file for each port. The module is redis-cell. The first port is
// the master of the others, unless lines has cluster-enabled.
func newMachine(t *testing.T, named []string, lines ...string) *machine {
	t.Helper()
	lasts(t)
	localOnly(t)
	t.Parallel() // most of the time of a swap passes in waiting for links and failovers
	s := &machine{t: t, dir: t.TempDir(), ports: map[string]string{}, nodes: map[string]*server{}}
	cell := redisCell(t)
	pairs := []string{ourModule, env.module, cellModule, cell, "/etc/redis/", s.dir + "/etc/", "/var/lib/redis/", s.dir + "/lib/"}
	for _, port := range append([]string{"26379"}, named...) {
		s.ports[port] = servers.FreePort()
		pairs = append(pairs, port, s.ports[port])
	}
	s.paths = strings.NewReplacer(pairs...)
	require.NoError(t, os.Mkdir(s.dir+"/etc", 0o755))
	require.NoError(t, os.Mkdir(s.dir+"/bin", 0o755))
	require.NoError(t, os.Symlink(redisCLI(t), s.dir+"/bin/redis-cli"))
	for i, port := range named {
		folder := s.here("/var/lib/redis/" + port)
		require.NoError(t, os.MkdirAll(folder, 0o755))
		conf := append([]string{"port " + s.ports[port], "dir " + folder, `save ""`, "repl-diskless-sync-delay 0",
			"loadmodule " + cell}, lines...)
		if strings.Contains(strings.Join(lines, " "), "cluster-enabled") {
			conf = append(conf, "cluster-port "+servers.FreePort())
		} else if i > 0 {
			conf = append(conf, "replicaof 127.0.0.1 "+s.ports[named[0]])
		}
		require.NoError(t, os.WriteFile(s.here("/etc/redis/"+port+".conf"), []byte(strings.Join(conf, "\n")+"\n"), 0o644))
		s.start(port)
	}
	return s
}

// here returns a text of the page with the paths and ports of this machine.
func (s *machine) here(text string) string { return s.paths.Replace(text) }

// redisCell returns the path of redis-cell: GOTHROTTLE_REDIS_CELL, or else a stand-in.
func redisCell(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("GOTHROTTLE_REDIS_CELL"); path != "" {
		return path
	}
	library := filepath.Join(t.TempDir(), filepath.Base(cellModule)) // the commands of the page look for this name
	require.NoError(t, os.Rename(compile(t, "cell.c"), library))
	require.NoError(t, os.Chmod(library, 0o755)) // the server loads only executable files
	return library
}

// redisCLI returns the path of the command-line client that belongs to the server.
func redisCLI(t testing.TB) string {
	t.Helper()
	beside := filepath.Join(filepath.Dir(env.server), strings.Replace(filepath.Base(env.server), "-server", "-cli", 1))
	for _, name := range []string{beside, "redis-cli", "valkey-cli"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no redis-cli and no valkey-cli")
	return ""
}

// start starts the server of a port on its configuration file and waits until the server answers.
func (s *machine) start(port string, args ...string) *server {
	s.t.Helper()
	old := s.nodes[port]
	if old != nil {
		eventually(s.t, "the server at port "+port+" has ended", old.exited)
	}
	o := options{bare: true, config: s.here("/etc/redis/" + port + ".conf"), data: s.here("/var/lib/redis/" + port), args: args}.launch()
	o.Port = s.ports[port]
	n := connect(s.t, servers.New(s.t, o))
	s.nodes[port] = n
	return n
}

// run executes a block of the page, line by line. The lines with # after a command are what it
// prints; run repeats the command until it does.
func (s *machine) run(block string) {
	s.t.Helper()
	for _, c := range commandsOf(block) {
		if conf, ok := strings.CutPrefix(c.text, "redis-server /etc/redis/"); ok {
			s.start(strings.TrimSuffix(conf, ".conf"))
			continue
		}
		if c.want == "" {
			_, err := s.shell(c.text)
			require.NoError(s.t, err, c.text)
			continue
		}
		got := ""
		s.t.Cleanup(func() { // the last output says more than the time-out of eventually
			if s.t.Failed() && got != c.want {
				s.t.Logf("%s prints %q, and the page says %q", c.text, got, c.want)
			}
		})
		eventually(s.t, c.text+" prints "+c.want, func() bool {
			got, _ = s.shell(c.text)
			return got == c.want
		})
	}
}

func (s *machine) shell(command string) (string, error) {
	run := exec.Command("sh", "-c", s.here(command))
	run.Dir = s.dir
	run.Env = append(os.Environ(), "PATH="+s.dir+"/bin:"+os.Getenv("PATH"))
	out, err := run.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err == nil && regexp.MustCompile(`(?m)^(ERR|NOGOODSLAVE|Could not connect)`).MatchString(text) {
		err = fmt.Errorf("%s", text)
	}
	return text, err
}

// pageCommand is one command of a block and what it prints, "" if the page does not say.
type pageCommand struct{ text, want string }

// commandsOf splits a block into commands. A command with <<'END' ends with the line END.
func commandsOf(block string) (all []pageCommand) {
	inside := false
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		printed, isOutput := strings.CutPrefix(line, "# ")
		switch {
		case inside:
			all[len(all)-1].text += "\n" + line
			inside = line != "END"
		case isOutput:
			last := &all[len(all)-1]
			last.want = strings.TrimPrefix(last.want+"\n"+printed, "\n")
		default:
			all = append(all, pageCommand{text: line})
			inside = strings.Contains(line, "<<'END'")
		}
	}
	return all
}

// swapBlocks returns the blocks of docs/swap.md below a heading.
func swapBlocks(t *testing.T, heading string, want int) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/swap.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section = regexp.MustCompile(`(?m)^##`).Split(section, 2)[0]
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	require.Len(t, all, want, "blocks below %q", heading)
	return all
}

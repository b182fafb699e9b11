package tests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// machine is the one of docs/swap.md: servers with a configuration file and a folder each.
// The page names the servers by ports. Here each of those ports is a free one.
type machine struct {
	t       *testing.T
	dir     string // in place of / for the files of the page
	paths   *strings.Replacer
	ports   map[string]string
	cluster bool
	nodes   map[string]*server // by the port of the page
}

const (
	ourModule  = "/usr/lib/redis/modules/gothrottle.so"
	cellModule = "/usr/lib/redis/modules/libredis_cell.so"
	backScript = "../deploy/redis-cell-back.lua"
)

var threeNodes = []string{"6379", "6380", "6381"}

// newMachine writes a configuration file for each port and starts a server on it. The module is redis-cell. The first port is
// the master of the others.
func newMachine(t *testing.T, named []string, cluster bool, lines ...string) *machine {
	t.Helper()
	lasts(t)
	t.Parallel() // most of the time of a swap passes in waiting for links and failovers
	s := &machine{t: t, dir: t.TempDir(), ports: map[string]string{}, cluster: cluster, nodes: map[string]*server{}}
	cell := redisCell(t)
	script, err := filepath.Abs(backScript)
	require.NoError(t, err)
	pairs := []string{ourModule, env.module, cellModule, cell, "/etc/redis/", s.dir + "/etc/", "/var/lib/redis/", s.dir + "/lib/", backScript[3:], script}
	for _, port := range append([]string{"26379"}, named...) {
		s.ports[port], s.ports["bus "+port] = servers.FreePort(), servers.FreePort()
		pairs = append(pairs, port, s.ports[port])
	}
	s.paths = strings.NewReplacer(pairs...)
	for _, folder := range append([]string{"etc", "bin", "lib"}, strings.Fields(s.here("lib/"+strings.Join(named, " lib/")))...) {
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, folder), 0o755))
	}
	require.NoError(t, os.Symlink(redisCLI(t), s.dir+"/bin/redis-cli"))
	for i, port := range named {
		conf := append([]string{"loadmodule " + cell}, lines...)
		if !cluster && i > 0 {
			conf = append(conf, "replicaof 127.0.0.1 "+s.ports[named[0]])
		}
		require.NoError(t, os.WriteFile(s.here("/etc/redis/"+port+".conf"), []byte(strings.Join(conf, "\n")+"\n"), 0o644))
		s.start(port)
	}
	if cluster {
		require.NoError(t, servers.Join(1, s.nodes["6379"].run, s.nodes["6380"].run, s.nodes["6381"].run))
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
	source, err := os.ReadFile("testdata/cell.c")
	require.NoError(t, err)
	library, err := servers.Library(t.TempDir(), "libredis_cell", source) // the commands of the page look for this name
	require.NoError(t, err)
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

// start starts the server of a port on its configuration file, after the last one has ended.
func (s *machine) start(port string) {
	s.t.Helper()
	if old := s.nodes[port]; old != nil {
		eventually(s.t, "the server at port "+port+" has ended", old.run.Exited)
	}
	s.nodes[port] = connect(s.t, servers.New(s.t, servers.Options{Bare: true, Config: s.here("/etc/redis/" + port + ".conf"),
		Folder: s.here("/var/lib/redis/" + port), Port: s.ports[port], Bus: s.ports["bus "+port], Cluster: s.cluster}))
}

// run executes blocks of the page, line by line, while a client calls. The lines with # after a command are what it
// prints; run repeats the command until it does. After each block it waits for more calls.
func (s *machine) run(calls *caller, blocks ...string) {
	s.t.Helper()
	for _, block := range blocks {
		for _, c := range commandsOf(block) {
			s.execute(c)
		}
		calls.proceed()
	}
}

func (s *machine) execute(c pageCommand) {
	s.t.Helper()
	if conf, ok := strings.CutPrefix(c.text, "redis-server /etc/redis/"); ok {
		s.start(strings.TrimSuffix(conf, ".conf"))
		return
	}
	var got string
	var err error
	waited := servers.Await(c.text, func() bool {
		got, err = s.shell(c.text)
		return got == c.want || c.want == ""
	})
	require.NoError(s.t, waited, "it prints %q, and the page says %q", got, c.want)
	if c.want == "" {
		require.NoError(s.t, err, c.text)
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

// commandsOf splits a block into commands.
func commandsOf(block string) (all []pageCommand) {
	for line := range strings.SplitSeq(block, "\n") {
		if printed, isOutput := strings.CutPrefix(line, "# "); isOutput {
			last := &all[len(all)-1]
			last.want = strings.TrimPrefix(last.want+"\n"+printed, "\n")
		} else {
			all = append(all, pageCommand{text: line})
		}
	}
	return all
}

// swapBlocks returns the blocks of docs/swap.md below a heading.
func swapBlocks(t *testing.T, heading string, want int) (all []string) {
	t.Helper()
	for _, b := range blocksOf(t, "docs/swap.md") {
		if b.section == heading {
			all = append(all, strings.Join(b.lines, "\n"))
		}
	}
	require.Len(t, all, want, "blocks below %q", heading)
	return all
}

// swapSteps returns the steps there and back, those of each node that a step is for.
func swapSteps(t *testing.T) (steps, back []string) {
	t.Helper()
	steps, back = swapBlocks(t, "One master with replicas", 3), swapBlocks(t, "The way back", 4)
	return append(steps, strings.ReplaceAll(steps[2], "6381", "6379")), append(back, strings.ReplaceAll(back[3], "6380", "6381"))
}

// caller is a client that keeps calling CL.THROTTLE on the node that is master. It counts the units that it got and the errors.
type caller struct {
	s      *machine
	nodes  []*redis.Client // it calls the first one, until that fails
	ended  atomic.Bool
	done   sync.WaitGroup
	calls  atomic.Int64     // that were answered
	got    map[string]int64 // admitted units by key
	errors map[string]int   // errors by their first word
}

// The limit of the caller, and its words. One unit drains in 1000 seconds, so none while a test runs.
const (
	longLimit = 1_000_000
	long      = "999999 1 1000"
)

// startCaller makes limiters and then goes on calling until the test ends or account is called. Half of the keys early:N are
// never called again.
func (s *machine) startCaller() *caller {
	s.t.Helper()
	c := &caller{s: s, got: map[string]int64{}, errors: map[string]int{}}
	for _, port := range slices.Sorted(maps.Keys(s.nodes)) {
		c.nodes = append(c.nodes, s.nodes[port].client(3))
	}
	for i := range 50 {
		c.call(fmt.Sprint("early:", i))
	}
	c.done.Go(func() {
		for n := 0; !c.ended.Load(); n++ {
			c.call([]string{"user:42", fmt.Sprint("early:", n%25), fmt.Sprint("new:", n%1000)}[n%3])
		}
	})
	s.t.Cleanup(c.end)
	c.proceed()
	return c
}

func (c *caller) call(key string) {
	reply, err := c.nodes[0].Do(ctx, fields("CL.THROTTLE "+key+" "+long+" 3")...).Int64Slice()
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), " ")
		c.errors[first]++
		time.Sleep(time.Millisecond)
		c.nodes = append(c.nodes[1:], c.nodes[0])
		return
	}
	c.calls.Add(1)
	c.got[key] += 3 * (1 - reply[0])
}

// proceed waits until the caller has made some hundred calls more.
func (c *caller) proceed() {
	c.s.t.Helper()
	was := c.calls.Load()
	eventually(c.s.t, "the caller makes calls", func() bool { return c.calls.Load() > was+300 })
}

// end stops the caller. After that its counts can be read.
func (c *caller) end() {
	c.ended.Store(true)
	c.done.Wait()
}

// account ends the caller and checks that a node knows each unit that the caller got, that the caller saw no other errors than
// the named ones, and that all nodes hold the same.
func (c *caller) account(port string, errors ...string) {
	t, n := c.s.t, c.s.nodes[port]
	t.Helper()
	c.end()
	t.Logf("%d calls, errors %v", c.calls.Load(), c.errors)
	for code := range c.errors {
		assert.Contains(t, errors, code)
	}
	assert.Greater(t, len(c.got), 60)
	for key, got := range c.got {
		reply, err := n.Do(ctx, fields("CL.THROTTLE "+key+" "+long+" 0")...).Int64Slice()
		require.NoError(t, err)
		require.Equal(t, got, longLimit-reply[2], "%s: the units that the caller got, and those that the server knows", key)
	}
	for other, node := range c.s.nodes {
		if other != port {
			require.NoError(t, node.run.InStep(n.run))
		}
	}
}

// The swap of docs/swap.md, step by step, while a client calls, and the way back: no unit is forgotten. Step 1 is taken back
// and made again. No node with gothrottle fails to apply anything.
func TestSwap(t *testing.T) {
	s := newMachine(t, threeNodes, false)
	steps, back := swapSteps(t)
	c := s.startCaller()
	s.run(c, steps[0], back[0])
	assert.Equal(t, "string", s.nodes["6380"].Type(ctx, "early:49").Val())
	s.run(c, steps...)
	for _, n := range s.nodes {
		assert.NotContains(t, n.run.Log(), "CRITICAL")
	}
	master := s.nodes["6380"]
	master.must("GO.ALL two THROTTLE 9 1 3600 THROTTLE 99 1 60")
	master.must("HSET book 0 1795302334193880144 1 7 title x")
	s.run(c, back[1:]...)
	c.account("6379", "READONLY")
	for key, want := range map[string]string{"two": "string", "book": "hash"} { // a book isn't a limiter
		assert.Equal(t, want, s.nodes["6379"].Type(ctx, key).Val(), key)
	}
	for port, n := range s.nodes {
		assert.Equal(t, "string", n.Type(ctx, "early:49").Val(), port)
		assert.False(t, n.has("GO.THROTTLE"), port)
	}
}

// Sentinel makes the failover.
func TestSwap_sentinel(t *testing.T) {
	s := newMachine(t, threeNodes, false)
	sentinel := connect(t, servers.New(t, servers.Options{Port: s.ports["26379"], Sentinel: strings.Split(s.here(
		"sentinel monitor mymaster 127.0.0.1 6379 1\nsentinel down-after-milliseconds mymaster 60000"), "\n")}))
	// Sentinel asks its nodes ten times as often as by default.
	sentinel.must("SENTINEL DEBUG INFO-PERIOD 1000 PUBLISH-PERIOD 200")
	eventually(t, "Sentinel knows both replicas", func() bool {
		replicas, err := sentinel.Do(ctx, "SENTINEL", "REPLICAS", "mymaster").Slice()
		return err == nil && len(replicas) == 2
	})
	steps, _ := swapSteps(t)
	c := s.startCaller()
	s.run(c, steps[0], swapBlocks(t, "With Sentinel or in a cluster", 2)[0], steps[2], steps[3])
	sentinel.run.Terminate() // it ends the connections of a node that it changes, and may do so at any time
	for _, n := range s.nodes {
		n.Client = n.client(3)
	}
	c.account("6380", "READONLY", "EOF", "read", "write")
	for _, n := range s.nodes {
		assert.Equal(t, s.nodes["6380"].dataset(), n.dataset())
	}
}

// One shard of a cluster, there and back.
func TestSwap_cluster(t *testing.T) {
	s := newMachine(t, threeNodes, true, "cluster-node-timeout 10000")
	steps, back := swapSteps(t)
	steps[1] = swapBlocks(t, "With Sentinel or in a cluster", 2)[1]
	back[2] = strings.Replace(back[2], "redis-cli -p 6380 FAILOVER TO 127.0.0.1 6379\n", "redis-cli -p 6379 CLUSTER FAILOVER\n", 1)
	require.Contains(t, back[2], "CLUSTER FAILOVER")
	c := s.startCaller()
	for _, step := range append(steps, back[1:]...) {
		s.run(c, strings.TrimSuffix(regexp.MustCompile(`(?m)^.*replicaof.*\n?`).ReplaceAllString(step, ""), "\n"))
	}
	c.account("6379", "READONLY", "MOVED", "CLUSTERDOWN")
}

// One server with an append-only file, there and back.
func TestSwap_oneServer(t *testing.T) {
	s := newMachine(t, threeNodes[:1], false, "appendonly yes")
	c := s.startCaller()
	s.run(c, swapBlocks(t, "One server", 1)...)
	script, _, found := strings.Cut(swapBlocks(t, "The way back", 4)[2], "\nredis-cli -p 6380 TYPE")
	require.True(t, found)
	s.run(c, strings.ReplaceAll(script, "6380", "6379")+"\nredis-cli -p 6379 SHUTDOWN SAVE\nsed -i 's|^loadmodule .*|loadmodule "+cellModule+
		"|' /etc/redis/6379.conf\nredis-server /etc/redis/6379.conf")
	c.account("6379", "EOF", "read", "write", "dial", "LOADING")
	assert.Equal(t, "string", s.nodes["6379"].Type(ctx, "early:49").Val())
}

// The way back's script makes each limiter redis-cell's string, with the latest time of all its cells and lockouts and the same
// expiry: redis-cell ends its server for a hash. Other keys stay as they are, and the reply names the hashes.
func TestSwap_wayBackScript(t *testing.T) {
	script, err := os.ReadFile(backScript)
	require.NoError(t, err)
	s := start(t, options{})
	for _, line := range []string{"whole 15 30 60", "fraction 15 7 60", "debt 1 1 60 50 FORCE", "reserved 0 1 60 1 RESERVE 1h", "locked 0 1 60 1 LOCKOUT 1h",
		"ended 0 7 60 1 LOCKOUT 1ms"} {
		s.ask("GO.THROTTLE " + line)
		s.ask("GO.THROTTLE " + line)
	}
	for n := 1; n <= 32; n++ { // as many cells as a key can have, and a lockout of the last one
		s.ask(fmt.Sprintf("GO.ALL cells:%d%s", n, strings.Repeat(fmt.Sprintf(" THROTTLE 4 7 %dh", n), n)))
		s.ask(fmt.Sprintf("GO.ALL locks:%d%s THROTTLE 0 1 1m LOCKOUT %dh", n, strings.Repeat(" THROTTLE 0 1 1h", n-1), n))
		s.ask(fmt.Sprintf("GO.ALL locks:%d%s THROTTLE 0 1 1m LOCKOUT %dh", n, strings.Repeat(" THROTTLE 0 1 1h 0", n-1), n))
	}
	want, expires := map[string]string{}, map[string]time.Duration{}
	for _, key := range s.Keys(ctx, "*").Val() {
		for field, value := range s.HGetAll(ctx, key).Val() {
			if n, _ := strconv.Atoi(field); n >= 128 || n%4 == 0 {
				want[key] = max(want[key], value)
			}
		}
		expires[key] = s.PExpireTime(ctx, key).Val()
	}
	require.Len(t, want, 2*32+6)
	foreign := []string{"name name bob", "pair 0 5 1 6", "gap 1 60 4 1900000000000000000", "text 0 1900000000000000000 1 x"}
	for _, line := range foreign {
		s.must("HSET " + line)
	}
	s.must("GO.QUOTA quota 5 1h")
	before := s.dataset()
	reply, err := s.Eval(ctx, string(script), nil).Slice()
	require.NoError(t, err)
	assert.EqualValues(t, len(want), reply[0])
	assert.ElementsMatch(t, []any{"name", "pair", "gap", "text"}, reply[1])
	for key, value := range s.dataset() {
		if tat, ours := want[key]; ours {
			assert.Equal(t, tat, s.Get(ctx, key).Val(), key)
			assert.Equal(t, expires[key], s.PExpireTime(ctx, key).Val(), key)
		} else {
			assert.Equal(t, before[key], value, key)
		}
	}
}

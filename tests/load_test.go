package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// No transcript loads a module.
func TestLoad_arguments(t *testing.T) {
	for _, c := range []struct {
		args    []string
		cell    bool   // whether CL.THROTTLE is registered
		refused string // what the log says if the load is refused
	}{
		{nil, true, ""},
		{[]string{"cl-throttle", "yes"}, true, ""},
		{[]string{"cl-throttle", "no"}, false, ""},
		{[]string{"CL-THROTTLE", "NO"}, false, ""},
		{[]string{"cl-throttle", "maybe"}, false, "cl-throttle must be yes or no, not 'maybe'"},
		{[]string{"cl-throttle"}, false, "cl-throttle"},
		{[]string{"surprise"}, false, "unknown argument 'surprise'"},
		{[]string{"module-name", "gothrottle"}, true, ""},
		{[]string{"module-name", "redis-cell", "cl-throttle", "no"}, false, ""},
		{[]string{"Module-Name", "redis-cell"}, true, ""},
		{[]string{"module-name", "other"}, false, "module-name must be gothrottle or redis-cell, not 'other'"},
		{[]string{"module-name", "REDIS-CELL"}, false, "module-name must be gothrottle or redis-cell, not 'REDIS-CELL'"},
		{[]string{"module-name"}, false, "module-name must be gothrottle or redis-cell, not ''"},
		{[]string{"cl-throttle", "yes", "surprise", "1"}, false, "unknown argument 'surprise'"},
	} {
		if c.refused != "" {
			log := refuse(t, options{modArgs: c.args})
			assert.Contains(t, log, "gothrottle not loaded", "%v", c.args)
			assert.Contains(t, log, c.refused, "%v", c.args)
			continue
		}
		s := start(t, options{modArgs: c.args})
		assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60), "%v", c.args)
		reply := s.session().do("COMMAND", "INFO", "CL.THROTTLE").([]any)
		assert.Equal(t, c.cell, reply[0] != nil, "%v", c.args)
	}
}

// The module replicates its effects as commands of the server. If one of these commands is
// renamed, the module refuses to load.
func TestLoad_refusedWhereAnEffectIsRenamedAway(t *testing.T) {
	for _, effect := range []string{"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT"} {
		for _, to := range []string{"", "hidden"} {
			log := refuse(t, options{args: []string{"--rename-command", effect, to}})
			assert.Contains(t, log, "gothrottle not loaded", effect)
			assert.Contains(t, log, effect)
		}
	}
	// Other commands may be renamed.
	s := start(t, options{args: []string{"--rename-command", "FLUSHALL", "", "--rename-command", "DEBUG", ""}})
	assert.Equal(t, int64(0), s.throttle("k", 15, 30, 60)[0])
}

// Another command may have the name of one of ours, here after rename-command. If CL.THROTTLE
// is taken, the module loads without that command, unless the load argument demands it. If one
// of the other names is taken, the module refuses to load.
func TestLoad_namesThatAreTaken(t *testing.T) {
	cellTaken := []string{"--rename-command", "ECHO", "CL.THROTTLE"}
	s := start(t, options{args: cellTaken})
	assert.Contains(t, strings.ToLower(s.log()), "cl.throttle is taken")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	assert.Equal(t, "hello", s.Do(ctx, "CL.THROTTLE", "hello").Val(), "CL.THROTTLE is still ECHO")

	s = start(t, options{args: cellTaken, modArgs: []string{"cl-throttle", "no"}})
	assert.NotContains(t, s.log(), "is taken")

	log := refuse(t, options{args: cellTaken, modArgs: []string{"cl-throttle", "yes"}})
	assert.Regexp(t, "(?i)gothrottle not loaded: .*cl.throttle is taken", log)

	log = refuse(t, options{args: []string{"--rename-command", "ECHO", "GO.THROTTLE"}})
	assert.Regexp(t, "(?i)gothrottle not loaded: .*go.throttle is taken", log)
}

// startBare starts a server that may load modules while it runs, and has not loaded ours.
func startBare(t *testing.T, args ...string) *server {
	t.Helper()
	localOnly(t)
	return start(t, options{bare: true, args: append([]string{"--enable-module-command", "yes"}, args...)})
}

// modules returns the names of the modules that a server has loaded.
func (s *server) modules() (names []string) {
	s.t.Helper()
	for _, m := range s.session().list("MODULE", "LIST") {
		names = append(names, dict(s.t, m)["name"].(string))
	}
	return names
}

// A load that the server undoes, here because of a CONFIG that no module knows, leaves the server
// alive (Redis 8 aborts if a module refuses that unload). The module can be loaded again, and
// its ACL category has its commands.
func TestLoad_undoneLoad(t *testing.T) {
	s := startBare(t)
	for range 3 {
		require.Error(t, s.Do(ctx, "MODULE", "LOADEX", env.module, "CONFIG", "foo.bar", 1).Err())
		require.Equal(t, "PONG", s.Ping(ctx).Val())
		require.NotContains(t, s.modules(), "gothrottle")
		require.ErrorContains(t, s.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60).Err(), "unknown command")
	}
	require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	s.setPolicies(corpus.SamplePolicies)
	for name, c := range samples {
		assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on(name)...).Result()), name)
	}
	if categories := wordsOf(s.session().do("ACL", "CAT")); s.since(7, 4) || strings.Contains(strings.Join(categories, " "), "throttle") {
		var names []string
		for name := range samples { // not GO.TOP
			names = append(names, strings.ToLower(name))
		}
		// ACL CAT leaves out the commands of modules on Redis 7.4 and Valkey 8.0.
		assert.ElementsMatch(t, names, wordsOf(s.session().do("COMMAND", "LIST", "FILTERBY", "ACLCAT", "throttle")))
	}
	// From the first command on an unload is refused.
	require.Error(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	assert.Contains(t, s.modules(), "gothrottle")
	assert.Equal(t, samples["GO.THROTTLE"].Sample.Second, flat(s.Do(ctx, samples["GO.THROTTLE"].on("GO.THROTTLE")...).Result()))
}

// Before its first command the module may be unloaded, and loaded again with other arguments. Then
// nothing of the first load is left.
func TestLoad_unloadBeforeTheFirstCommand(t *testing.T) {
	s := startBare(t)
	for _, c := range []struct {
		name string
		cell bool
		args []any
	}{
		{"gothrottle", true, nil},
		{"gothrottle", false, []any{"cl-throttle", "no"}},
		{"redis-cell", true, []any{"module-name", "redis-cell"}},
		{"gothrottle", true, []any{"cl-throttle", "yes"}},
	} {
		require.NoError(t, s.Do(ctx, append([]any{"MODULE", "LOAD", env.module}, c.args...)...).Err(), "%v", c.args)
		assert.Contains(t, s.modules(), c.name, "%v", c.args)
		reply := s.session().do("COMMAND", "INFO", "CL.THROTTLE").([]any)
		assert.Equal(t, c.cell, reply[0] != nil, "%v", c.args)
		assert.Equal(t, "0", s.info(c.name, c.name+"_panics"), "%v", c.args)
		require.NoError(t, s.Do(ctx, "MODULE", "UNLOAD", c.name).Err(), "%v", c.args)
		assert.NotContains(t, s.modules(), c.name, "%v", c.args)
		assert.Empty(t, s.info(c.name, c.name+"_panics"), "%v", c.args)
	}
}

// A Go runtime stays in its process after an unload. So another build of the module is refused,
// with the reason in the log. The first build may be loaded again.
func TestLoad_anotherBuildInTheSameProcessIsRefused(t *testing.T) {
	s := startBare(t, "--enable-debug-command", "yes")
	b, err := os.ReadFile(env.module)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.so")
	require.NoError(t, os.WriteFile(other, b, 0o755))

	require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	require.NoError(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", other).Err())
	assert.Contains(t, s.log(), "gothrottle not loaded: another build of it was loaded into this process before. Restart the server")
	assert.NotContains(t, s.modules(), "gothrottle")
	require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	// The Go runtime of the other build has set handlers of signals as well. A crash is still the server's.
	require.Error(t, s.Do(ctx, "DEBUG", "SEGFAULT").Err())
	eventually(t, "the server has ended", s.exited)
	assert.Contains(t, s.log(), "gothrottle_throttle_admitted:1")
}

// Some clients look for a module named redis-cell. With a load argument the module has that
// name, and so have its section and its fields in INFO.
func TestLoad_moduleNameRedisCell(t *testing.T) {
	s := start(t, options{modArgs: []string{"module-name", "redis-cell"}})
	assert.Contains(t, s.modules(), "redis-cell")
	assert.NotContains(t, s.modules(), "gothrottle")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, ints(t, s.Do(ctx, "CL.THROTTLE", "k", 15, 30, 60, 1)))
	assert.Equal(t, "1", s.info("redis-cell", "redis-cell_cl_throttle_admitted"))
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, s.info("redis-cell", "redis-cell_version"))
	assert.Empty(t, s.counters(), "INFO gothrottle")
	listed := wordsOf(s.session().do("COMMAND", "LIST", "FILTERBY", "MODULE", "redis-cell"))
	assert.Len(t, listed, len(commands.Table))
}

// The module does not load if another module has its name.
func TestLoad_moduleNamesThatAreTaken(t *testing.T) {
	localOnly(t)
	s := startBare(t, "--loadmodule", compile(t, "stranger.c")) // a module named redis-cell
	require.Contains(t, s.modules(), "redis-cell")
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module, "module-name", "redis-cell").Err())
	assert.Contains(t, s.log(), "gothrottle not loaded: a module named redis-cell is loaded")
	require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	// Nor is it loaded twice, under any name.
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Contains(t, s.log(), "gothrottle not loaded: a module named gothrottle is loaded")
	assert.Equal(t, []int64{0, 16, 14, -1, 4}, s.throttle("k", 15, 30, 60))
}

// A server that restarts itself keeps its process and its environment, but not the Go runtime. It loads
// the module again.
func TestLoad_restartWithinTheProcess(t *testing.T) {
	localOnly(t)
	s := start(t, options{args: []string{"--enable-debug-command", "yes"}})
	require.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	if exec.Command(s.info("server", "executable"), "--version").Run() != nil {
		t.Skip("the server's file does not run by itself, so the server cannot restart itself")
	}
	before, process := s.info("server", "run_id"), s.info("server", "process_id")
	s.Do(ctx, "DEBUG", "RESTART") // the connection ends before a reply
	eventually(t, "the server is back", func() bool {
		require.False(t, s.exited(), s.log())
		info, err := s.Info(ctx, "server").Result()
		return err == nil && strings.Contains(info, "run_id:") && !strings.Contains(info, before)
	})
	assert.Equal(t, process, s.info("server", "process_id"))
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("l", 15, 30, 60))
}

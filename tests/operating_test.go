package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What docs/operating.md says of a server's life is tried on real servers here: no transcript has restarts.

// CONFIG REWRITE writes the module into the main file, unless its line is there. So a line in an included file or on
// the command line loads the module twice at the next start, and the server ends.
func TestOperating_loadmoduleBelongsInTheMainFile(t *testing.T) {
	included := configFile(t, "LOAD").config
	for _, row := range []struct {
		where  string
		o      options
		starts bool
	}{
		{"main file", configFile(t, "LOAD"), true},
		{"included file", configFile(t, "include "+included), false},
		{"command line", options{config: configFile(t, "").config}, false},
	} {
		s := start(t, row.o)
		require.NoError(t, s.ConfigRewrite(ctx).Err())
		require.NoError(t, s.ConfigRewrite(ctx).Err())
		text, err := os.ReadFile(row.o.config)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(text), "\nloadmodule ")+strings.Count(string(text[:10]), "loadmodule"), row.where)
		if row.starts {
			assert.Equal(t, int64(0), s.restart(row.o).throttle("k", 1, 1, 60)[0], row.where)
			continue
		}
		s.terminate()
		log := refuse(t, row.o)
		assert.Contains(t, log, "a module named gothrottle is loaded", row.where)
		assert.Contains(t, log, "server aborting", row.where)
		// To mend it, one of the two lines is deleted.
		require.NoError(t, os.WriteFile(row.o.config, []byte(strings.ReplaceAll(string(text), "\nloadmodule ", "\n# loadmodule ")), 0o600))
		start(t, row.o)
	}
}

// A server that does not start writes the line that the page names.
func TestOperating_doesNotStart(t *testing.T) {
	localOnly(t)
	plain := filepath.Join(t.TempDir(), "gothrottle.so")
	require.NoError(t, os.WriteFile(plain, nil, 0o644))
	page, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	for text, line := range map[string]string{
		"a module named gothrottle is loaded":                        "LOAD\nLOAD",
		"cannot open shared object file":                             "loadmodule /nowhere/gothrottle.so",
		"does not have execute permissions":                          "loadmodule " + plain,
		"Module Configuration detected without loadmodule directive": "gothrottle.top-keys 1",
	} {
		assert.Contains(t, refuse(t, configFile(t, line)), text)
		assert.Contains(t, string(page), "| `"+text)
	}
}

// MODULE LOAD lasts until the server ends, or is saved by CONFIG REWRITE.
func TestOperating_moduleLoadIsSavedByARewrite(t *testing.T) {
	o := configFile(t, "enable-module-command yes")
	s := start(t, o)
	s.must("MODULE LOAD " + env.module)
	s = s.restart(o)
	assert.ErrorContains(t, s.Do(ctx, "GO.THROTTLE", "k", 1, 1, 60).Err(), "unknown command")
	s.must("MODULE LOAD " + env.module)
	require.NoError(t, s.ConfigRewrite(ctx).Err())
	assert.Equal(t, int64(0), s.restart(o).throttle("k", 1, 1, 60)[0])
}

// CONFIG SET holds until the restart, CONFIG REWRITE saves it.
func TestOperating_settings(t *testing.T) {
	o := configFile(t, "LOAD")
	s := start(t, o)
	settings := func() map[string]string { return s.ConfigGet(ctx, "gothrottle.*").Val() }
	defaults := map[string]string{"gothrottle.policies": "", "gothrottle.top-keys": "0"}
	require.Equal(t, defaults, settings())
	for _, rewrite := range []bool{false, true} {
		s.setPolicies("a THROTTLE 4 5 300s,\n  THROTTLE 9 1 1h;\n")
		s.must("CONFIG SET gothrottle.top-keys 7")
		if rewrite {
			require.NoError(t, s.ConfigRewrite(ctx).Err())
		}
		s = s.restart(o)
		if !rewrite {
			assert.Equal(t, defaults, settings())
		}
	}
	assert.Equal(t, map[string]string{"gothrottle.policies": "a THROTTLE 4 5 300s, THROTTLE 9 1 1h;", "gothrottle.top-keys": "7"}, settings())
	// Without the module the line ends the start.
	s.terminate()
	refuse(t, configFile(t, `gothrottle.policies "a QUOTA 1 1d"`))
}

// A full server: which policy refuses, and which forgets limiters.
func TestOperating_eviction(t *testing.T) {
	for policy, row := range map[string]struct{ refused, dataStays bool }{
		"noeviction":   {true, true},
		"allkeys-lru":  {false, false},
		"volatile-lru": {false, true},
		"volatile-ttl": {false, true},
	} {
		s := start(t, options{args: []string{"--maxmemory-policy", policy}})
		const keys = 4000
		p := s.Pipeline()
		for i := range keys {
			p.Do(ctx, "GO.THROTTLE", "limiter:"+strconv.Itoa(i), 9, 1, 360000)
			p.Set(ctx, "data:"+strconv.Itoa(i), "x", 0)
		}
		_, err := p.Exec(ctx)
		require.NoError(t, err)
		s.must("GO.LEASE slots 9 3600 a")
		used, err := strconv.ParseInt(s.info("memory", "used_memory"), 10, 64)
		require.NoError(t, err)
		const room = 100_000 // bytes less than is used: some hundred keys must go
		require.NoError(t, s.ConfigSet(ctx, "maxmemory", strconv.FormatInt(used-room, 10)).Err())
		err = s.Do(ctx, "GO.THROTTLE", "another", 9, 1, 360000, 0).Err()
		if row.refused {
			assert.ErrorContains(t, err, "OOM ", policy)
			s.must("GO.THROTTLE_RO another 9 1 360000")
			assert.Equal(t, "1", s.must("GO.RELEASE slots a"), policy)
			assert.Equal(t, keys, s.count("limiter:*"), policy)
			continue
		}
		assert.NoError(t, err, policy)
		assert.Less(t, s.count("limiter:*"), keys, "%s: limiters were evicted", policy)
		assert.Equal(t, row.dataStays, s.count("data:*") == keys, "%s: %d keys of data", policy, s.count("data:*"))
		assert.NotEqual(t, "0", s.info("stats", "evicted_keys"), policy)
	}
}

// count returns the number of keys of a pattern.
func (s *server) count(pattern string) int { return len(s.Keys(ctx, pattern).Val()) }

// Usage after a crash, by how the server saves.
func TestOperating_persistence(t *testing.T) {
	localOnly(t)
	for what, row := range map[string]struct {
		args []string
		used int64 // units that are in use after the crash, of 2: one before SAVE and one after
	}{
		"nothing":     {nil, 0},
		"RDB":         {[]string{"--save", "3600 1"}, 1},
		"each second": {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, 2}, // the kernel has it: the process crashes, not the machine
		"always":      {[]string{"--appendonly", "yes", "--appendfsync", "always"}, 2},
	} {
		o := options{args: row.args, data: t.TempDir()}
		s := start(t, o)
		s.throttle("k", 9, 1, 360000)
		if what != "nothing" {
			s.must("SAVE")
		}
		s.throttle("k", 9, 1, 360000)
		at := s.expiry("k")
		if what == "each second" { // until the disk has synced, the server may keep back what it writes
			eventually(t, "an empty buffer of the append-only file", func() bool { return s.info("persistence", "aof_buffer_length") == "0" })
		}
		s.run.Kill()
		s = start(t, o)
		assert.Equal(t, 10-row.used, s.throttle("k", 9, 1, 360000, 0)[2], what)
		if row.used == 2 {
			assert.Equal(t, at, s.expiry("k"), what)
		}
	}
}

// A promoted replica knows the usage. It needs the policies: settings are not replicated.
func TestOperating_failover(t *testing.T) {
	master, replica := startReplica(t)
	for _, s := range []*server{master, replica} {
		s.setPolicies("")
	}
	master.setPolicies("api QUOTA 2 1d")
	master.must("GO.POLICY api:bob 2")
	master.must("GO.LEASE slots 1 3600 a")
	inStep(t, master, replica)
	assert.Equal(t, master.expiry("api:bob"), replica.expiry("api:bob"))
	master.run.Kill()
	require.NoError(t, replica.SlaveOf(ctx, "NO", "ONE").Err())
	assert.ErrorContains(t, replica.Do(ctx, "GO.POLICY", "api:bob").Err(), "ERR no policy for the key 'api:bob'")
	replica.setPolicies("api QUOTA 2 1d")
	assert.Regexp(t, `^\[1 2 0 `, replica.must("GO.POLICY api:bob"))
	assert.Regexp(t, ` 1\]$`, replica.must("GO.LEASE slots 1 3600 a"), "the lease is renewed")
	assert.Regexp(t, ` 0\]$`, replica.must("GO.LEASE others 1 3600 a"), "a lease that was not sent is new")
}

// The file of a running server is replaced by install. The server goes on, and its restart loads the new file. cp would
// write into the file that the server executes.
func TestOperating_upgrade(t *testing.T) {
	localOnly(t)
	folder := t.TempDir()
	module := filepath.Join(folder, "gothrottle.so")
	replace := func(program ...string) (same bool) {
		before, err := os.Stat(module)
		require.NoError(t, err)
		out, err := exec.Command(program[0], append(program[1:], env.module, module)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		after, err := os.Stat(module)
		require.NoError(t, err)
		return os.SameFile(before, after)
	}
	require.NoError(t, os.WriteFile(module, nil, 0o755))
	assert.True(t, replace("cp"), "cp writes into the file")
	o := options{module: module, args: []string{"--enable-module-command", "yes"}}
	s := start(t, o)
	assert.False(t, replace("install", "-m", "0755"), "install makes a new file")
	assert.Equal(t, int64(0), s.throttle("k", 1, 1, 60)[0])
	assert.Error(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	assert.Contains(t, s.log(), "gothrottle cannot be unloaded")
	assert.Equal(t, int64(0), s.restart(o).throttle("k", 1, 1, 60)[0])
}

// Without the module limiters are plain keys, with their expiry.
func TestOperating_goingBackToNoModule(t *testing.T) {
	s := start(t, options{args: []string{"--save", "3600 1"}})
	kinds := map[string]string{
		"GO.THROTTLE limits:h 9 1 3600": "hash", "GO.WINDOW limits:w 9 3600": "zset",
		"GO.QUOTA limits:q 9 3600": "string", "GO.LEASE limits:l 9 3600 a": "zset",
	}
	for call := range kinds {
		s.must(call)
	}
	s = s.restart(options{bare: true, args: []string{"--save", "3600 1"}})
	for call, kind := range kinds {
		key := strings.Fields(call)[1]
		assert.Equal(t, kind, s.Type(ctx, key).Val(), key)
		assert.Greater(t, s.TTL(ctx, key).Val(), time.Minute, key)
		assert.Equal(t, int64(1), s.Unlink(ctx, key).Val(), key)
	}
}

// Too small an address space ends the server at the load. The page names what is enough.
func TestOperating_addressSpace(t *testing.T) {
	localOnly(t)
	server := env.server
	defer func() { env.server = server }()
	for _, limit := range []struct {
		kilobytes string
		starts    bool
	}{{"500000", false}, {"2000000", true}} {
		env.server = filepath.Join(t.TempDir(), "server")
		script := "#!/bin/bash\nulimit -v " + limit.kilobytes + " && exec " + server + ` "$@"` + "\n"
		require.NoError(t, os.WriteFile(env.server, []byte(script), 0o755))
		if limit.starts {
			s := start(t, options{})
			assert.Equal(t, int64(0), s.throttle("k", 1, 1, 60)[0])
			continue
		}
		assert.Contains(t, refuse(t, options{}), "fatal error:", limit.kilobytes)
	}
}

// A server that crashes writes its report, with INFO gothrottle, if crash-log-enabled is yes at that time. The report is
// whole if the memory test is off.
func TestOperating_crashReport(t *testing.T) {
	lasts(t)
	localOnly(t)
	for _, row := range []struct {
		crashLog []string // the setting at the start, and those by CONFIG SET
		memcheck string
		sent     bool // the signal comes from another process
		has      string
	}{
		{[]string{"yes"}, "no", false, "whole"},
		{[]string{"no"}, "no", false, "nothing"},
		{[]string{"yes", "no"}, "no", false, "nothing"},
		{[]string{"no", "yes"}, "no", false, "whole"},
		{[]string{"yes", "no", "yes"}, "no", false, "whole"},
		{[]string{"yes"}, "no", true, "whole"},
		{[]string{"yes"}, "yes", false, "start"},
	} {
		s := start(t, options{args: []string{"--crash-log-enabled", row.crashLog[0], "--crash-memcheck-enabled", row.memcheck,
			"--enable-debug-command", "yes"}})
		for _, setting := range row.crashLog[1:] {
			s.must("CONFIG SET crash-log-enabled " + setting)
		}
		s.throttle("k", 1, 1, 60)
		if row.sent {
			require.NoError(t, s.run.Signal(syscall.SIGSEGV))
		} else {
			require.Error(t, s.Do(ctx, "DEBUG", "SEGFAULT").Err())
		}
		eventually(t, "the server has ended", s.exited)
		assert.Equal(t, row.has != "nothing", strings.Contains(s.log(), "gothrottle_throttle_admitted:1"), "%+v", row)
		if row.has == "start" {
			continue
		}
		assert.Equal(t, syscall.SIGSEGV, s.run.EndedBy(), "%+v", row)
		assert.Equal(t, row.has == "whole", strings.Contains(s.log(), "--check-system"), "%+v", row)
		assert.NotContains(t, s.log(), "goroutine", "%+v: Go ended the server", row)
	}
}

// A call that the server refuses isn't an error in the module's counters.
func TestOperating_refusalsAreNotCounted(t *testing.T) {
	s := start(t, options{})
	nobody := s.as("nobody", "~* -@all")
	mayOrNot(t, false, nobody.do("GO.THROTTLE", "k", 1, 1, 60), "no permission")
	s.must("CONFIG SET maxmemory 1")
	require.ErrorContains(t, s.Do(ctx, "GO.THROTTLE", "k", 1, 1, 60).Err(), "OOM ")
	assert.Equal(t, "0", s.counters()["gothrottle_throttle_errors"])
	s.must("CONFIG SET maxmemory 0")
	require.Error(t, s.Do(ctx, "GO.THROTTLE", "k", "x", 1, 60).Err())
	assert.Equal(t, "1", s.counters()["gothrottle_throttle_errors"])
	assert.NotEmpty(t, s.info("errorstats", "errorstat_OOM"))
	assert.NotEmpty(t, s.info("errorstats", "errorstat_NOPERM"))
}

// The users of the page may do what the page says, and no more.
func TestOperating_users(t *testing.T) {
	s := start(t, options{})
	users := 0
	for _, b := range blocksOf(t, "docs/operating.md") {
		for _, line := range b.lines {
			if rule, found := strings.CutPrefix(line, "user "); found && !strings.HasPrefix(rule, "default") {
				users++
				require.NoError(t, s.Do(ctx, append([]any{"ACL", "SETUSER"}, fields(rule)...)...).Err(), rule)
			}
		}
	}
	require.Equal(t, 3, users)
	script, err := os.ReadFile("../deploy/monitoring/exporter.lua")
	require.NoError(t, err)
	for _, row := range []struct {
		user string
		may  bool
		call []any
	}{
		{"app", true, fields("GO.THROTTLE limits:k 1 1 60")},
		{"app", true, fields("GO.THROTTLE_RO limits:k 1 1 60")},
		{"app", false, fields("GO.THROTTLE other:k 1 1 60")},
		{"app", false, fields("DEL limits:k")},
		{"app", false, fields("GO.TOP")},
		{"app", false, fields("CONFIG GET gothrottle.policies")},
		{"exporter", true, []any{"EVAL", string(script), "0"}},
		{"exporter", true, fields("INFO all")},
		{"exporter", true, fields("SLOWLOG LEN")},
		{"exporter", false, fields("CONFIG GET *")},
		{"exporter", false, fields("GO.THROTTLE limits:k 1 1 60")},
		{"exporter", false, fields("GO.INFO limits:k")},
		{"exporter", false, fields("GO.TOP")},
		{"exporter", false, fields("KEYS *")},
		{"operator", true, fields("GO.INFO limits:k")},
		{"operator", true, fields("DEL limits:k")},
		{"operator", true, fields("CONFIG SET gothrottle.top-keys 9")},
		{"operator", true, fields("GO.TOP")},
		{"operator", false, fields("FLUSHALL")},
	} {
		w := s.session()
		require.Equal(t, "OK", w.do("AUTH", row.user, "change-me"))
		mayOrNot(t, row.may, w.do(row.call...), fmt.Sprint(row.user, row.call[0]))
	}
}

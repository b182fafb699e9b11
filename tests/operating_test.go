package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What docs/operating.md says of a server's life is tried on real servers here: no transcript has restarts.

// CONFIG REWRITE writes the module into the main file, unless its line is there. So a line in an included file or on
// the command line loads the module twice at the next start, and the server ends.
func TestOperating_loadmoduleBelongsInTheMainFile(t *testing.T) {
	included := configFile(t, "LOAD").Config
	for _, row := range []struct {
		where  string
		o      options
		starts bool
	}{
		{"main file", configFile(t, "LOAD"), true},
		{"included file", configFile(t, "include "+included), false},
		{"command line", options{Config: configFile(t, "").Config}, false},
	} {
		s := start(t, row.o)
		require.NoError(t, s.ConfigRewrite(ctx).Err())
		require.NoError(t, s.ConfigRewrite(ctx).Err())
		text, err := os.ReadFile(row.o.Config)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(text), "\nloadmodule ")+strings.Count(string(text[:10]), "loadmodule"), row.where)
		if row.starts {
			s.restart(row.o).works()
			continue
		}
		s.run.Terminate()
		log := refuse(t, row.o)
		assert.Contains(t, log, "a module named gothrottle is loaded", row.where)
		assert.Contains(t, log, "server aborting", row.where)
		// The remedy: one of the two lines is deleted.
		require.NoError(t, os.WriteFile(row.o.Config, []byte(strings.ReplaceAll(string(text), "\nloadmodule ", "\n# loadmodule ")), 0o600))
		start(t, row.o)
	}
}

// A server that does not start writes the line that the page names.
func TestOperating_doesNotStart(t *testing.T) {
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

// MODULE LOAD and CONFIG SET last until the server ends, or are saved by CONFIG REWRITE.
func TestOperating_settings(t *testing.T) {
	o := configFile(t, "enable-module-command yes")
	s := start(t, o)
	for _, rewrite := range []bool{false, true} {
		require.Empty(t, s.settings())
		s.must("MODULE LOAD " + env.module)
		s.setPolicies("a THROTTLE 4 5 300s,\n  THROTTLE 9 1 1h;\n")
		s.must("CONFIG SET gothrottle.top-keys 7")
		for _, value := range []string{"-1", "10001"} {
			require.Error(t, s.ConfigSet(ctx, "gothrottle.top-keys", value).Err(), value)
		}
		if rewrite {
			require.NoError(t, s.ConfigRewrite(ctx).Err())
		}
		s = s.restart(o)
	}
	assert.Equal(t, map[string]string{"gothrottle.policies": "a THROTTLE 4 5 300s, THROTTLE 9 1 1h;", "gothrottle.top-keys": "7"},
		s.ConfigGet(ctx, "gothrottle.*").Val())
	s.works()
	// Without the module the line ends the start.
	s.run.Terminate()
	refuse(t, configFile(t, `gothrottle.policies "a QUOTA 1 1d"`))
}

// A server that crashes writes its report, with INFO gothrottle, if crash-log-enabled is yes at that time. The report is
// whole if the memory test is off.
func TestOperating_crashReport(t *testing.T) {
	lasts(t)
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
		s := start(t, options{Args: []string{"--crash-log-enabled", row.crashLog[0], "--crash-memcheck-enabled", row.memcheck,
			"--enable-debug-command", "yes"}})
		for _, setting := range row.crashLog[1:] {
			s.must("CONFIG SET crash-log-enabled " + setting)
		}
		s.must("GO.THROTTLE k 1 1 60")
		if row.sent {
			require.NoError(t, s.run.Signal(syscall.SIGSEGV))
		} else {
			require.Error(t, s.Do(ctx, "DEBUG", "SEGFAULT").Err())
		}
		eventually(t, "the server has ended", s.run.Exited)
		assert.Equal(t, row.has != "nothing", strings.Contains(s.run.Log(), "gothrottle_throttle_admitted:1"), "%+v", row)
		if row.has == "start" {
			continue
		}
		assert.Equal(t, syscall.SIGSEGV, s.run.Process.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%+v", row)
		assert.Equal(t, row.has == "whole", strings.Contains(s.run.Log(), "--check-system"), "%+v", row)
		assert.NotContains(t, s.run.Log(), "goroutine", "%+v: Go ended the server", row)
	}
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

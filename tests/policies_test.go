package tests

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// setPolicies sets the configuration.
func (s *server) setPolicies(value string) {
	s.t.Helper()
	require.NoError(s.t, s.ConfigSet(ctx, "gothrottle.policies", value).Err(), value)
}

// settings returns the module's configurations.
func (s *server) settings() map[string]string {
	s.t.Helper()
	return s.ConfigGet(ctx, "*.policies").Val()
}

// configFile returns options for a server with these lines in its configuration file. LOAD is
// the directive that loads the module.
func configFile(t *testing.T, lines ...string) options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.conf")
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "LOAD", "loadmodule "+env.module)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return options{Bare: true, Config: file}
}

// Transcripts set policies by CONFIG SET. Those of a configuration file are a quoted value, or the words of the rest of the
// line. The line may be before or after the directive that loads the module.
func TestPolicies_configFile(t *testing.T) {
	const line = "gothrottle.policies "
	const two = "login THROTTLE 4 5 300s LOCKOUT 15m; api QUOTA 9 1d ALIGN -1h"
	for _, row := range []struct {
		lines []string
		want  string
	}{
		{[]string{"LOAD"}, ""},
		{[]string{line + `"` + two + `"`, "LOAD"}, two},
		{[]string{"LOAD", line + `'` + two + `'`}, two},
		{[]string{"LOAD", line + two}, two},
		{[]string{"LOAD", line + `"  login   THROTTLE 4 5 300s\tLOCKOUT 15m;\r\n  api QUOTA 9 1d ALIGN -1h  "`}, two},
		{[]string{"LOAD", line + `"b WINDOW 1 1s"`, line + `"a WINDOW 1 1s"`}, "a WINDOW 1 1s"}, // the server takes the last line
		{[]string{"LOAD", line + `"a WINDOW 1 1s,;"`}, "refused: policy 1 (a), clause 2: a clause is missing"},
		{[]string{line + "a", "LOAD"}, "refused: policy 1 (a): a clause is missing"},
	} {
		o := configFile(t, row.lines...)
		if text, refused := strings.CutPrefix(row.want, "refused: "); refused {
			assert.Contains(t, refuse(t, o), text)
			continue
		}
		assert.Equal(t, map[string]string{"gothrottle.policies": row.want}, start(t, o).settings(), "%q", row.lines)
	}
}

// A CONFIG SET that is refused because of another setting changes nothing, not even counters: the server sets the settings back,
// each in its own way.
func TestPolicies_refusedTogether(t *testing.T) {
	s := start(t, options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, taken, _ := net.SplitHostPort(listener.Addr().String())
	s.setPolicies("a QUOTA 1 1h")
	require.NoError(t, s.ConfigSet(ctx, "gothrottle.top-keys", "10").Err())
	s.must("GO.POLICY a:k")
	s.must("GO.POLICY a:k")
	before := s.must("GO.TOP") + s.info("gothrottle", "gothrottle_policies_a_limited")
	require.Error(t, s.Do(ctx, "CONFIG", "SET", "gothrottle.policies", "", "gothrottle.top-keys", "3", "maxmemory-policy", "odd").Err())
	require.Error(t, s.Do(ctx, "CONFIG", "SET", "gothrottle.policies", "", "gothrottle.top-keys", "3", "port", taken).Err())
	require.Equal(t, before, s.must("GO.TOP")+s.info("gothrottle", "gothrottle_policies_a_limited"))
	require.NoError(t, s.Do(ctx, "CONFIG", "SET", "gothrottle.policies", "", "gothrottle.top-keys", "3").Err())
	require.Equal(t, "[]", s.must("GO.TOP"))
	s.must("CONFIG SET gothrottle.top-keys 10") // later, so the old table doesn't come back
	require.Equal(t, "[]", s.must("GO.TOP"))
	require.Error(t, s.Do(ctx, "GO.POLICY", "a:k").Err())
}

package examples

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// refusals are states of a server that answers but cannot decide, and how they begin and end.
var refusals = map[string]struct{ begin, end []any }{
	"full":             {[]any{"CONFIG", "SET", "maxmemory", 1}, []any{"CONFIG", "SET", "maxmemory", 0}},
	"a replica":        {[]any{"REPLICAOF", "127.0.0.1", 1}, []any{"REPLICAOF", "NO", "ONE"}},
	"without replicas": {[]any{"CONFIG", "SET", "min-replicas-to-write", 1}, []any{"CONFIG", "SET", "min-replicas-to-write", 0}},
}

// The policy for a server that is away also holds for a server that cannot decide, but not for faults of the program.
func TestExamples_requests(t *testing.T) {
	for _, e := range table {
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, servers.Options{})
			p := e.start(t, s.Addr)
			for name, refusal := range refusals {
				s.do(refusal.begin...)
				require.Equal(t, e.away, p.ask("hal").status, name)
				s.do(refusal.end...)
			}
			if !e.adapter { // the framework of an adapter names the key
				p.wrongType(s)
				p.oddWords(s)
			}
			if !e.command {
				require.Equal(t, http.StatusBadRequest, p.get(patience, "/", nil).status, "no user")
			}
			// A program that keeps its connection gets decisions, one that connects again does not.
			s.do("CONFIG", "SET", "maxclients", 1)
			require.Contains(t, []int{e.away, http.StatusOK}, p.ask("hal").status, "no more clients")
		})
	}
}

func (p *program) wrongType(s *server) {
	s.do("LPUSH", "user:eve", "x")
	want := http.StatusInternalServerError
	if p.command {
		want = http.StatusServiceUnavailable // the exit status 2
	}
	// On a slow machine the example's time limit can come first.
	require.Eventually(p.t, func() bool { return p.ask("eve").status == want }, time.Minute, time.Millisecond)
}

// Requests cannot give units back, and their words are words of one argument.
func (p *program) oddWords(s *server) {
	const odd = "é b\r\n&units=9+%"
	require.Eventually(p.t, func() bool {
		p.ask(odd)
		return s.rdb.Exists(context.Background(), "user:"+odd).Val() == 1
	}, time.Minute, time.Millisecond, "a key with odd characters")
	if p.command {
		return // its words are those of an operator
	}
	const most = "999999999999"
	s.do("GO.THROTTLE", "user:gil", 4, 5, 60, 1000, "FORCE")
	s.do("GO.THROTTLE", "user:"+most, 4, 5, 60, 1000, "FORCE")
	for _, query := range []url.Values{
		{"user": {"gil"}, "units": {"-1000"}},
		{"user": {"gil"}, "units": {"1", "FORCE"}},
		{"user": {"gil", most}, "units": {"FORCE"}},
	} {
		denied := func(int) bool { return p.get(patience, "/", query).status != http.StatusOK }
		require.True(p.t, tried(denied), "admitted: %v", query)
	}
}

// Without redis-cli the script in shell has no decision. It must not admit for ever, as if the server were away.
func TestShell_withoutRedisCLI(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"bash", "timeout"} {
		found, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(found, filepath.Join(path, name)))
	}
	cmd := exec.Command("bash", "shell/limit.sh", "ann")
	cmd.Env = []string{"PATH=" + path, "ADDR=127.0.0.1:1"}
	said, _ := cmd.CombinedOutput()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s", said)
}

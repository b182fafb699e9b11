package examples

import (
	"context"
	"net/http"
	"net/url"
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

// The policy for a server that is away also holds for a server that cannot decide.
func TestExamples_refusal(t *testing.T) {
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
			// A program that keeps its connection gets decisions, one that connects anew does not.
			s.do("CONFIG", "SET", "maxclients", 1)
			require.Contains(t, []int{e.away, http.StatusOK}, p.ask("hal").status, "no more clients")
		})
	}
}

// Requests cannot give units back, and their words are words of one argument.
func TestExamples_wordsOfRequests(t *testing.T) {
	for _, e := range table {
		if e.adapter {
			continue // its framework names the key
		}
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, servers.Options{})
			p := e.start(t, s.Addr)
			const odd = "é b\r\n&units=9+%"
			require.Eventually(t, func() bool {
				p.ask(odd)
				return s.rdb.Exists(context.Background(), "user:"+odd).Val() == 1
			}, time.Minute, time.Millisecond, "a key with odd characters")
			if e.command {
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
				require.True(t, tried(denied), "admitted: %v", query)
			}
		})
	}
}

package examples

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// A key of another type is an error that the policy for a server that is away does not hide.
func TestExamples_wrongType(t *testing.T) {
	for _, e := range table {
		if e.adapter {
			continue // its framework decides what an error is
		}
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, servers.Options{})
			p := e.start(t, s.Addr)
			s.do("LPUSH", "user:eve", "x")
			want := http.StatusInternalServerError
			if e.command {
				want = http.StatusServiceUnavailable // the exit status 2
			}
			// On a slow machine the example's time limit can come first.
			require.Eventually(t, func() bool { return p.ask("eve").status == want }, time.Minute, time.Millisecond)
		})
	}
}

package examples

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	servers "gothrottle/tests/server"
)

// server is a server in memory that can be killed. It comes back at the same address.
type server struct {
	*resp.Server
	t        *testing.T
	listener net.Listener
	mu       sync.Mutex
	ran      map[string]int // how often it has taken units, or tried to, by key
}

// startServer starts a server. The end of the test ends the server.
func startServer(t *testing.T, o resp.Options) *server {
	t.Helper()
	servers.Needed(t, "test-languages")
	s := &server{t: t, ran: map[string]int{}}
	o.Ran = func(r resp.Run) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !strings.HasSuffix(strings.ToUpper(r.Words[0]), "_RO") && len(r.Words) > 1 {
			s.ran[r.Words[1]]++
		}
	}
	s.listener = listen(t)
	s.Server = resp.NewNetwork(o).Add(s.listener.Addr().String())
	t.Cleanup(s.Close)
	go s.Serve(s.listener)
	return s
}

// stopped returns a clock that stands still: replies don't depend on how slow a machine is.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// listen opens a socket at an address, or at a port that no client of any server has.
func listen(t *testing.T, addr ...string) (l net.Listener) {
	until(t, "a free port", func(int) bool {
		var err error
		l, err = net.Listen("tcp", append(addr, "127.0.0.1:"+servers.FreePort())[0])
		return err == nil
	})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (s *server) silence(is bool) { s.Change(func(f *resp.Faults) { f.Silent = is }) }

// kill ends the server with its connections. One that it is just accepting stays silent.
func (s *server) kill() {
	_ = s.listener.Close()
	s.silence(true)
	s.Server.Restart()
}

func (s *server) restart() {
	s.silence(false)
	s.listener = listen(s.t, s.Addr)
	go s.Serve(s.listener)
}

func (s *server) do(words ...string) any {
	reply, err := s.Do(words...)
	require.NoError(s.t, err)
	return reply
}

// calls returns how many calls have run whose keys contain this, and the most of one key.
func (s *server) calls(part string) (sum, most int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.ran {
		if strings.Contains(key, part) {
			sum, most = sum+n, max(most, n)
		}
	}
	return sum, most
}

// until calls f until it returns true. A program needs time to start, or to connect again, and on a slow machine its time
// limit may cut off any call: it then answers as its policy says.
func until(t *testing.T, what string, f func(n int) bool) {
	t.Helper()
	n := -1
	require.NoError(t, servers.Await(what, func() bool { n++; return t.Failed() || f(n) }))
	require.False(t, t.Failed())
}

// program is a running service.
type program struct {
	example
	t    *testing.T
	addr string // of the server
	port string
	log  string // the file with all that a service wrote
}

// prepare returns the example's process, which has not started.
func (p *program) prepare(ctx context.Context) *exec.Cmd {
	words := append(slices.Clone(p.runner), cmp.Or(p.built, p.file))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "ADDR="+p.addr, "PORT="+p.port, p.env)
	cmd.WaitDelay = time.Second
	return cmd
}

// start starts the example and waits until it answers. The end of the test ends it.
func (e example) start(t *testing.T, addr string) *program {
	t.Helper()
	p := &program{example: e, t: t, addr: addr, port: servers.FreePort(), log: filepath.Join(t.TempDir(), "log")}
	said, err := os.Create(p.log)
	require.NoError(t, err)
	defer said.Close()
	cmd := p.prepare(t.Context()) // whose end kills the process
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(p.said())
		}
	})
	until(t, "the example answers", func(int) bool { // no user: without the server
		response, err := http.Get("http://127.0.0.1:" + p.port)
		return err == nil && response.Body.Close() == nil
	})
	return p
}

func (p *program) said() string { return read(p.t, p.log) }

// ask sends a request of a user.
func (p *program) ask(user string) *http.Response {
	return p.get(time.Minute, "/", url.Values{"user": {user}})
}

func (p *program) get(limit time.Duration, path string, query url.Values) *http.Response {
	client := http.Client{Timeout: limit}
	response, err := client.Get("http://127.0.0.1:" + p.port + path + "?" + query.Encode())
	if !assert.NoError(p.t, err, "no answer in time") {
		return &http.Response{}
	}
	_ = response.Body.Close()
	return response
}

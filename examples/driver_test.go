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
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// server is a server that can be stopped and killed. It comes back at the same address.
type server struct {
	*servers.Server
	t *testing.T
}

// startServer starts a server. The end of the test ends the server.
func startServer(t *testing.T, o servers.Options) *server {
	t.Helper()
	servers.Needed(t, "test-languages")
	return &server{servers.New(t, o), t}
}

// resume lets the server go on, and returns when the server has read what came before.
func (s *server) resume() {
	require.NoError(s.t, s.Resume())
	require.NoError(s.t, s.Await()) // a new connection queues behind those of the example
}

func (s *server) do(words ...any) any {
	reply, err := s.Do(words...)
	require.NoError(s.t, err)
	return reply
}

var callCount = regexp.MustCompile(`cmdstat_go\.[a-z_.]+:calls=(\d+)`)

// calls is how many calls of the module's commands the server has seen.
func (s *server) calls() (sum int) {
	for _, m := range callCount.FindAllStringSubmatch(s.do("INFO", "commandstats").(string), -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
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

// start starts the example and waits until it listens. The end of the test ends it.
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
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+p.port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, "the example does not listen")
	return p
}

func (p *program) said() string {
	text, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	return string(text)
}

// ask sends a request of a user.
func (p *program) ask(user string) *http.Response {
	return p.get(patience, "/", url.Values{"user": {user}})
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

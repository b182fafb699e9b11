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
	"strings"
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

// program is a running service, or a command that runs again for each request.
type program struct {
	example
	t    *testing.T
	addr string // of the server
	port string
	log  string // the file with all that a service wrote
}

// answer is what a request got. A command's answer is in the words of HTTP.
type answer struct {
	status int
	header http.Header
}

// prepare returns the example's process, which has not started.
func (p *program) prepare(ctx context.Context, args ...string) *exec.Cmd {
	words := slices.Concat(p.runner, []string{cmp.Or(p.built, p.file)}, args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "ADDR="+p.addr, "PORT="+p.port)
	cmd.WaitDelay = time.Second
	return cmd
}

// start starts the example and waits until it listens. The end of the test ends it.
func (e example) start(t *testing.T, addr string) *program {
	t.Helper()
	p := &program{example: e, t: t, addr: addr, port: servers.FreePort(), log: filepath.Join(t.TempDir(), "log")}
	if e.command {
		return p
	}
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
func (p *program) ask(user string) answer { return p.send(patience, false, user, 1) }

// send sends a request, which may wait until it is admitted.
func (p *program) send(limit time.Duration, wait bool, user string, units int) answer {
	path, env := "/", []string{}
	if wait {
		path, env = "/wait", []string{"WAIT=1"}
	}
	if p.command {
		return p.call(limit, env, user, strconv.Itoa(units))
	}
	query := url.Values{"user": {user}}
	if units > 1 {
		query.Set("units", strconv.Itoa(units))
	}
	return p.get(limit, path, query)
}

func (p *program) get(limit time.Duration, path string, query url.Values) answer {
	client := http.Client{Timeout: limit}
	response, err := client.Get("http://127.0.0.1:" + p.port + path + "?" + query.Encode())
	if !assert.NoError(p.t, err, "no answer in time") {
		return answer{}
	}
	_ = response.Body.Close()
	return answer{response.StatusCode, response.Header}
}

func (p *program) call(limit time.Duration, env []string, args ...string) answer {
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	cmd := p.prepare(ctx, args...)
	cmd.Env = append(cmd.Env, env...)
	printed, err := cmd.Output()
	if !assert.NoError(p.t, ctx.Err(), "no answer in time") || !assert.NotNil(p.t, cmd.ProcessState, err) {
		return answer{}
	}
	retry, denied := strings.CutPrefix(strings.TrimSpace(string(printed)), "denied ")
	switch code := cmd.ProcessState.ExitCode(); {
	case code == 0 && string(printed) == "admitted\n":
		return answer{status: http.StatusOK}
	case code == 1 && denied:
		return answer{http.StatusTooManyRequests, http.Header{"Retry-After": {retry}}}
	case code == 2:
		return answer{status: http.StatusServiceUnavailable}
	}
	assert.Fail(p.t, "exit", "%v: %s", err, printed)
	return answer{}
}

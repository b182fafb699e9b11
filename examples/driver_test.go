package examples

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// server is a server that can be stopped and killed. It comes back at the same address.
type server struct {
	*servers.Server
	t   *testing.T
	rdb *redis.Client
}

// startServer starts a server. The end of the test ends the server.
func startServer(t *testing.T, o servers.Options) *server {
	t.Helper()
	servers.Needed(t, "test-languages")
	run := servers.New(t, o)
	s := &server{run, t, run.Client(func(o *redis.Options) { o.MaxRetries = 3 })}
	t.Cleanup(func() { _ = s.rdb.Close() })
	return s
}

// resume lets the server go on, and returns when the server has read what came before.
func (s *server) resume() {
	require.NoError(s.t, s.Resume())
	require.NoError(s.t, s.Await()) // a new connection queues behind those of the example
}

func (s *server) do(words ...any) {
	require.NoError(s.t, s.rdb.Do(context.Background(), words...).Err())
}

var callCount = regexp.MustCompile(`cmdstat_go\.[a-z_.]+:calls=(\d+)`)

// calls is how many calls of the module's commands the server has seen.
func (s *server) calls() int {
	s.t.Helper()
	info, err := s.rdb.Info(context.Background(), "commandstats").Result()
	require.NoError(s.t, err)
	sum := 0
	for _, m := range callCount.FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// program is a running service, or a command that runs anew for each request.
type program struct {
	t    *testing.T
	e    example
	addr string // of the server
	port string
}

// answer is what a request got. A command's answer is told in the words of HTTP.
type answer struct {
	status int
	header http.Header
}

// prepare returns the example's process, which has not started.
func (e example) prepare(ctx context.Context, addr, port string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	words := slices.Concat(e.runner, []string{cmp.Or(e.built, e.file)}, args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "ADDR="+addr, "PORT="+port)
	said := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	return cmd, said
}

// start starts the example and waits until it listens. The end of the test ends it. An example that ends because its time
// limit is too short for a slow machine is started again.
func (e example) start(t *testing.T, addr string) *program {
	t.Helper()
	p := &program{t: t, e: e, addr: addr}
	require.True(t, e.command || tried(func(int) bool {
		p.port = servers.FreePort()
		return p.listens()
	}), "the example does not listen")
	return p
}

// listens starts the example, and tells whether it listens.
func (p *program) listens() bool {
	cmd, said := p.e.prepare(context.Background(), p.addr, p.port)
	require.NoError(p.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if p.t.Failed() {
			p.t.Log(said.String())
		}
	})
	for range 3000 {
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
			if conn, err := net.Dial("tcp", "127.0.0.1:"+p.port); err == nil {
				_ = conn.Close()
				return true
			}
		}
	}
	return false
}

// run runs the example until it exits by itself, and returns what it said and its status.
func (e example) run(t *testing.T, addr string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, said := e.prepare(ctx, addr, servers.FreePort(), "ann")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit, "it goes on without the module")
	return said.String(), exit.ExitCode()
}

// ask sends a request of a user.
func (p *program) ask(user string) answer {
	if p.e.command {
		return p.call(patience, "", user)
	}
	return p.get(patience, "/", url.Values{"user": {user}})
}

// wait sends a request that waits until it is admitted.
func (p *program) wait(user string, units int) answer {
	if p.e.command {
		return p.call(time.Minute, "WAIT=1", user, strconv.Itoa(units))
	}
	return p.get(time.Minute, "/wait", url.Values{"user": {user}, "units": {strconv.Itoa(units)}})
}

func (p *program) get(limit time.Duration, path string, query url.Values) answer {
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	address := "http://127.0.0.1:" + p.port + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if !assert.NoError(p.t, err) {
		return answer{}
	}
	response, err := http.DefaultClient.Do(request)
	if !assert.NoError(p.t, err, "no answer in time") {
		return answer{}
	}
	_ = response.Body.Close()
	return answer{response.StatusCode, response.Header}
}

func (p *program) call(limit time.Duration, env string, args ...string) answer {
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	cmd, said := p.e.prepare(ctx, p.addr, "", args...)
	cmd.Env = append(cmd.Env, env)
	printed := new(bytes.Buffer)
	cmd.Stdout = printed
	if err := cmd.Run(); !assert.NoError(p.t, ctx.Err(), "no answer in time") || cmd.ProcessState == nil {
		assert.NoError(p.t, err)
		return answer{}
	}
	a := answer{header: http.Header{}}
	switch code := cmd.ProcessState.ExitCode(); code {
	case 0:
		assert.Equal(p.t, "admitted\n", printed.String())
		a.status = http.StatusOK
	case 1:
		retry, found := strings.CutPrefix(strings.TrimSpace(printed.String()), "denied ")
		assert.True(p.t, found, printed)
		a.header.Set("Retry-After", retry)
		a.status = http.StatusTooManyRequests
	case 2:
		a.status = http.StatusServiceUnavailable
	default:
		assert.Fail(p.t, "exit", "status %d: %s%s", code, printed, said)
	}
	return a
}

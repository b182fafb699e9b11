// Package examples tests the examples in other languages than Go, each as a person would run it: make test-languages.
//
// An example limits each user to 5 requests at once and 5 per minute: GO.THROTTLE user:NAME 4 5 60. It is a program in
// a folder beside this file, with a row in the table below, and it is one of two kinds.
//
// A service takes ADDR (host:port of the server) and PORT (to listen on, at 127.0.0.1) from the environment. It answers
// GET /?user=NAME with 200, or with 429 and the headers RateLimit, RateLimit-Policy and Retry-After. If the module is
// missing, the service exits with a status above 0 and a message that names GO.THROTTLE.
//
// A command takes ADDR from the environment, and NAME and the units (1 if not given) as arguments. It prints "admitted"
// and exits with 0, or prints "denied RETRY_AFTER" and exits with 1. If there is no decision, it exits with 2, also if the
// module is missing; then a message names GO.THROTTLE. To fail open is to print "admitted" while the server is away.
//
// Both kinds have a time limit far below patience, send a call once, and have a policy for a server that is away. Both
// have a helper that waits as long as retry_after says: GET /wait?user=NAME&units=N, or WAIT=1 in the environment of a
// command. The helper sends again after the wait, three times at most, and never waits on -1.
package examples

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The policies of an example: what it answers while the server is away.
const (
	open   = http.StatusOK
	closed = http.StatusServiceUnavailable
)

// example is one row of the table.
type example struct {
	file    string
	runner  []string // the first words of the command line
	built   string   // the last word of the command line, if that is not the file itself
	away    int      // the policy: open or closed
	command bool     // a command, not a service; away is closed if it exits with 2 while the server is away
	adapter bool     // a store of a framework: the framework names the key, sets the headers, and does not wait
	calls   int      // calls to the server per request; 1 if 0
}

var table = []example{
	{file: "c/hiredis.c", built: "../build/out/languages/hiredis", away: closed, command: true},
	{file: "java/Limit.java", built: "Limit", runner: []string{"java", "-cp", "../build/out/languages"}, away: open},
	{file: "php/phpredis.php", runner: []string{"php"}, away: open},
	{file: "php/predis.php", runner: []string{"php"}, away: closed},
	{file: "ruby/redis_rb.rb", runner: []string{"ruby"}, away: open},
	{file: "shell/limit.sh", runner: []string{"bash"}, away: open, command: true},
	{file: "python/redis_py.py", runner: []string{"/usr/bin/python3"}, away: open},
	{file: "python/redis_py_asyncio.py", runner: []string{"/usr/bin/python3"}, away: closed},
	{file: "node/node_redis.js", runner: node, built: "../build/out/node/node_redis.js", away: open},
	{file: "node/ioredis.js", runner: node, built: "../build/out/node/ioredis.js", away: closed},
}

// node is the program that package-lock.json pins. The packages are beside it, and a copy of the examples, because a
// program finds packages in its own folder.
var node = []string{"../build/out/node/node_modules/.bin/node"}

// patience is how long a request may take: far above the time limits of the examples, below the time after which
// clients without limits give up.
const patience = 8 * time.Second

// In the life of an example the server decides, is stopped, goes on, is killed and comes back.
func TestExamples(t *testing.T) {
	for _, e := range table {
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, moduleArgs...)
			p := e.start(t, s.addr)
			e.decides(t, s, p)
			if !e.adapter {
				e.waits(t, s, p)
			}
			before := s.calls()
			s.stop()
			asked := e.survives(t, p, "stopped")
			s.resume()
			require.LessOrEqual(t, s.calls()-before, asked*e.perRequest(), "a call was sent again")
			e.comesBack(t, s, p, "stopped")
			s.kill()
			e.survives(t, p, "killed")
			s.start()
			e.comesBack(t, s, p, "killed")
		})
	}
}

// decides wants 5 requests of a user admitted and the next one denied. A request that the example's time limit cut off
// on a slow machine was not counted, so one more is admitted.
func (e example) decides(t *testing.T, s *server, p *program) {
	before, sent := s.calls(), 0
	var last answer
	for last.status != http.StatusTooManyRequests && sent < 20 {
		last = p.ask("ann")
		sent++
	}
	require.Equal(t, http.StatusTooManyRequests, last.status)
	lost := sent - (s.calls()-before)/e.perRequest()
	require.Equal(t, 5, sent-1-lost, "admitted")
	require.Regexp(t, `^([1-9]|[1-5][0-9]|60)$`, last.header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, p.ask("bob").status, "another user")
	if !e.adapter && !e.command {
		require.Regexp(t, `^"user";q=5;w=60$`, last.header.Get("RateLimit-Policy"))
		require.Regexp(t, `^"user";r=0;t=([1-9]|1[0-2])$`, last.header.Get("RateLimit"))
	}
}

// waits wants a denied request admitted after the wait that the server told, with two calls, and one that can never be
// admitted denied at once.
func (e example) waits(t *testing.T, s *server, p *program) {
	s.do("GO.THROTTLE", "user:cleo", 4, 5, 60, 5)
	before := s.calls()
	require.Equal(t, http.StatusOK, p.wait("cleo", 1).status)
	require.LessOrEqual(t, s.calls()-before, 3, "calls of a request that waits") // the clocks of a wait may differ
	before = s.calls()
	never := p.wait("dan", 6)
	require.Equal(t, http.StatusTooManyRequests, never.status)
	require.Contains(t, []string{"", "-1"}, never.header.Get("Retry-After"))
	require.Equal(t, 1, s.calls()-before, "calls of a request that can never be admitted")
}

// survives wants answers of the policy in time, also for requests that come at once. It returns how many it sent.
func (e example) survives(t *testing.T, p *program, how string) int {
	const asked = 4
	var all sync.WaitGroup
	for i := range asked {
		all.Go(func() {
			assert.Equal(t, e.away, p.ask(fmt.Sprint(how, i)).status, how)
		})
	}
	all.Wait()
	require.False(t, t.Failed())
	return asked
}

// comesBack wants decisions of the server again.
func (e example) comesBack(t *testing.T, s *server, p *program, how string) {
	user := "back" + how
	require.Eventually(t, func() bool {
		before := s.calls()
		return p.ask(user).status == http.StatusTooManyRequests && s.calls() > before
	}, time.Minute, time.Millisecond, "%s: no decisions of the server after it came back", how)
}

// Without the module an example says what is missing, and exits.
func TestExamples_moduleMissing(t *testing.T) {
	for _, e := range table {
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			said, status := e.run(t, startServer(t).addr)
			if e.command {
				require.Equal(t, 2, status, said)
			}
			require.Positive(t, status, said)
			require.Contains(t, said, "GO.THROTTLE")
		})
	}
}

func (e example) perRequest() int { return max(e.calls, 1) }

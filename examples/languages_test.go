// Package examples tests the examples in other languages than Go, each as a person would run it: make test-languages.
//
// An example limits each user to 5 requests together and 5 per minute: GO.THROTTLE user:NAME 4 5 60. It is a program in
// a folder beside this file, with a row in the table below.
//
// It takes ADDR (host:port of the server) and PORT (to listen on, at 127.0.0.1) from the environment. It answers
// GET /?user=NAME with 200, or with 429 and the headers RateLimit, RateLimit-Policy and Retry-After, and a request without
// a user with 400. It also starts while the server is unavailable, and logs "no decision" once for each time that the server is
// away. If the module is missing, it exits with a status above 0 and a message that names GO.THROTTLE.
//
// If SCRIPT is 1, it decides by the script; those without our client also take the name of the file. Programs in Java don't.
//
// It has a time limit far below patience, sends a call once, and has a policy for a server that is unavailable. With
// GET /wait?user=NAME&units=N, it waits as long as retry_after says and sends again, three times at most, and never waits on -1.
package examples

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	servers "gothrottle/tests/server"
)

// The policies of an example: what it answers while the server is unavailable.
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
	adapter bool     // a store of a framework: the framework names the key, sets the headers, and does not wait
	insured bool     // while the server is unavailable it decides by itself
	env     string   // set beside the server's address
	client  bool     // it uses our client
	guards  bool     // it only guards GET /: it neither waits nor has units
	says    string   // what it logs when the server becomes unavailable; "no decision" if empty
}

// php checks the server, and then serves the file.
var php = []string{"sh", "-c", `php "$0" && exec php -S 127.0.0.1:$PORT "$0"`}

var table = []example{
	{file: "java/Limit.java", built: "Limit", runner: []string{"java", "-cp", "../build/out/languages"}, away: open},
	{file: "php/phpredis.php", runner: php, away: open},
	{file: "php/predis.php", runner: php, away: closed},
	{file: "ruby/redis_rb.rb", runner: []string{"ruby"}, away: open},
	{file: "python/flask_app.py", runner: venv, away: open, client: true},
	{file: "python/fastapi_app.py", runner: venv, away: closed, client: true},
	{file: "python/django_app.py", runner: venv, away: open, insured: true, client: true},
	{file: "python/flask_tutorial.py", runner: venv, away: open, adapter: true, insured: true, says: "storage unreachable"},
	onNode("express.js", example{away: open}),
	onNode("fastify.js", example{away: closed, guards: true}),
	onNode("hono.js", example{away: open, guards: true, insured: true}),
	onNode("nest.js", example{away: closed, guards: true}),
}

// venv runs a file with the packages of Debian and the packed adapter. The file must not find the adapter in its folder.
var venv = []string{"../build/out/venv/bin/python", "-I"}

// onNode is a row for a file in node. Node and the packages are those of adapters/node/test/package-lock.json, and the packed
// one. They are in build/out, as is the copy of the file that runs: a program finds packages beside itself.
func onNode(name string, e example) example {
	const out = "../build/out/node/"
	e.file, e.built, e.runner, e.client = "node/"+name, out+name, []string{out + "node_modules/.bin/node"}, true
	return e
}

// patience is how long a request may take while the server is unavailable: far above the time limits of the examples, below the
// time after which clients without limits give up.
const patience = 8 * time.Second

// In the life of an example the server decides, is stopped, goes on, is killed, comes back, and cannot decide.
func TestExamples(t *testing.T) {
	for _, e := range table {
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, resp.Options{})
			p := e.start(t, s.Addr)
			p.decides()
			if !e.adapter && !e.guards {
				p.waits(s)
				p.oddWords(s)
			}
			if !e.adapter { // whose framework names the key
				p.wrongType(s)
			}
			p.outage(s, "stopped", func() { s.silence(true) }, func() { s.silence(false) })
			p.outage(s, "killed", s.kill, s.restart)
			if !e.adapter && !e.client { // which have tests of their own
				p.cut(s)
			}
			p.refused(s)
		})
	}
}

// A server is really stopped and killed, and closes connections that it has no room for.
func TestExamples_process(t *testing.T) {
	for _, e := range table {
		if e.file != "python/flask_app.py" && e.file != "node/express.js" {
			continue
		}
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			servers.Needed(t, "test-languages")
			s := servers.New(t, servers.Options{})
			p := e.start(t, s.Addr)
			p.outage(nil, "stopped", func() { require.NoError(t, s.Pause()) }, func() { require.NoError(t, s.Resume()) })
			p.outage(nil, "killed", s.Kill, func() { require.NoError(t, s.Restart()) })
			_, err := s.Do("CONFIG", "SET", "maxclients", 1) // one that connects again gets no decision
			require.NoError(t, err)
			require.Contains(t, []int{p.away, http.StatusOK}, p.ask("hal").StatusCode, "no more clients")
		})
	}
}

// outage makes the server go away and come back. A service that starts meanwhile does as the one that runs, and logs the
// outage once. Calls that the server runs later are run once.
func (p *program) outage(s *server, how string, begin, end func()) {
	begin()
	p.survives(how)
	late := p.start(p.t, p.addr)
	late.survives(how + " late")
	first := late.outages()
	late.survives(how + " still")
	if p.says == "" {
		require.Equal(p.t, 1, first, late.said())
	}
	require.Positive(p.t, first, late.said()) // Flask-Limiter logs one for each request that is under way
	require.Equal(p.t, first, late.outages(), late.said())
	for n := 0; p.insured && how == "killed" && n < 6; n++ {
		want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[n < 5]
		require.Equal(p.t, want, p.ask("insured").StatusCode, "request %d while the server is unavailable", n)
	}
	end()
	p.comesBack(s, how)
	late.comesBack(s, how)
	_, most := s.calls("once")
	require.LessOrEqual(p.t, most, 1, "a call was sent again")
}

// cut wants a call whose connection ends before the reply sent once, and a silent connection replaced.
func (p *program) cut(s *server) {
	s.CutAfter(1)
	require.Equal(p.t, p.away, p.ask("once cut").StatusCode)
	calls, _ := s.calls("once cut")
	require.Equal(p.t, 1, calls, "calls of the request whose connection was cut")
	p.comesBack(s, "cut")
	s.HalfOpen()
	p.comesBack(s, "silent")
}

// outages counts the outages in the log.
func (p *program) outages() int { return strings.Count(p.said(), cmp.Or(p.says, "no decision")) }

// decides wants 5 requests of each of two users admitted, and their next one denied.
func (p *program) decides() {
	var last *http.Response
	for user := range 2 {
		until(p.t, "5 requests are admitted", func(n int) bool {
			var admitted int
			admitted, last = p.exhaust(fmt.Sprint("ann", user, "-", n))
			return admitted == 5
		})
	}
	require.Regexp(p.t, `^([1-9]|[1-5][0-9]|6[01])$`, last.Header.Get("Retry-After")) // Flask-Limiter adds a second
	require.Contains(p.t, []string{"", "0"}, last.Header.Get("X-RateLimit-Remaining"))
	if !p.adapter {
		require.Equal(p.t, `"user";q=5;w=60`, last.Header.Get("RateLimit-Policy"))
		require.Regexp(p.t, `^"user";r=0;t=([1-9]|1[0-2])$`, last.Header.Get("RateLimit"))
	}
}

// exhaust sends requests of a user until one is denied, and returns how many were not.
func (p *program) exhaust(user string) (admitted int, last *http.Response) {
	for admitted < 20 {
		if last = p.ask(user); last.StatusCode == http.StatusTooManyRequests {
			break
		}
		admitted++
	}
	return admitted, last
}

// waits wants a denied request admitted after the wait that the server returned, by a second or third call or, with our
// client, a reservation, and a request that can never be admitted denied at once, by one call.
func (p *program) waits(s *server) {
	until(p.t, "a denied request waits", func(n int) bool {
		user := fmt.Sprint("cleo", n)
		s.do("GO.THROTTLE", "user:"+user, "4", "5", "60", "5")
		s.Advance(11 * time.Second) // one more, and there is a unit
		response := p.get(time.Minute, "/wait", url.Values{"user": {user}})
		calls, _ := s.calls(user)
		return response.StatusCode == http.StatusOK && (calls > 1 || p.client) && calls <= 3
	})
	until(p.t, "a request that can never be admitted", func(n int) bool {
		user := fmt.Sprint("dan", n)
		never := p.get(time.Minute, "/wait", url.Values{"user": {user}, "units": {"6"}})
		calls, _ := s.calls(user)
		return never.StatusCode == http.StatusTooManyRequests && never.Header.Get("Retry-After") == "" && calls == 1
	})
}

// survives wants answers of the policy in time to requests that come at the same time.
func (p *program) survives(how string) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			assert.Equal(p.t, p.away, p.get(patience, "/", url.Values{"user": {fmt.Sprint("once ", how, i)}}).StatusCode, how)
		})
	}
	all.Wait()
	require.False(p.t, p.t.Failed())
}

// refusals are what a server replies that answers but cannot decide.
var refusals = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"READONLY You can't write against a read only replica.",
	"NOREPLICAS Not enough good replicas to write.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"MISCONF Errors writing to the AOF file: No space left on device",
	"ERR max number of clients reached",
}

// refused wants the policy of a server that is unavailable also for a server that cannot decide.
func (p *program) refused(s *server) {
	for i, refusal := range refusals {
		s.Change(func(f *resp.Faults) { f.Writes = refusal })
		require.Equal(p.t, p.away, p.ask(fmt.Sprint("hal", i)).StatusCode, refusal)
	}
	require.Equal(p.t, http.StatusBadRequest, p.get(time.Minute, "/", nil).StatusCode, "no user")
}

// wrongType wants an error of the program, whatever the policy.
func (p *program) wrongType(s *server) {
	s.do("RPUSH", "user:eve", "x")
	until(p.t, "an error of the program", func(int) bool { return p.ask("eve").StatusCode == http.StatusInternalServerError })
}

// oddWords wants words of users to be words of one argument. Requests cannot give units back.
func (p *program) oddWords(s *server) {
	const odd = "é b\r\n&units=9+%"
	until(p.t, "a key with odd characters", func(int) bool {
		p.ask(odd)
		return s.do("EXISTS", "user:"+odd) == int64(1)
	})
	const most = "999999999999"
	s.do("GO.THROTTLE", "user:gil", "4", "5", "60", "1000", "FORCE")
	s.do("GO.THROTTLE", "user:"+most, "4", "5", "60", "1000", "FORCE")
	for _, query := range []url.Values{
		{"user": {"gil"}, "units": {"-1000"}},
		{"user": {"gil"}, "units": {"1", "FORCE"}},
		{"user": {"gil", most}, "units": {"FORCE"}},
	} {
		until(p.t, "denied", func(int) bool { return p.get(time.Minute, "/", query).StatusCode != http.StatusOK })
	}
}

// comesBack wants decisions of the server again. A process, nil, doesn't count its calls.
func (p *program) comesBack(s *server, how string) {
	until(p.t, "decisions of the server after it came back: "+how, func(int) bool {
		before, _ := s.calls("back " + how)
		status := p.ask("back " + how).StatusCode
		after, _ := s.calls("back " + how)
		return status == http.StatusTooManyRequests && (s == nil || after > before)
	})
}

// Without the module an example says what is missing, and exits if it has no framework.
func TestExamples_moduleMissing(t *testing.T) {
	for _, e := range table {
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			addr := startServer(t, resp.Options{Bare: true}).Addr
			if e.adapter { // an import ends no program: requests say it
				p := e.start(t, addr)
				until(t, "which module is missing", func(int) bool {
					p.ask("ann")
					return strings.Contains(p.said(), "load the module gothrottle")
				})
				return
			}
			p := &program{example: e, t: t, addr: addr}
			until(t, "what is missing", func(int) bool {
				p.port = servers.FreePort()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it goes on if there was no reply
				defer cancel()
				cmd := p.prepare(ctx)
				said, _ := cmd.CombinedOutput()
				return strings.Contains(string(said), "GO.THROTTLE") && cmd.ProcessState.ExitCode() > 0
			})
		})
	}
}

// Without the module programs decide by the script, if their reader asks for it.
func TestExamples_script(t *testing.T) {
	file, err := filepath.Abs("../script/gothrottle.lua")
	require.NoError(t, err)
	for i, e := range table {
		if e.file == "java/Limit.java" {
			continue
		}
		t.Run(e.file, func(t *testing.T) {
			t.Parallel()
			e.env = "SCRIPT=1"
			if !e.adapter && !e.client && i%2 == 0 {
				e.env = "SCRIPT=" + file
			}
			e.start(t, startServer(t, resp.Options{Bare: true}).Addr).decides()
		})
	}
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/tests/spell"
)

// Limits of 0 refuse what the gateway takes for a limited route. So what arrives at an app escapes its limit if any program
// serves it as that route. And of requests with the method POST all is refused but what it takes for the exempt route.
const pathRules = `
domain: web
http:
  trusted_proxies: [127.0.0.1]
  ignore_case: true
  rules:
  - {name: api, match: {path: /api/*, methods: [PUT]}, rate_limit: &none {unit: day, requests_per_unit: 0}}
  - {name: login, match: {path: /login, methods: [PUT]}, rate_limit: *none}
  - {name: every, match: {methods: [POST]}, rate_limit: *none}
  - {name: health, match: {path: /health}, rate_limit: {unlimited: true, replaces: [{name: every}]}}
`

// readsOfGo are how programs in Go, and by their rules Tomcat and Kestrel, read a target. One that refuses it returns "".
var readsOfGo = map[string]func(target string) string{
	"ServeMux": func(target string) (served string) {
		mux := http.NewServeMux()
		for _, pattern := range []string{"/api/", "/login", "/login/{$}", "/health", "/health/{$}", "/"} {
			mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { served = strings.TrimSuffix(pattern, "{$}") })
		}
		if u, err := url.ParseRequestURI(target); err == nil {
			mux.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: "POST", URL: u, Host: "h"}) // it may redirect
		}
		return served
	},
	"URL.Path":             ofURL(func(u *url.URL) string { return u.Path }),
	"URL.Path, cleaned":    ofURL(func(u *url.URL) string { return path.Clean("/" + u.Path) }),
	"EscapedPath, cleaned": ofURL(func(u *url.URL) string { return path.Clean("/" + u.EscapedPath()) }),
	"Tomcat": func(target string) string { // parameters go first, then it decodes and resolves dots
		p, err := url.PathUnescape(parametersOf.ReplaceAllString(beforeQuery(target), ""))
		if err != nil || !strings.HasPrefix(p, "/") {
			return ""
		}
		return path.Clean(strings.ReplaceAll(p, `\`, "/"))
	},
	"Kestrel": func(target string) string { // it leaves %2F
		p, err := url.PathUnescape(regexp.MustCompile("(?i)%2f").ReplaceAllString(beforeQuery(target), "%252f"))
		if err != nil || !strings.HasPrefix(p, "/") {
			return ""
		}
		return (&url.URL{Path: "/"}).ResolveReference(&url.URL{Path: p}).Path
	},
}

var parametersOf = regexp.MustCompile(";[^/]*")

func beforeQuery(target string) string {
	before, _, _ := strings.Cut(target, "?")
	return before
}

func ofURL(read func(*url.URL) string) func(string) string {
	return func(target string) string {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return ""
		}
		return read(u)
	}
}

// route says which route a path is.
func route(p string) string {
	switch {
	case p == "":
		return ""
	case p == "/api" || strings.HasPrefix(p, "/api/"):
		return "api"
	case strings.TrimSuffix(p, "/") == "/login", strings.TrimSuffix(p, "/") == "/health":
		return strings.Trim(p, "/")
	}
	return "other"
}

// arrival is a request that reached the app.
type arrival struct {
	method, target, sent string
	served               map[string]string // the route, by the program that would serve it
}

// recorder is an app that notes the targets of requests as they arrive.
type recorder struct {
	mu  sync.Mutex
	all []arrival
}

func (r *recorder) serve(conn net.Conn) {
	defer conn.Close()
	for in := textproto.NewReader(bufio.NewReader(conn)); ; {
		line, err := in.ReadLine()
		if err != nil {
			return
		}
		header, err := in.ReadMIMEHeader()
		if err != nil {
			return
		}
		if words := strings.Split(line, " "); len(words) == 3 && header.Get("X-Sent") != "" {
			sent, _ := strconv.Unquote(header.Get("X-Sent"))
			r.mu.Lock()
			r.all = append(r.all, arrival{method: words[0], target: words[1], sent: sent})
			r.mu.Unlock()
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

// sendAll sends paths unchanged, by both methods, and reads the answers.
func sendAll(t *testing.T, addr string, all []string) {
	var conn net.Conn
	var in *bufio.Reader
	for i := range 2 * len(all) {
		for attempt := 0; ; attempt++ {
			if conn == nil {
				var err error
				conn, err = net.Dial("tcp", addr)
				require.NoError(t, err)
				_ = conn.SetDeadline(time.Now().Add(10 * servers.Patience))
				in = bufio.NewReader(conn)
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nX-Sent: %s\r\n\r\n",
				[]string{"PUT", "POST"}[i%2], all[i/2], addr, strconv.QuoteToASCII(all[i/2]))
			r, err := http.ReadResponse(in, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err == nil && !r.Close {
				break
			}
			_ = conn.Close() // the proxy has refused the request, or ends connections now and then
			if conn = nil; err == nil || attempt > 0 {
				break
			}
		}
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// read asks programs how they serve what has arrived.
func read(t *testing.T, all []arrival, program ...string) {
	var in bytes.Buffer
	for i := range all {
		require.NoError(t, json.NewEncoder(&in).Encode(all[i].target))
	}
	node, err := filepath.Abs("../build/out/node/node_modules")
	require.NoError(t, err)
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin, cmd.Stderr, cmd.Env = &in, os.Stderr, append(os.Environ(), "NODE_PATH="+node, "NODE_NO_WARNINGS=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(all))
	for i, line := range lines {
		require.NoError(t, json.Unmarshal([]byte(line), &all[i].served))
	}
}

func (a *arrival) readByGo() {
	a.served = map[string]string{}
	for by, read := range readsOfGo {
		a.served[by] = route(read(a.target))
	}
}

// wrong says what is wrong with an arrival.
func (a *arrival) wrong() (wrong []string) {
	for by, route := range a.served {
		if a.method == "PUT" && (route == "api" || route == "login") || a.method == "POST" && route != "health" && route != "" {
			wrong = append(wrong, by+" serves "+route)
		}
	}
	return wrong
}

// Whatever a path looks like, no program behind a proxy serves a limited route without its limit, or another route than the
// exempt one because of the exemption. Each proxy gets PATHS of them, from WORLD_SEED.
func TestPaths(t *testing.T) {
	servers.Needed(t, "test-gateway")
	g := start(t, served(t).Addr, pathRules)
	for i, name := range []string{"nginx", "caddy", "haproxy", "traefik"} {
		t.Run(name, func(t *testing.T) {
			app, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer app.Close()
			var apps recorder
			go func() {
				for conn, err := app.Accept(); err == nil; conn, err = app.Accept() {
					go apps.serve(conn)
				}
			}()
			proxy := startProxy(t, name, app.Addr().String(), strings.TrimPrefix(g.web, "http://"),
				"200ms", "20s", "timeout = 200", "timeout = 20000") // a decision that is late would be none
			r := rand.New(rand.NewPCG(uint64(setting("WORLD_SEED", 1)), uint64(i)))
			sent := make([]string, setting("PATHS", 1000))
			for i := range sent {
				sent[i] = spell.Path(r)
			}
			sendAll(t, strings.TrimPrefix(proxy, "http://"), sent)
			apps.mu.Lock()
			defer apps.mu.Unlock()
			for i := range apps.all {
				apps.all[i].readByGo()
			}
			read(t, apps.all, "node", "testdata/readers.cjs")
			read(t, apps.all, "/usr/bin/python3", "testdata/readers.py")
			methods := map[string]int{}
			for _, a := range apps.all {
				if wrong := a.wrong(); wrong != nil {
					t.Errorf("%s: %s arrives as %s: %q", a.method, a.sent, a.target, wrong)
				}
				methods[a.method]++
			}
			t.Log(len(sent), methods)
		})
	}
}

// The same of a proxy that passes targets on as they are, without programs that only a proxy has behind it.
func TestPaths_unchanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g, r := inside(t, inMemory(t), pathRules), rand.New(rand.NewPCG(uint64(setting("WORLD_SEED", 1)), 9))
		for range 2000 {
			a := arrival{target: spell.Path(r)}
			a.readByGo()
			for _, a.method = range []string{"PUT", "POST"} {
				admitted := g.get(t, g.web+"/check", "X-Forwarded-Uri", a.target, "X-Forwarded-Method", a.method).StatusCode == 200
				require.False(t, admitted && a.wrong() != nil, "%s %q: %q", a.method, a.target, a.wrong())
			}
		}
	})
}

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/gateway/internal/rules/spell"
	servers "gothrottle/tests/server"
)

// The routes of the apps behind proxies. Each app says in X-Route which one it served.
const routeRules = `
domain: web
http:
  trusted_proxies: [127.0.0.1]
  ignore_case: true
  rules:
  - {name: every, rate_limit: &l {unit: day, requests_per_unit: 4000000000}}
  - {name: api, match: {path: /api/*}, rate_limit: *l}
  - {name: login, match: {path: /login, methods: [POST]}, rate_limit: *l}
  - {name: health, match: {path: /health}, rate_limit: {unlimited: true, replaces: [{name: every}]}}
`

var apps = map[string]string{
	"express": `const app = require('express')()
app.use('/api', (req, res) => res.set('X-Route', req.method + ' api').end())
for (const route of ['login', 'health']) app.all('/' + route, (req, res) => res.set('X-Route', req.method + ' ' + route).end())
app.use((req, res) => res.set('X-Route', req.method + ' other').end())
app.listen(PORT, '127.0.0.1')`,
	"gunicorn": `
def app(environ, start):
    path = environ['PATH_INFO']
    route = 'api' if path.startswith('/api/') else path.strip('/') if path in ('/login', '/login/', '/health', '/health/') else 'other'
    start('200 OK', [('X-Route', environ['REQUEST_METHOD'].upper() + ' ' + route)])
    return []
`}

// startApp starts an app with the routes, and returns its address.
func startApp(t *testing.T, kind string) string {
	addr, folder := "127.0.0.1:"+servers.FreePort(), t.TempDir()
	writeFile(t, folder+"/app.py", apps["gunicorn"])
	writeFile(t, folder+"/app.js", strings.Replace(apps["express"], "PORT", addr[len("127.0.0.1:"):], 1))
	node, err := filepath.Abs("../build/out/node/node_modules")
	require.NoError(t, err)
	cmd := map[string]*exec.Cmd{"express": exec.Command("node", "app.js"), "gunicorn": exec.Command("/usr/bin/gunicorn", "-b", addr, "--log-level", "critical", "app:app")}[kind]
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "NODE_PATH="+node)
	servers.Background(t, cmd)
	until(t, "the app listens", func() bool { // gunicorn waits for the request of a connection that is left open
		conn, err := net.Dial("tcp", addr)
		return err == nil && conn.Close() == nil
	})
	return addr
}

var decided = regexp.MustCompile(`decisions_total\{outcome="[a-z_]*",rule="web.http.(\w+)"\} (\d+)`)

// Whatever a path and a method look like, no app behind a proxy serves a limited route without its limit, or another route
// than the exempt one without the limit of all.
func TestRoutes(t *testing.T) {
	servers.Needed(t, "test-gateway")
	g := start(t, served(t).Addr, routeRules)
	counts := func() map[string]string {
		all := map[string]string{}
		for _, m := range decided.FindAllStringSubmatch(g.page(t, g.debug+"/metrics"), -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	for app := range apps {
		for _, name := range []string{"nginx", "caddy", "haproxy"} {
			t.Run(name+" "+app, func(t *testing.T) {
				proxy := strings.TrimPrefix(startProxy(t, name, startApp(t, app), strings.TrimPrefix(g.web, "http://"),
					"200ms", "20s", "timeout = 200", "timeout = 20000"), "http://") // a decision that is late would be none
				served, before := map[string]int{}, counts()
				for _, route := range []string{"/api/foo", "/login", "/health"} {
					for _, spelling := range spell.Paths(route) {
						for _, method := range []string{"POST", "Post"} {
							got := strings.TrimPrefix(raw(t, proxy, method+" "+spelling+" HTTP/1.1\r\nHost: "+proxy+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "POST ")
							after := counts()
							served[got]++
							if (got == "api" || got == "login") && after[got] == before[got] {
								t.Errorf("%s %s: the route %s was served without its limit", method, spelling, got)
							}
							if got != "" && got != "health" && after["every"] == before["every"] { // "": the proxy or the app refused it, or redirects
								t.Errorf("%s %s: the route %s was served without the limit of all", method, spelling, got)
							}
							before = after
						}
					}
				}
				require.Greater(t, min(served["api"], served["login"], served["health"], served["other"]), 2, served)
			})
		}
	}
}

// raw sends a request unchanged, and returns the route that served it.
func raw(t *testing.T, addr, request string) string {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(servers.Patience))
	fmt.Fprint(conn, request)
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return ""
	}
	_ = r.Body.Close()
	return r.Header.Get("X-Route")
}

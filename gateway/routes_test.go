package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	addr := "127.0.0.1:" + servers.FreePort()
	_, port, _ := net.SplitHostPort(addr)
	folder := t.TempDir()
	writeFile(t, folder+"/app.py", apps["gunicorn"])
	writeFile(t, folder+"/app.js", strings.Replace(apps["express"], "PORT", port, 1))
	cmd := exec.Command("node", "app.js")
	switch kind {
	case "ServeMux":
		mux := http.NewServeMux()
		for _, pattern := range []string{"/", "/api/", "/login", "/login/{$}", "/health", "/health/{$}"} {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				route := strings.Trim(pattern, "/{$}")
				if route == "" {
					route = "other"
				}
				w.Header().Set("X-Route", strings.ToUpper(r.Method)+" "+route)
			})
		}
		app := httptest.NewServer(mux)
		t.Cleanup(app.Close)
		return app.Listener.Addr().String()
	case "gunicorn":
		cmd = exec.Command("/usr/bin/gunicorn", "-b", addr, "--log-level", "critical", "app:app")
	}
	node, err := os.Getwd()
	require.NoError(t, err)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "NODE_PATH="+path.Join(node, "../build/out/node/node_modules"))
	servers.Background(t, cmd)
	require.Eventually(t, func() bool { // gunicorn waits for the request of a connection that is left open
		conn, err := net.Dial("tcp", addr)
		return err == nil && conn.Close() == nil
	}, time.Minute, 10*time.Millisecond)
	return addr
}

// spellings returns ways to write a path.
func spellings(route string) (all []string) {
	rest := strings.TrimPrefix(route, "/")
	all = []string{route, route + "/", "/" + route, "/." + route, "/x/.." + route, "/x/%2e%2e" + route, "/x%2f.." + route, "/x%2F%2e%2e%2F" + rest,
		"/%2e/" + rest, "/" + fmt.Sprintf("%%%x", rest[0]) + rest[1:], strings.ToUpper(route), route + "%2f", route + "?a=/b", route + "#a", route + ";a=b",
		"/;x" + route, "/x;/.." + route, `\` + rest, `/x\..\` + rest, "/" + fmt.Sprintf("%%25%x", rest[0]) + rest[1:], "http://h" + route, route + "%00", route + "/.", route + "/x/.."}
	for _, exempt := range []string{"/health", "/nothing"} { // back to another route
		back := strings.Repeat("%2f..", strings.Count(route, "/")) + "%2f" + exempt[1:]
		all = append(all, route+back, "/x/.."+route+back, strings.Replace(route+back, "%2f", "/", 1), route+"/.."+exempt, route+"#/../.."+exempt, route+";/../.."+exempt, exempt+"%2f.."+route, exempt+"/.."+route)
	}
	return all
}

var decided = regexp.MustCompile(`decisions_total\{outcome="[a-z_]*",rule="web.http.(\w+)"\} (\d+)`)

// Whatever a path and a method look like, no app behind a proxy serves a limited route without its limit, or another route
// than the exempt one without the limit of all.
func TestRoutes(t *testing.T) {
	servers.Needed(t, "test-gateway")
	g := start(t, server(t).Addr, routeRules, "DECISION_TIMEOUT=20s")
	counts := func() map[string]string {
		all := map[string]string{}
		for _, m := range decided.FindAllStringSubmatch(body(t, g.debug+"/metrics"), -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	for _, app := range []string{"ServeMux", "express", "gunicorn"} {
		for _, name := range []string{"nginx", "caddy", "haproxy"} {
			t.Run(name+" "+app, func(t *testing.T) {
				proxy := strings.TrimPrefix(startProxy(t, name, startApp(t, app), strings.TrimPrefix(g.web, "http://")), "http://")
				served := map[string]int{}
				before := counts()
				for _, route := range []string{"/api/foo", "/login", "/health"} {
					for _, spelling := range spellings(route) {
						for _, method := range []string{"POST", "Post"} {
							got := strings.TrimPrefix(raw(t, proxy, method+" "+spelling+" HTTP/1.1\r\nHost: "+proxy+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "POST ")
							after := counts()
							if got != "" { // the proxy or the app refused it, or redirects
								served[got]++
								limited := after[got] != before[got]
								if (got == "api" || got == "login") && !limited {
									t.Errorf("%s %s: the route %s was served without its limit", method, spelling, got)
								}
								if got != "health" && after["every"] == before["every"] {
									t.Errorf("%s %s: the route %s was served without the limit of all", method, spelling, got)
								}
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

// The same of any path, for Go's ServeMux and for programs that resolve dots, after escapes or without them.
func FuzzReadings(f *testing.F) {
	for _, route := range []string{"/api/foo", "/health", "/login"} {
		for _, spelling := range spellings(route) {
			f.Add(spelling)
		}
	}
	mux := http.NewServeMux()
	for _, pattern := range []string{"/", "/api/", "/health", "/health/{$}"} {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	api := &httpRule{limit: &limit{}, matchLevel: matchLevel{Path: "/api/*"}}
	health := &httpRule{limit: &limit{limitLevel: limitLevel{Unlimited: true}}, matchLevel: matchLevel{Path: "/health"}}
	f.Fuzz(func(t *testing.T, uri string) {
		s := &subject{paths: readings(uri), exact: readings(uri)}
		served := []string{}
		if u, err := url.ParseRequestURI(uri); err == nil {
			h, pattern := mux.Handler(&http.Request{Method: "POST", URL: u, Host: "h"})
			if _, redirects := h.(interface{ URL() string }); !redirects {
				served = append(served, pattern)
			}
			for _, clean := range []string{path.Clean("/" + u.Path), path.Clean("/" + u.EscapedPath())} {
				if strings.HasPrefix(clean, "/api/") {
					served = append(served, "/api/")
				} else if clean != "/health" {
					served = append(served, "/")
				}
			}
		}
		for _, pattern := range served {
			if pattern == "/api/" && !api.matches(s) {
				t.Errorf("%q is served as /api/ without its limit: %q", uri, s.paths)
			}
			if !strings.HasPrefix(pattern, "/health") && health.matches(s) {
				t.Errorf("%q is served as %s without a limit: %q", uri, pattern, s.paths)
			}
		}
	})
}

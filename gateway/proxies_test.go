package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/commands/memory/resp"
	servers "gothrottle/tests/server"
)

// blocks returns the code blocks of docs/gateway.md in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readFile(t, "../docs/gateway.md"), -1) {
		all = append(all, m[1])
	}
	require.NotEmpty(t, all, language)
	return all
}

// block returns the code block that has a text.
func block(t *testing.T, language, text string) string {
	t.Helper()
	all := blocks(t, language)
	at := slices.IndexFunc(all, func(block string) bool { return strings.Contains(block, text) })
	require.GreaterOrEqual(t, at, 0, text)
	return all[at]
}

// proxies are the configurations of deploy/gateway: the program, the status of a request while the gateway is unavailable, hangs, has
// no rules and no such domain, the file, and what is around it here.
var proxies = map[string]struct {
	program                    []string
	away, hangs, bare, unknown int
	file, around               string
}{
	"nginx": {[]string{"nginx", "-p", ".", "-e", "stderr", "-c", "file.yaml"}, 200, 200, 200, 500, "nginx.conf", "daemon off; master_process off; pid pid; events {}\n" +
		"http { access_log off; client_body_temp_path FOLDER/1; proxy_temp_path FOLDER/2; fastcgi_temp_path FOLDER/3; uwsgi_temp_path FOLDER/4; " +
		"scgi_temp_path FOLDER/5; FILE }"},
	"caddy":   {[]string{"caddy", "run", "--adapter", "caddyfile", "--config", "file.yaml"}, 502, 504, 503, 404, "Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\nFILE"},
	"traefik": {[]string{"traefik", "--configfile=file.yaml"}, 500, 0, 503, 404, "traefik.yaml", "entryPoints: {web: {address: \"LISTEN\"}}\nproviders: {file: {filename: traefik.yaml}}\n"},
	"haproxy": {[]string{"haproxy", "-db", "-f", "file.yaml"}, 200, 200, 200, 200, "haproxy.cfg", "FILE"},
}

// inDeploy reads a file of deploy/gateway.
func inDeploy(t *testing.T, name string) string { return readFile(t, "../deploy/gateway/"+name) }

// startProxy starts a proxy with its file in deploy/gateway, but for changes, before an app and behind a gateway. It returns its
// address. Changes are pairs of old and new text.
func startProxy(t *testing.T, name, app, gateway string, changes ...string) string {
	t.Helper()
	if _, err := exec.LookPath(proxies[name].program[0]); err != nil && name == "traefik" { // no package has it
		t.Skip(err)
	}
	config := inDeploy(t, proxies[name].file)
	folder, listen := t.TempDir(), "127.0.0.1:"+servers.FreePort()
	there := strings.NewReplacer(append(changes, "127.0.0.1:3000", app, "127.0.0.1:8080", gateway, "FOLDER", folder, "/etc/haproxy", folder,
		"LISTEN", listen, "listen 80", "listen "+listen, "bind :80", "bind "+listen, ":80 {", "http://"+listen+" {")...)
	if name == "nginx" {
		config = strings.TrimSuffix(config, "}\n") + inDeploy(t, "nginx-costs.conf") + "}\n"
	}
	writeFile(t, folder+"/file.yaml", there.Replace(strings.Replace(proxies[name].around, "FILE", config, 1)))
	writeFile(t, folder+"/gothrottle.lua", there.Replace(inDeploy(t, "haproxy.lua")))
	writeFile(t, folder+"/traefik.yaml", there.Replace(inDeploy(t, "traefik.yaml")))
	cmd := exec.Command(proxies[name].program[0], proxies[name].program[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "HOME="+folder)
	servers.Background(t, cmd)
	at := "http://" + listen
	answers(t, at, http.StatusOK) // Traefik reads the file after it listens
	return at
}

// answers waits until an address answers within a second with a status.
func answers(t *testing.T, at string, status int) {
	t.Helper()
	client := http.Client{Timeout: time.Second}
	until(t, fmt.Sprint(at, " answers ", status), func() bool {
		r, err := client.Get(at)
		return err == nil && r.Body.Close() == nil && r.StatusCode == status
	})
}

// Behind each proxy requests are admitted and refused, with the headers of the rule, whatever a client writes into headers.
// While the server or the gateway is unavailable each request is answered.
func TestProxies(t *testing.T) {
	for name, proxy := range proxies {
		t.Run(name, func(t *testing.T) {
			servers.Needed(t, "test-gateway")
			s := served(t)
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "app") }))
			defer app.Close()
			g := start(t, s.Addr, "domain: web\nhttp:\n  trusted_proxies: [127.0.0.1]\n  rules:\n  - {name: few, match: {methods: [get], path: /few/*}, "+
				"rate_limit: {unit: hour, requests_per_unit: 2, algorithm: sliding_window}}\n"+
				"  - {name: shut, match: {path: /shut}, rate_limit: {unit: hour, requests_per_unit: 9, on_failure: closed}}\n", "DECISION_TIMEOUT=150ms")
			gateway, cors := strings.TrimPrefix(g.web, "http://"), name != "traefik"
			headers := regexp.MustCompile("# (hdr Access.*)").FindStringSubmatch(inDeploy(t, "haproxy.cfg"))[1]
			at := startProxy(t, name, app.Listener.Addr().String(), gateway, "# add_header", "add_header", "# header_down", "header_down",
				"if { var(txn.limited)", headers+" if { var(txn.limited)", "uri /check", "uri /check/web", "gothrottle/check", "gothrottle/check/web",
				"127.0.0.1:8080/check", gateway+"/check/web")
			spoofed := []string{"X-Forwarded-Uri", "/free", "X-Forwarded-Method", "POST", "X-Original-Uri", "/free"}
			require.Equal(t, 200, g.get(t, at+"/few/1").StatusCode)
			require.Equal(t, 200, g.get(t, at+"//few/./%31?x=y", spoofed...).StatusCode)
			refused := g.get(t, at+"/few/1", spoofed...)
			require.Equal(t, 429, refused.StatusCode)
			require.Equal(t, `"few";r=0;t=`, refused.Header.Get("RateLimit")[:12])
			require.NotEmpty(t, refused.Header.Get("Retry-After"))
			require.Equal(t, cors, refused.Header.Get("Access-Control-Allow-Origin") == "https://www.example.com")
			require.Equal(t, cors, refused.Header.Get("Access-Control-Expose-Headers") == "RateLimit, Retry-After")
			require.Equal(t, 200, g.get(t, at+"/free").StatusCode)

			s.Change(func(f *resp.Faults) { f.Silent = true })
			answers(t, at+"/few/1", 200)
			answers(t, at+"/shut", 429) // without numbers
			s.Change(func(f *resp.Faults) { f.Silent = false })
			answers(t, at+"/few/1", 429)
			require.NoError(t, g.stop())
			for rules, status := range map[string]int{"domain: [": proxy.bare, "domain: web": 200, "domain: other": proxy.unknown} {
				g := start(t, s.Addr, rules, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "PORT="+g.web[strings.LastIndex(g.web, ":")+1:])
				answers(t, at+"/few/1", status)
				require.NoError(t, g.stop())
			}
			answers(t, at+"/few/1", proxy.away)                                     // HAProxy's check must have failed
			hanging, err := net.Listen("tcp", strings.TrimPrefix(g.web, "http://")) // it accepts and says nothing
			require.NoError(t, err)
			defer hanging.Close()
			if proxy.hangs > 0 { // soon
				answers(t, at+"/few/1", proxy.hangs)
			}
		})
	}
}

// With the headers that ingress-nginx's template has in place of the page's, a client's own have no effect.
func TestProxies_ingress(t *testing.T) {
	servers.Needed(t, "test-gateway")
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	g := start(t, served(t).Addr, "domain: web\nhttp: {trusted_proxies: [127.0.0.1], rules: [{name: few, match: {methods: [GET], host: 127.0.0.1, path: /few}, "+
		"rate_limit: {unit: hour, requests_per_unit: 2, algorithm: sliding_window}}]}")
	asks := regexp.MustCompile(`auth-url: "\S+:8080(/check\S+)"`).FindStringSubmatch(readFile(t, "../docs/gateway.md"))[1]
	at := startProxy(t, "nginx", app.Listener.Addr().String(), strings.TrimPrefix(g.web, "http://"), "/check?deny=403", asks,
		"X-Forwarded-Method $request_method", "X-Original-Method $request_method", "X-Forwarded-Uri $request_uri", "X-Original-URL $scheme://$http_host$request_uri",
		"X-Forwarded-Host $host", "X-Sent-From nginx-ingress-controller")
	for _, want := range []int{200, 200, 429} {
		r := g.get(t, at+"/few", "X-Forwarded-Uri", "/free", "X-Forwarded-Method", "POST", "X-Forwarded-Host", "free")
		require.Equal(t, want, r.StatusCode)
	}
}

// A proxy keeps its connections to the gateway: each request would else leave one behind.
func TestProxies_keepConnections(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	for _, name := range []string{"nginx", "caddy"} {
		from := sync.Map{} // addresses
		asked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from.Store(r.RemoteAddr, true) }))
		defer asked.Close()
		at := startProxy(t, name, app.Listener.Addr().String(), asked.Listener.Addr().String())
		for range 100 {
			answers(t, at, 200)
		}
		require.LessOrEqual(t, len(maps.Collect(from.Range)), 3, name)
	}
}

// nginx asks once for a request, though index and try_files make it look again, and keeps its own 403. The page's map counts
// requests that fail.
func TestNginx(t *testing.T) {
	servers.Needed(t, "test-gateway")
	s, site, left := served(t), t.TempDir(), 0
	require.NoError(t, os.Mkdir(site+"/empty", 0o700))
	writeFile(t, site+"/index.html", "home")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "", map[string]int{"right": 200, "": 401}[r.URL.RawQuery])
	}))
	defer app.Close()
	g := start(t, s.Addr, strings.NewReplacer("X-Tokens, estimate: 500", "X-Failures, estimate: 1", "1000}", "5}").Replace(costs)+
		"  - {name: all, rate_limit: {unit: hour, algorithm: sliding_window, requests_per_unit: 40}}\n")
	at := startProxy(t, "nginx", app.Listener.Addr().String(), strings.TrimPrefix(g.web, "http://"), "200ms", "20s", "X-Tokens $tokens", "X-Failures $failures",
		"upstream gothrottle", block(t, "nginx", "map $status")+"upstream gothrottle",
		"$ratelimit;\n        proxy_pass http://127.0.0.1:3000;", "$ratelimit;\n        root "+site+"; index index.html; try_files $uri $uri/ /index.html;")
	for i, path := range []string{"/index.html", "/", "/none", "/"} {
		before := left
		_, err := fmt.Sscanf(g.get(t, at+path).Header.Get("RateLimit"), `"all";r=%d;`, &left)
		require.True(t, err == nil && (i == 0 || left == before-1), "%d are left after %s, before it %d: %v", left, path, before, err)
	}
	require.Equal(t, 403, g.get(t, at+"/empty/").StatusCode)
	for range 9 {
		require.Equal(t, 200, g.get(t, at+"/v1/?right", "X-Api-Key", "a").StatusCode)
		until(t, "the estimate is given back", func() bool { return tokens(t, s, "a") == 0 })
	}
	for range 5 {
		require.Equal(t, 401, g.get(t, at+"/v1/", "X-Api-Key", "a").StatusCode)
	}
	require.Equal(t, 429, g.get(t, at+"/v1/?right", "X-Api-Key", "a").StatusCode)
}

// The rules of /check match what a request is, and count by what they say.
func TestCheck(t *testing.T) { bubble(t, testCheck) }

func testCheck(t *testing.T) {
	s := inMemory(t)
	g := inside(t, s, block(t, "yaml", "name: everybody"))
	name := func(headers ...string) string { // of the rule that the answer is about
		r := g.get(t, g.web+"/check", headers...)
		return fmt.Sprint(r.StatusCode, " ", strings.SplitN(r.Header.Get("RateLimit"), ";t", 2)[0])
	}
	from := func(address string, more ...string) []string { return append(more, "X-Forwarded-For", address) }
	require.Equal(t, `"everybody";r=99;t=60`, g.get(t, g.web+"/check", from("203.0.113.1")...).Header.Get("RateLimit")) // a fixed window would end earlier
	require.Contains(t, g.log(), "has neither X-Forwarded-Uri")
	require.Equal(t, `200 "everybody";r=98`, name(from("198.51.100.7, 203.0.113.1, 10.1.2.3")...))
	require.Equal(t, `200 "everybody";r=99`, name(from("2001:db8:0:1::1")...))
	require.Equal(t, `200 "everybody";r=98`, name(from("2001:db8:0:1:ffff::2")...))
	require.Equal(t, `200 "everybody";r=99`, name(from("2001:db8:0:2::1")...))
	require.Equal(t, `200 `, name(from("192.0.2.9")...))
	require.Equal(t, `200 `, name(from("2001:db8::5")...))
	require.Equal(t, `200 "everybody";r=99`, name(from("192.0.3.9")...))
	require.Equal(t, `200 "everybody";r=99`, name(from("2001:db8::6")...))
	login := from("203.0.113.9", "X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/x/../%6cogin?next=/")
	require.Equal(t, `200 "login";r=4`, name(login...))
	for range 4 {
		name(login...)
	}
	require.Equal(t, `429 "login";r=0`, name(login...))
	locked := g.get(t, g.web+"/check?deny=403", login...)
	require.Equal(t, "403 900", fmt.Sprint(locked.StatusCode, " ", locked.Header.Get("Retry-After")))
	require.Equal(t, `200 "everybody";r=92`, name(from("203.0.113.9", "X-Forwarded-Uri", "/login")...))
	key := from("203.0.113.10", "X-Forwarded-Uri", "/api/", "X-Api-Key", "k")
	require.Equal(t, `200 "everybody";r=99`, name(key...))
	require.Equal(t, `200 `, name(append(key[:2:2], from("192.0.2.9")...)...)) // without the key
	require.Equal(t, `"partners";q=5000;w=3600`, g.get(t, g.web+"/check", append(key, "X-Forwarded-For", "192.0.2.9")...).Header.Get("RateLimit-Policy"))
	require.Equal(t, 400, g.get(t, g.web+"/check?deny=200").StatusCode)
	require.Equal(t, 404, g.get(t, g.web+"/check/other").StatusCode)
	require.Contains(t, g.log(), "without http rules\" reason=no_domain path=/check/other")
	require.Contains(t, g.page(t, g.debug+"/metrics"), `refused_requests_total{reason="no_domain"} 1`)
	g = inside(t, s, "domain: d\nhttp: {rules: [{name: a, rate_limit: {unit: year, requests_per_unit: 0}}, {name: b, rate_limit: {unit: second, requests_per_unit: 0}}]}")
	require.Greater(t, len(g.get(t, g.web+"/check").Header.Get("Retry-After")), 2) // the year's
}

// Envoy's types have all that envoy.yaml has.
func TestPage_envoy(t *testing.T) {
	var file map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(inDeploy(t, "envoy.yaml")), &file))
	text, err := json.Marshal(file)
	require.NoError(t, err)
	var config bootstrap.Bootstrap
	require.NoError(t, protojson.Unmarshal(text, &config))
	require.NoError(t, config.ValidateAll())
}

// ruleFiles returns the rules of the page, the sample and the chart.
func ruleFiles(t *testing.T) (all []string) {
	t.Helper()
	var chart struct{ Gateway struct{ Rules string } }
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "../deploy/chart/values.yaml")), &chart))
	for _, one := range append(blocks(t, "yaml"), inDeploy(t, "rules.yaml"), chart.Gateway.Rules) {
		if strings.HasPrefix(one, "domain:") || strings.Contains(one, "\ndomain:") {
			all = append(all, one)
		}
	}
	return all
}

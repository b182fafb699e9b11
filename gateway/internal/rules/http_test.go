package rules

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/tests/spell"
	"gothrottle/throttle/throttlehttp"
)

// A rule sees the host and the path that an app sees, however a client writes them.
func TestSubject(t *testing.T) {
	h := HTTP{address: throttlehttp.ByIP(), network: throttlehttp.ByIP()}
	for written, want := range map[string]string{
		"API.example.com:8443 /a?b=/c":    "api.example.com /a",
		"example.com. /x/%2E.//%6cogin/#": "example.com /login",
		"[2001:db8::1]:80 http://x/login": "2001:db8::1 /login",
		"x http://x?/login":               "x /",
		"x /login?http://x/y":             "x /login",
		"x /%zz/%6":                       "x /%zz/%6",
	} {
		host, uri, _ := strings.Cut(written, " ")
		s := h.subject(&http.Request{Host: host, URL: &url.URL{}, Header: http.Header{"X-Forwarded-Uri": {uri}}})
		require.Equal(t, want, s.is["host"]+" "+s.is["path"], written)
	}
}

// A trusted proxy names the client's address and a limit in headers of its choice. ingress-nginx names method, host and path in its own
// headers, and passes a client's others on.
func TestHTTP_headers(t *testing.T) {
	set, err := Parse([]File{{Text: `
domain: d
http:
  trusted_proxies: [10.0.0.1]
  client_address: CF-Connecting-IP
  rules:
  - name: all
    by: [address, method, host, path]
    rate_limit: {unit: 15m, requests_per_unit: 5, header: X-Plan, max: 100}
`}}, Options{})
	require.NoError(t, err)
	for _, row := range []struct{ peer, query, headers, want string }{
		{"10.0.0.1", "", "CF-Connecting-IP=1.1.1.1 X-Forwarded-For=2.2.2.2 X-Plan=100", "ip:1.1.1.1 GET gw / 100"},
		{"10.0.0.1", "", "CF-Connecting-IP=3.3.3.3 CF-Connecting-IP=1.1.1.1", "ip:1.1.1.1 GET gw / 5"},
		{"10.0.0.1", "", "CF-Connecting-IP=nobody X-Forwarded-For=2.2.2.2 X-Plan=0", "ip:10.0.0.1 GET gw / 0"},
		{"10.0.0.1", "", "X-Forwarded-For=2.2.2.2 X-Plan=101", "ip:2.2.2.2 GET gw / 5!"},
		{"10.0.0.1", "", "X-Plan=7 X-Plan=8", "ip:10.0.0.1 GET gw / 5!"},
		{"10.0.0.1", "", "X-Plan=-1", "ip:10.0.0.1 GET gw / 5!"},
		{"10.9.9.9", "", "CF-Connecting-IP=1.1.1.1 X-Plan=7", "ip:10.9.9.9 GET gw / 5"},
		{"10.0.0.1", "", "X-Original-URL=https://h:8443//a?b=http://x/ X-Original-Method=PUT X-Forwarded-Host=x X-Forwarded-Method=X", "ip:10.0.0.1 PUT h /a 5"},
		{"10.0.0.1", "", "X-Original-URL=/a?b=http://x/", "ip:10.0.0.1 GET gw /a 5"},
		{"10.0.0.1", "", "X-Original-URL=http://h/a X-Original-Method=PUT X-Forwarded-Uri=/b", "ip:10.0.0.1 GET gw /b 5"},
		{"10.0.0.1", "original", "X-Original-URL=http://h/a X-Original-Method=PUT X-Forwarded-Uri=/b X-Forwarded-Method=X X-Forwarded-Host=x", "ip:10.0.0.1 PUT h /a 5"},
		{"10.0.0.1", "original", "X-Forwarded-Uri=/b X-Forwarded-Host=x", "ip:10.0.0.1 GET gw / 5"},
	} {
		r := &http.Request{Method: "GET", Host: "gw", RemoteAddr: row.peer + ":1", URL: &url.URL{RawQuery: row.query}, Header: http.Header{}}
		for pair := range strings.FieldsSeq(row.headers) {
			name, value, _ := strings.Cut(pair, "=")
			r.Header.Add(name, value)
		}
		f := set.HTTP["d"].Match(r)[0]
		is := set.HTTP["d"].subject(r).is
		got := fmt.Sprint(is["address"], " ", is["method"], " ", is["host"], " ", is["path"], " ", f.Units)
		require.Equal(t, row.want, got+map[bool]string{true: "!"}[f.Default], row.headers)
		require.EqualValues(t, f.Units, f.Reply.RequestsPerUnit)
	}
}

// Each step of the readings is what some program does: without it, a path would have no limit. TestPaths asks the programs.
func TestReadings(t *testing.T) {
	for path, program := range map[string]string{
		"/api/..%2fx":                 "Go's URL.Path",
		"/x/../api/..%2fx":            "Go's EscapedPath, cleaned, then decoded",
		"/%2561pi/..%252fx":           "two that decode",
		"/api%3f/../x":                "one that decodes first",
		"///x/api":                    "Node's URL",
		"/%09/%5cx%5capi":             "Node's URL of a decoded target",
		"/x//..//api/..%2f..":         "Node's URL: slashes have an empty part between them",
		"//x\\y/api":                  "Python's urlsplit",
		"//api%2f..%2fx":              "Python's wsgiref",
		"/login;a/../..":              "find-my-way",
		"/x/..;/api/..%2f..":          "Tomcat, then a proxy's app",
		"/x/%2e%2e/ap%69/..%2fx":      "Kestrel, which leaves %2f",
		strings.Repeat("/%2e;x", 9e3): "one that has the time",
	} {
		found, all := readings(path)
		s := &subject{paths: found, exact: found, unread: !all}
		limited := false
		for _, route := range []string{"/api/*", "/login"} {
			m := matchLevel{Path: route}
			limited = limited || (&httpRule{limits: []*Limit{{}}, matchLevel: m}).misses(s) == ""
			require.Equal(t, "path", (&httpRule{limits: []*Limit{{limitLevel: limitLevel{Unlimited: true}}}, matchLevel: m}).misses(s), "%.80s", path)
		}
		require.True(t, limited, "%.80s: %s", path, program)
	}
}

// The steps get a bounded number of bytes to read, whatever a path looks like.
func TestReadings_work(t *testing.T) {
	work, plain := 0, steps
	defer func() { steps = plain }()
	steps = nil
	for _, step := range plain {
		steps = append(steps, func(p string) string { work += len(p); return step(p) })
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		unit := spell.Path(r)
		uri := strings.Repeat(unit, 1+r.IntN(1<<r.IntN(17))/len(unit))
		work = 0
		_, _ = readings(uri)
		require.LessOrEqual(t, work, len(steps)*2*maxReadings, "seed %d: %q, %d bytes", seed, unit, len(uri))
	}
}

// A rule that limits matches any value of a header, any case of a method and, if it ignores case, of a path. One that exempts
// matches all values, in their case.
func TestHTTP_match(t *testing.T) {
	set, err := Parse([]File{{Text: `
domain: d
http:
  ignore_case: true
  rules:
  - {name: limits, match: {path: /a, methods: [Put], headers: {X: "y*"}}, rate_limit: {unit: day, requests_per_unit: 1}}
  - {name: exempts, match: {path: /a, headers: {X: "y*"}}, rate_limit: {unlimited: true}}
  - {name: stars, match: {path: /u/*/b/*, headers: {X: "*bot*"}}, rate_limit: {unit: day, requests_per_unit: 1}}
`}}, Options{})
	require.NoError(t, err)
	for request, want := range map[string]string{
		"pUT /a yes": "limits exempts", "PUT /A yes": "limits", "PUT /%41 yes": "limits", "PUT /a no yes": "limits", "PUT /a yes no": "limits",
		"PUT /a no": "", "PUT /b yes": "", "GET /a yes": "exempts", "PUT /a": "", "PUT /a; yes": "limits",
		"PUT /u/1/2/b robots": "stars", "PUT /u/1//b/c bot": "stars", "PUT /u/b bot": "", "PUT /u/1/b boat": "",
	} {
		words, names := strings.Fields(request), []string{}
		r := &http.Request{URL: &url.URL{}, Header: http.Header{"X-Forwarded-Method": words[:1], "X-Forwarded-Uri": words[1:2], "X": words[2:]}}
		for _, f := range set.HTTP["d"].Match(r) {
			names = append(names, strings.TrimPrefix(f.Label, "d.http."))
		}
		require.Equal(t, want, strings.Join(names, " "), request)
	}
}

// A proxy on a link-local address has a zone.
func TestTrusts(t *testing.T) {
	h := &HTTP{proxies: []network{{netip.MustParsePrefix("fe80::/10")}, {netip.MustParsePrefix("10.0.0.0/8")}}}
	for peer, trusted := range map[string]bool{"[fe80::1%eth0]:1": true, "[::ffff:10.0.0.1]:1": true, "10.1.1.1:1": true, "[2001:db8::1]:1": false, "@": false} {
		if h.Trusts(&http.Request{RemoteAddr: peer}) != trusted {
			t.Error(peer)
		}
	}
}

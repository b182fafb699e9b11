package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	servers "gothrottle/tests/server"
)

// costs are rules whose costs are known after the request.
const costs = "domain: web\nhttp:\n  trusted_proxies: [127.0.0.1]\n  rules:\n" +
	"  - {name: tokens, match: {path: /v1/*}, by: ['header:X-Api-Key'], cost: {header: X-Tokens, estimate: 500}, rate_limit: {unit: hour, algorithm: sliding_window, requests_per_unit: 1000}}\n" +
	"  - {name: money, match: {path: /v1/*}, by: [host], cost: {header: X-Cost}, rate_limit: {unit: day, algorithm: gcra, requests_per_unit: 10000}}\n" +
	"  - {name: office, match: {headers: {X-Api-Key: free}}, rate_limit: {unlimited: true, replaces: [{name: tokens}]}}\n"

// tokens returns how many tokens of a key are in use.
func tokens(t *testing.T, s *resp.Server, key string) int64 {
	reply, err := s.Do("GO.WINDOW_RO", "sliding_window.1h0m0s:web|http=|tokens=|header:X-Api-Key="+key, "10000", "1h", "0")
	require.NoError(t, err)
	return 10000 - reply.([]any)[2].(int64)
}

// nginx reports costs after a request, even if the client has left, and lets no client report.
func TestCosts(t *testing.T) {
	servers.Needed(t, "test-gateway")
	s := served(t)
	arrived, left := make(chan bool), make(chan bool)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stays := func(path string) {
			if r.URL.Path == path {
				arrived <- true
				select {
				case <-left:
				case <-r.Context().Done(): // the test has failed, and nginx has ended
				}
			}
		}
		stays("/v1/headers")
		w.Header().Set("X-Tokens", r.URL.Query().Get("tokens"))
		_ = http.NewResponseController(w).Flush()
		stays("/v1/body")
		fmt.Fprint(w, "half of the body")
		_ = http.NewResponseController(w).Flush()
		stays("/v1/rest")
		fmt.Fprint(w, ", and the rest")
	}))
	t.Cleanup(app.Close)
	g := start(t, s.Addr, costs)
	at := startProxy(t, "nginx", app.Listener.Addr().String(), strings.TrimPrefix(g.web, "http://"))
	becomes := func(used int64, key string) {
		until(t, fmt.Sprint(used, " of ", key), func() bool { return tokens(t, s, key) == used })
	}
	require.Equal(t, 200, g.get(t, at+"/v1/x?tokens=300", "X-Api-Key", "a").StatusCode)
	becomes(300, "a")
	require.Equal(t, 200, g.get(t, at+"/v1/x?tokens=100", "X-Api-Key", "a", "X-Tokens", "0", "X-Cost", "9000",
		"Gothrottle-Reserved", "web.http.tokens").StatusCode)
	becomes(400, "a")
	require.Equal(t, 200, g.get(t, at+"/v1/x", "X-Api-Key", "a").StatusCode) // without a cost the estimate is held
	require.Equal(t, 429, g.get(t, at+"/v1/x", "X-Api-Key", "a").StatusCode)
	require.Equal(t, 404, g.send(t, "POST", at+"/settle", "X-Tokens", "1").StatusCode)
	for _, next := range []string{"headers", "body", "rest"} { // the client leaves before it comes
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", at+"/v1/"+next+"?tokens=9000", nil)
		require.NoError(t, err)
		req.Header.Set("X-Api-Key", next)
		go func() { <-arrived; leave() }()
		if r, err := http.DefaultClient.Do(req); err == nil {
			_ = r.Body.Close()
		}
		for range 20 { // until nginx has noticed it
			require.Equal(t, 200, g.get(t, at+"/v1/x?tokens=0", "X-Api-Key", "free").StatusCode)
		}
		left <- true
		becomes(9000, next)
	}
}

// Behind other proxies the app gets what is reserved, and reports. A client can't forge it.
func TestCosts_reserved(t *testing.T) {
	for name, changes := range map[string][]string{
		"caddy": nil, "traefik": nil,
		"haproxy": {"        headers = {", "        headers = {\n            [\"x-api-key\"] = { txn.f:req_hdr(\"x-api-key\") },"},
	} {
		t.Run(name, func(t *testing.T) {
			servers.Needed(t, "test-gateway")
			s := served(t)
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header["Gothrottle-Reserved"]) }))
			defer app.Close()
			g := start(t, s.Addr, costs)
			at := startProxy(t, name, app.Listener.Addr().String(), strings.TrimPrefix(g.web, "http://"), changes...)
			forged := []string{"Gothrottle-Reserved", "forged"}
			reserved := g.page(t, at+"/v1/x", append(forged, "X-Api-Key", "a")...)
			require.Regexp(t, `^\[web\.http\.tokens;id=\w{26}\.\w+\]$`, reserved)
			require.EqualValues(t, 0, tokens(t, s, "a"))
			require.NotContains(t, g.page(t, at+"/v1/x", append(forged, "X-Api-Key", "free")...), "forged")
			for range 2 { // the second one charges nothing
				require.Equal(t, 204, g.send(t, "POST", g.web+"/settle", "X-Forwarded-Uri", "/v1/x", "X-Api-Key", "a", "X-Tokens", "300",
					"Gothrottle-Reserved", strings.Trim(reserved, "[]")).StatusCode)
				require.EqualValues(t, 300, tokens(t, s, "a"))
			}
		})
	}
}

// A report is charged for the rules whose costs it has, past the limit if need be. Only proxies may report.
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g := inside(t, s, costs)
		settle := func(path, key string, more ...string) (status int) {
			return g.send(t, "POST", g.web+path, append(more, "X-Api-Key", key, "X-Forwarded-Uri", "/v1/x")...).StatusCode
		}
		for _, wrong := range []string{"-1", "x", "NaN", "1e3", "0x10", "1000000000001", "99999999999999999999"} {
			require.Equal(t, 400, settle("/settle", "a", "X-Tokens", wrong), wrong)
		}
		require.Equal(t, 400, settle("/settle", "a", "X-Tokens", "1", "X-Tokens", "9000"))
		require.Equal(t, 400, settle("/settle", "a", "X-Tokens", "", "X-Tokens", "9000"))
		require.Equal(t, 400, settle("/settle", "a", "X-Cost", "1000000000000")) // more than 100 years
		require.Equal(t, 400, settle("/settle", "a", "X-Tokens", "1", "Gothrottle-Reserved", "web.http.tokens;id=x"))
		require.Equal(t, 204, settle("/settle", "a"))
		require.Equal(t, 204, settle("/settle", "a", "X-Tokens", ""))
		require.Equal(t, 204, settle("/settle", "free", "X-Tokens", "900"))
		require.Empty(t, s.Memory().Keys())
		require.Equal(t, 204, settle("/settle/web", "a", "X-Tokens", "2000"))
		require.EqualValues(t, 2000, tokens(t, s, "a"))
		require.Equal(t, 404, settle("/settle/other", "a", "X-Tokens", "1"))
		require.Equal(t, 405, g.get(t, g.web+"/settle").StatusCode)
		g.writes(t, "rules.yaml", strings.Replace(costs, "127.0.0.1", "10.0.0.0/8", 1))
		require.Equal(t, 403, settle("/settle", "a", "X-Tokens", "1"))
	})
}

// A request whose client has left gives back the estimates that it has taken.
func TestCosts_givenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g := inside(t, s, costs)
		g.get(t, g.web+"/check", "X-Forwarded-Uri", "/v1/x") // it connects
		s.Change(func(f *resp.Faults) { f.Far = 10 * time.Millisecond })
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, leave)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.web+"/check", nil)
		require.NoError(t, err)
		req.Header = http.Header{"X-Api-Key": {"a"}, "X-Forwarded-Uri": {"/v1/x"}}
		_, err = g.client.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		s.Change(func(f *resp.Faults) { f.Far = 0 })
		time.Sleep(time.Second)
		require.Zero(t, tokens(t, s, "a"))
	})
}

// With a hash_tag, a hold that doesn't fit takes nothing from other rules.
func TestHolds_tagged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g := inside(t, s, "domain: d\nhash_tag: domain\nhttp: {rules: [{name: calls, by: [host], rate_limit: {unit: day, requests_per_unit: 9}}, "+
			"{name: tokens, by: [host], cost: {header: C, estimate: 60}, rate_limit: {unit: day, requests_per_unit: 100}}]}")
		for _, want := range []int{200, 429, 429} {
			require.Equal(t, want, g.get(t, g.web+"/check").StatusCode)
			reply, err := s.Do("GO.INFO", "fixed_window.24h0m0s:{d}|http=|calls=|host=web")
			require.NoError(t, err)
			require.EqualValues(t, 1, named(reply)["used"])
		}
	})
}

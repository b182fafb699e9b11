package throttlehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// fixed names the same limiter for all requests.
func fixed(*http.Request) string { return "all" }

// serve returns a handler behind the middleware.
func serve(t *testing.T, c *throttle.Client, o throttlehttp.Options, rules ...throttlehttp.Rule) http.Handler {
	t.Helper()
	limit, err := throttlehttp.New(c, o, rules...)
	require.NoError(t, err)
	return limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) }))
}

// get sends one request.
func get(h http.Handler, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A denied request is a 429 that says when to come again, in headers and in the body of the draft's problem type.
func TestMiddleware_denies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		h := serve(t, c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("burst", throttle.PerMinute(30).Burst(2)), Key: fixed})
		w := get(h)
		require.Equal(t, "served", w.Body.String())
		require.Equal(t, `"burst";q=2;w=4`, w.Header().Get("RateLimit-Policy"))
		require.Equal(t, `"burst";r=1;t=2`, w.Header().Get("RateLimit"))
		require.Empty(t, w.Header().Get("Retry-After"))
		get(h)
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.Equal(t, `"burst";r=0;t=2`, w.Header().Get("RateLimit"))
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		var body map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, []any{"burst"}, body["violated-policies"])
		require.EqualValues(t, 429, body["status"])
		require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", body["type"])
		h = serve(t, c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("large", throttle.PerSecond(2)), Cost: func(*http.Request) int64 { return 3 }})
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Empty(t, w.Header().Get("Retry-After"), "it can never be admitted")
	})
}

// The older headers have whole seconds until nothing is in use.
func TestMiddleware_olderHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		h := serve(t, c, throttlehttp.Options{Headers: throttlehttp.XRateLimit}, throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerMinute(30).Burst(2)), Key: fixed})
		get(h)
		w := get(h)
		require.Equal(t, "2", w.Header().Get("X-RateLimit-Limit"))
		require.Equal(t, "0", w.Header().Get("X-RateLimit-Remaining"))
		require.Equal(t, "4", w.Header().Get("X-RateLimit-Reset"))
		require.Empty(t, w.Header().Get("RateLimit"))
		require.Equal(t, "2", get(h).Header().Get("Retry-After"))
		h = serve(t, c, throttlehttp.Options{Headers: throttlehttp.NoHeaders}, throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerMinute(30).Burst(2)), Key: fixed})
		w = get(h)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.Empty(t, w.Header().Get("X-RateLimit-Limit"))
		require.Empty(t, w.Header().Get("RateLimit"))
	})
}

// Several rules admit together or take nothing, and the body names those that deny. Without Key their keys have one hash
// tag, so limits of all kinds go together, in a cluster as well.
func TestMiddleware_severalRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		h := serve(t, c, throttlehttp.Options{},
			throttlehttp.Rule{Limiter: c.Rate("burst", throttle.PerSecond(10))},
			throttlehttp.Rule{Limiter: c.Quota("day", 1, 24*time.Hour)})
		w := get(h)
		require.Equal(t, http.StatusOK, w.Code)
		r, err := c.Quota("day", 1, 24*time.Hour).Peek(t.Context(), "{ip:192.0.2.1}")
		require.NoError(t, err)
		require.Zero(t, r.Remaining)
		require.Equal(t, `"burst";q=10;w=1, "day";q=1;w=86400`, w.Header().Get("RateLimit-Policy"))
		require.Equal(t, `"burst";r=9;t=1, "day";r=0;t=86400`, w.Header().Get("RateLimit"))
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Contains(t, w.Body.String(), `"violated-policies":["day"]`)
		require.Equal(t, "86400", w.Header().Get("Retry-After"))
	})
}

// A policy of the server, a cost, a request that is skipped, and a cost of 0, which only looks.
func TestMiddleware_policyCostSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		require.NoError(t, s.SetPolicies("api THROTTLE 4 1 60s"))
		cost := int64(3)
		h := serve(t, c, throttlehttp.Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/health" }},
			throttlehttp.Rule{Limiter: c.Policy("api"), Key: fixed, Cost: func(*http.Request) int64 { return cost }})
		w := get(h)
		require.Equal(t, `"api";r=2`, w.Header().Get("RateLimit"))
		require.Equal(t, `"api";q=5`, w.Header().Get("RateLimit-Policy")) // the draft requires q
		require.Equal(t, http.StatusTooManyRequests, get(h).Code)
		require.Equal(t, http.StatusOK, get(h, func(r *http.Request) { r.URL.Path = "/health" }).Code)
		cost = 0
		w = get(h)
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, `"api";r=2`, w.Header().Get("RateLimit"))
	})
}

// A response is charged by what it was: the estimate is settled, also past the limit, in one call for all rules.
func TestMiddleware_charge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{})
		bytes, faults, calls := c.Window("bytes", 1000, time.Hour), c.Quota("faults", 3, time.Hour), c.Rate("calls", throttle.PerHour(100))
		limit, err := throttlehttp.New(c, throttlehttp.Options{},
			throttlehttp.Rule{Limiter: bytes, Key: fixed, Cost: func(*http.Request) int64 { return 100 },
				Charge: func(_ *http.Request, r throttlehttp.Response) int64 { return r.Bytes }},
			throttlehttp.Rule{Limiter: faults, Key: fixed, Charge: func(_ *http.Request, r throttlehttp.Response) int64 {
				if r.Status < 500 && r.Header.Get("X-Fault") == "" {
					return 0
				}
				return 1
			}},
			throttlehttp.Rule{Limiter: calls, Key: fixed})
		require.NoError(t, err)
		h := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/fails" {
				w.WriteHeader(http.StatusBadGateway)
			}
			_, _ = w.Write(make([]byte, 300))
			_, _ = w.Write(make([]byte, 400))
			w.(http.Flusher).Flush()
		}))
		left := func(l interface {
			Peek(context.Context, string) (throttle.Result, error)
		}) int64 {
			r, err := l.Peek(t.Context(), "all")
			require.NoError(t, err)
			return r.Remaining
		}
		require.True(t, get(h).Flushed)
		require.EqualValues(t, 2, s.Calls())
		require.Equal(t, []int64{300, 3, 99}, []int64{left(bytes), left(faults), left(calls)})
		get(h, func(r *http.Request) { r.URL.Path = "/fails" })
		require.Equal(t, []int64{0, 2, 98}, []int64{left(bytes), left(faults), left(calls)})
		require.Equal(t, http.StatusTooManyRequests, get(h).Code)
	})
}

// A cost below 0 only looks.
func TestMiddleware_negativeCost(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Options{})
	used, calls := c.Quota("used", 3, time.Hour), c.Quota("calls", 3, time.Hour)
	_, err := used.AllowN(t.Context(), "all", 2)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, get(serve(t, c, throttlehttp.Options{},
		throttlehttp.Rule{Limiter: used, Key: fixed, Cost: func(*http.Request) int64 { return -1 }}, throttlehttp.Rule{Limiter: calls, Key: fixed})).Code)
	r, err := used.Peek(t.Context(), "all")
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Remaining)
}

// Without the server requests go on, unless the settings say otherwise. Without the module they do not.
func TestMiddleware_serverIsAway(t *testing.T) {
	rule := func(c *throttle.Client) throttlehttp.Rule {
		return throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerSecond(2)), Key: fixed}
	}
	away := errors.New("no route to host")
	c, s := throttletest.New(t, throttle.Options{})
	s.Fail(away)
	w := get(serve(t, c, throttlehttp.Options{}, rule(c)))
	require.Equal(t, "served", w.Body.String())
	require.Empty(t, w.Header().Get("RateLimit"))
	closed := throttlehttp.Options{Failed: func(w http.ResponseWriter, _ *http.Request, err error) bool {
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		w.WriteHeader(http.StatusServiceUnavailable)
		return false
	}}
	require.Equal(t, http.StatusServiceUnavailable, get(serve(t, c, closed, rule(c))).Code)

	c, s = throttletest.New(t, throttle.Options{}, throttle.FailOpen())
	s.Fail(away)
	w = get(serve(t, c, throttlehttp.Options{}, rule(c)))
	require.Equal(t, "served", w.Body.String())
	require.Empty(t, w.Header().Get("RateLimit"))

	c, s = throttletest.New(t, throttle.Options{}, throttle.FailClosed())
	s.Fail(away)
	w = get(serve(t, c, throttlehttp.Options{}, rule(c)))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "#temporary-reduced-capacity")
	require.NotContains(t, w.Body.String(), "violated-policies")

	c, s = throttletest.New(t, throttle.Options{})
	s.Fail(errReply("ERR unknown command 'GO.THROTTLE'"))
	require.Equal(t, http.StatusInternalServerError, get(serve(t, c, throttlehttp.Options{}, rule(c))).Code)
}

type errReply string

func (e errReply) Error() string { return string(e) }
func (errReply) RedisError()     {}

// A response of one's own replaces the problem, and has the headers.
func TestMiddleware_deniedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		h := serve(t, c, throttlehttp.Options{Denied: func(w http.ResponseWriter, _ *http.Request, r throttle.Result) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.RetryAfter.Round(time.Second))
		}}, throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerMinute(1)), Key: fixed})
		get(h)
		w := get(h)
		require.Equal(t, http.StatusTeapot, w.Code)
		require.Equal(t, "1m0s", w.Body.String())
		require.Equal(t, "60", w.Header().Get("Retry-After"))
	})
}

// The client's address is the connection's, or what trusted proxies say of it. IPv6 addresses count by network.
func TestByIP(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104"), netip.MustParsePrefix("fd00::/8")}
	for _, row := range []struct{ remote, forwarded, untrusting, trusting string }{
		{"192.0.2.1:80", "", "ip:192.0.2.1", "ip:192.0.2.1"},
		{"192.0.2.1:80", "198.51.100.7", "ip:192.0.2.1", "ip:192.0.2.1"},
		{"10.0.0.1:80", "198.51.100.7", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"10.0.0.1:80", "1.2.3.4, 198.51.100.7", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"10.0.0.1:80", "1.2.3.4, 198.51.100.7, 10.9.9.9", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"10.0.0.1:80", "1.2.3.4, nonsense, 10.9.9.9", "ip:10.0.0.1", "ip:10.9.9.9"},
		{"10.0.0.1:80", "", "ip:10.0.0.1", "ip:10.0.0.1"},
		{"10.0.0.1:80", ", 198.51.100.7", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"10.0.0.1:80", "1.2.3.4, ", "ip:10.0.0.1", "ip:10.0.0.1"}, // the proxy did not know the address: the client wrote this
		{"10.0.0.1:80", "198.51.100.7:4711", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"10.0.0.1:80", "[2001:db8:1:2:3::4]:4711", "ip:10.0.0.1", "ip:2001:db8:1:2::/64"},
		{"[2001:db8:1:2:3::4]:80", "", "ip:2001:db8:1:2::/64", "ip:2001:db8:1:2::/64"},
		{"[2001:db8:1:2:ffff::9]:80", "", "ip:2001:db8:1:2::/64", "ip:2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.1]:80", "", "ip:192.0.2.1", "ip:192.0.2.1"},
		{"[::ffff:10.0.0.1]:80", "::ffff:198.51.100.7", "ip:10.0.0.1", "ip:198.51.100.7"},
		{"[fd00::1]:80", "fe80::1%eth0", "ip:fd00::/64", "ip:fe80::/64"},
		{"@", "", "ip:@", "ip:@"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = row.remote
		if row.forwarded != "" {
			r.Header.Set("X-Forwarded-For", row.forwarded)
		}
		require.Equal(t, row.untrusting, throttlehttp.ByIP()(r), row.remote)
		require.Equal(t, row.trusting, throttlehttp.ByIP(proxies...)(r), "%s %s", row.remote, row.forwarded)
		require.Equal(t, strings.Replace(row.untrusting, "1:2::/64", "1::/48", 1), strings.Replace(throttlehttp.ByNetwork(48)(r), "fd00::/48", "fd00::/64", 1))
	}
	// Proxies may add a line of their own instead of a word.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:80"
	r.Header.Add("X-Forwarded-For", "1.2.3.4")
	r.Header.Add("X-Forwarded-For", "198.51.100.7")
	require.Equal(t, "ip:198.51.100.7", throttlehttp.ByIP(proxies...)(r))
	require.Equal(t, "ip:198.51.100.7", throttlehttp.ByIP(netip.MustParsePrefix("10.0.0.0/8"))(r))
	// Text that the client wrote before the address costs nothing, whatever its length.
	r.Header.Set("X-Forwarded-For", strings.Repeat("1.2.3.4,", 100_000)+"198.51.100.7, 10.9.9.9")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, "ip:198.51.100.7", throttlehttp.ByIP(proxies...)(r))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000))
}

func TestByHeader(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Api-Key", "k")
	require.Equal(t, "header:x-api-key:k", throttlehttp.ByHeader("X-Api-Key")(r))
	require.Equal(t, "header:x-api-key:k", throttlehttp.ByHeader("x-api-key")(r))
	r.Header.Set("X-Tenant", "k") // the same value of another header names another limiter
	require.Equal(t, "header:x-tenant:k", throttlehttp.ByHeader("X-Tenant")(r))
}

// New refuses rules that no request could be decided by.
func TestNew_refusesRules(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Options{Logger: slog.New(slog.DiscardHandler)})
	rate := throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerSecond(1))}
	for name, rules := range map[string][]throttlehttp.Rule{
		"no rules":               {},
		"no limiter":             {{}},
		"a refused limiter":      {{Limiter: c.Rate("b", throttle.PerSecond(0))}},
		"a policy beside a rate": {{Limiter: c.Policy("p")}, rate},
		"one limiter twice":      {rate, rate},
		"a policy charged":       {{Limiter: c.Policy("p"), Charge: func(*http.Request, throttlehttp.Response) int64 { return 1 }}},
	} {
		_, err := throttlehttp.New(c, throttlehttp.Options{}, rules...)
		require.Error(t, err, name)
	}
	_, err := throttlehttp.New(nil, throttlehttp.Options{}, rate)
	require.Error(t, err)
}

// A request whose context has ended is not served, and isn't a success in the log.
func TestMiddleware_requestHasEnded(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Options{})
	h := serve(t, c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerSecond(1))})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	cancel()
	for _, ctx := range []context.Context{cancelled, late} {
		w := get(h, func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Empty(t, w.Body.String())
	}
}

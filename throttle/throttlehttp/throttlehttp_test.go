package throttlehttp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// fixed names the same limiter for all requests.
func fixed(*http.Request) string { return "all" }

// must returns what a call returned, which has to have no error.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// serve returns a handler behind the middleware.
func serve(c *throttle.Client, o throttlehttp.Options, rules ...throttlehttp.Rule) http.Handler {
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) }
	return must(throttlehttp.New(c, o, rules...))(http.HandlerFunc(handler))
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

// bubble runs a test with a client of a server in memory. Time passes only while all goroutines wait.
func bubble(t *testing.T, test func(*testing.T, *throttle.Client, *throttletest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t)
		test(t, c, s)
	})
}

// hindered is a server that holds calls with a word back, or refuses them.
type hindered struct {
	throttle.Processor
	word  string
	by    time.Duration
	fails error
}

func (h hindered) Process(ctx context.Context, cmd redis.Cmder) error {
	if slices.Contains(cmd.Args(), any(h.word)) {
		time.Sleep(h.by)
		if h.fails != nil {
			cmd.SetErr(h.fails)
			return h.fails
		}
	}
	return h.Processor.Process(ctx, cmd)
}

// wantHeaders checks headers, which are names and values by turns.
func wantHeaders(t *testing.T, w *httptest.ResponseRecorder, want ...string) {
	t.Helper()
	for i := 0; i < len(want); i += 2 {
		require.Equal(t, want[i+1], w.Header().Get(want[i]), want[i])
	}
}

// A denied request is a 429 that says when to come again, in headers and in the body of the draft's problem type.
func TestMiddleware_denies(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		rule := throttlehttp.Rule{Limiter: c.Rate("burst", throttle.PerMinute(30).Burst(2)), Key: fixed}
		h := serve(c, throttlehttp.Options{}, rule)
		w := get(h)
		require.Equal(t, "served", w.Body.String())
		wantHeaders(t, w, "RateLimit-Policy", `"burst";q=2;w=4`, "RateLimit", `"burst";r=1;t=2`, "Retry-After", "")
		wantHeaders(t, get(h), "RateLimit", `"burst";r=0;t=2`)
		time.Sleep(time.Second)
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		wantHeaders(t, w, "Retry-After", "1", "RateLimit", `"burst";r=0;t=1`, "Content-Type", "application/problem+json", "Cache-Control", "no-store")
		var body map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, map[string]any{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Too many requests",
			"status": 429., "violated-policies": []any{"burst"}}, body)
		rule.Cost = func(*http.Request) int64 { return 0 }
		require.Equal(t, http.StatusOK, get(serve(c, throttlehttp.Options{}, rule)).Code) // it only looks
		h = serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("large", throttle.PerSecond(2)), Cost: func(*http.Request) int64 { return 3 }})
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		wantHeaders(t, w, "Retry-After", "") // it can never be admitted
	})
}

// The older headers have whole seconds until nothing is in use. A response of one's own replaces the problem, and has the
// headers.
func TestMiddleware_otherHeaders(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		rule := throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerMinute(30).Burst(2)), Key: fixed}
		o := throttlehttp.Options{XRateLimit: true, Denied: func(w http.ResponseWriter, _ *http.Request, r throttle.Result) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.RetryAfter.Round(time.Second))
		}}
		get(serve(c, o, rule))
		wantHeaders(t, get(serve(c, o, rule)),
			"X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4", "RateLimit", "", "Retry-After", "")
		w := get(serve(c, o, rule))
		require.Equal(t, http.StatusTeapot, w.Code)
		require.Equal(t, "2s", w.Body.String())
		wantHeaders(t, w, "Retry-After", "2", "X-RateLimit-Reset", "4")
		o.NoHeaders = true
		wantHeaders(t, get(serve(c, o, rule)), "Retry-After", "2", "X-RateLimit-Limit", "", "RateLimit", "")
	})
}

// Several rules admit together or take nothing, and the body names those that deny. A cost below 0 only looks. Without Key
// their keys have one hash tag, so limits of all kinds go together, in a cluster as well.
func TestMiddleware_severalRules(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		day, used := c.Quota("day", 1, 24*time.Hour), c.Quota("used", 3, time.Hour)
		must(used.AllowN(t.Context(), "{ip:192.0.2.1}", 2))
		h := serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("burst", throttle.PerSecond(10))}, throttlehttp.Rule{Limiter: day},
			throttlehttp.Rule{Limiter: used, Cost: func(*http.Request) int64 { return -1 }})
		w := get(h)
		require.Equal(t, http.StatusOK, w.Code)
		require.Zero(t, must(day.Peek(t.Context(), "{ip:192.0.2.1}")).Remaining)
		wantHeaders(t, w, "RateLimit-Policy", `"burst";q=10;w=1, "day";q=1;w=86400, "used";q=3;w=3600`,
			"RateLimit", `"burst";r=9;t=1, "day";r=0;t=86400, "used";r=1;t=3600`)
		w = get(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Contains(t, w.Body.String(), `"violated-policies":["day"]`)
		wantHeaders(t, w, "Retry-After", "86400")
	})
}

// One middleware has the limits of all plans: rates, units, none, and nothing at all. Headers show the request's own limit.
func TestMiddleware_plans(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		plans := map[string]throttle.Limit{"free": throttle.PerMinute(1), "paid": throttle.PerMinute(30), "own": throttle.Unlimited(),
			"late": throttle.Suspended(), "odd": throttle.Units(3)}
		plan := func(r *http.Request) throttle.Limit { return plans[r.Host] }
		h := serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("plan", throttle.PerMinute(1)), Limit: plan,
			Key: func(r *http.Request) string { return r.Host }})
		for _, row := range []struct {
			host          string
			code          int
			policy, state string
		}{
			{"free", 200, `"plan";q=1;w=60`, `"plan";r=0;t=60`}, {"free", 429, `"plan";q=1;w=60`, `"plan";r=0;t=60`},
			{"paid", 200, `"plan";q=30;w=60`, `"plan";r=29;t=2`}, {"own", 200, "", ""}, {"late", 429, "", ""}, {"odd", 500, "", ""},
		} {
			w := get(h, func(r *http.Request) { r.Host = row.host })
			require.Equal(t, row.code, w.Code, row.host)
			wantHeaders(t, w, "RateLimit-Policy", row.policy, "RateLimit", row.state)
		}
		require.EqualValues(t, 3, s.Calls())
		units := func(*http.Request) throttle.Limit { return throttle.Units(2) }
		h = serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Window("w", 9, time.Hour), Limit: units, Key: fixed},
			throttlehttp.Rule{Limiter: c.Quota("q", 9, time.Hour), Key: fixed})
		wantHeaders(t, get(h), "RateLimit-Policy", `"w";q=2;w=3600, "q";q=9;w=3600`)
		h = serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("free", throttle.Unlimited()), Key: fixed},
			throttlehttp.Rule{Limiter: c.Quota("q", 9, time.Hour), Key: fixed})
		wantHeaders(t, get(h), "RateLimit-Policy", `"q";q=9;w=3600`)
	})
}

// A policy of the server, a cost, and a request that is skipped.
func TestMiddleware_policyCostSkip(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		require.NoError(t, s.SetPolicies("api THROTTLE 4 1 60s"))
		h := serve(c, throttlehttp.Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/health" }},
			throttlehttp.Rule{Limiter: c.Policy("api"), Key: fixed, Cost: func(*http.Request) int64 { return 3 }})
		wantHeaders(t, get(h), "RateLimit", `"api";r=2`, "RateLimit-Policy", `"api";q=5`) // the draft requires q
		require.Equal(t, http.StatusTooManyRequests, get(h).Code)
		require.Equal(t, "served", get(h, func(r *http.Request) { r.URL.Path = "/health" }).Body.String())
	})
}

// A response is charged by what it was: the estimate is settled, also past the limit, in one call for all rules, and even
// after a panic.
func TestMiddleware_charge(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		bytes, faults, calls := c.Window("bytes", 1700, time.Hour), c.Quota("faults", 3, time.Hour), c.Rate("calls", throttle.PerHour(100))
		limit := must(throttlehttp.New(c, throttlehttp.Options{},
			throttlehttp.Rule{Limiter: bytes, Key: fixed, Cost: func(*http.Request) int64 { return 100 },
				Charge: func(_ *http.Request, r throttlehttp.Response) int64 { return r.Bytes }},
			throttlehttp.Rule{Limiter: faults, Key: fixed, Charge: func(_ *http.Request, r throttlehttp.Response) int64 {
				if r.Status == http.StatusOK && r.Header.Get("X-Fault") == "" {
					return 0
				}
				return 1
			}},
			throttlehttp.Rule{Limiter: calls, Key: fixed}))
		ctx, cancel := context.WithCancel(t.Context())
		h := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel() // the client goes
			switch r.URL.Path {
			case "/fails":
				w.WriteHeader(http.StatusBadGateway)
				w.WriteHeader(http.StatusOK) // comes too late
			case "/panics":
				panic(http.ErrAbortHandler)
			case "/":
				w.(http.Flusher).Flush()
				w.WriteHeader(http.StatusBadGateway) // comes too late
			case "/buffers":
				require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
			}
			_, _ = w.Write(make([]byte, 300))
			w.WriteHeader(http.StatusBadGateway) // comes too late
			_, _ = w.Write(make([]byte, 400))
			_, _, err := w.(http.Hijacker).Hijack()
			require.ErrorIs(t, err, http.ErrNotSupported) // by the writer of the test
			if r.URL.Path == "/breaks" {
				panic(http.ErrAbortHandler)
			}
		}))
		left := func() (all [3]int64) {
			for i, l := range []throttlehttp.Limiter{bytes, faults, calls} {
				all[i] = must(l.Peek(t.Context(), "all")).Remaining
			}
			return all
		}
		require.True(t, get(h, func(r *http.Request) { *r = *r.WithContext(ctx) }).Flushed)
		require.EqualValues(t, 2, s.Calls())
		require.Equal(t, [...]int64{1000, 3, 99}, left())
		h.ServeHTTP(struct{ http.ResponseWriter }{httptest.NewRecorder()}, httptest.NewRequest(http.MethodHead, "/buffers", nil))
		require.Equal(t, [...]int64{1000, 3, 98}, left()) // no body is sent
		require.Panics(t, func() { get(h, func(r *http.Request) { r.URL.Path = "/breaks" }) })
		require.Equal(t, [...]int64{300, 3, 97}, left())
		require.Panics(t, func() { get(h, func(r *http.Request) { r.URL.Path = "/panics" }) })
		require.Equal(t, [...]int64{300, 2, 96}, left()) // its status is 0
		require.Equal(t, http.StatusBadGateway, get(h, func(r *http.Request) { r.URL.Path = "/fails" }).Code)
		require.Equal(t, [...]int64{0, 1, 95}, left())
		require.Equal(t, http.StatusTooManyRequests, get(h).Code)
		h = serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Quota("outage", 3, time.Hour, throttle.FailOpen()),
			Charge: func(*http.Request, throttlehttp.Response) int64 { return 0 }})
		asked := s.Calls() + 3
		get(h)                                 // and its estimate is settled
		s.Fail(errors.New("no route to host")) // perhaps nobody took the estimate: it is not settled
		get(h)
		require.Equal(t, asked, s.Calls())
	})
}

// A plan without a limit has nothing to settle, and the other rules' estimates are settled beside it.
func TestMiddleware_chargeUnlimited(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		quota := c.Quota("quota", 100, 1000*time.Hour)
		ten := func(*http.Request) int64 { return 10 }
		charges := func(n int64) func(*http.Request, throttlehttp.Response) int64 {
			return func(*http.Request, throttlehttp.Response) int64 { return n }
		}
		limit := must(throttlehttp.New(c, throttlehttp.Options{},
			throttlehttp.Rule{Limiter: c.Rate("plan", throttle.PerMinute(100)), Key: fixed, Cost: ten, Charge: charges(20),
				Limit: func(*http.Request) throttle.Limit { return throttle.Unlimited() }},
			throttlehttp.Rule{Limiter: quota, Key: fixed, Cost: ten, Charge: charges(1)},
			throttlehttp.Rule{Limiter: c.Window("decides", 2, time.Minute), Key: fixed}))
		for took, left := range []int64{99, 98} { // at once, and an hour later
			get(limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Duration(took) * time.Hour) })))
			require.EqualValues(t, left, must(quota.Peek(t.Context(), "all")).Remaining)
		}
	})
}

// Without the server requests go on, unless the settings say otherwise. Without the module they do not. A request whose
// context has ended is not served, and isn't a success in the log.
func TestMiddleware_serverIsAway(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	away := errors.New("no route to host")
	byHand := func(w http.ResponseWriter, _ *http.Request, err error) bool {
		require.ErrorIs(t, err, throttle.ErrUnavailable)
		w.WriteHeader(http.StatusBadGateway)
		return false
	}
	const capacity = `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"The rate limiter is unavailable","status":503}`
	for i, row := range []struct {
		ctx      context.Context
		fails    error
		fallback throttle.Option
		failed   func(http.ResponseWriter, *http.Request, error) bool
		status   int
		body     string
	}{
		{t.Context(), away, nil, byHand, 502, ""},
		{t.Context(), away, throttle.FailClosed(), nil, 503, capacity + "\n"},
		{ended, nil, nil, nil, 503, ""},
		{overdue{t.Context()}, nil, throttle.FailOpen(), nil, 503, ""},
	} {
		c, s := throttletest.New(t, row.fallback)
		s.Fail(row.fails)
		w := get(serve(c, throttlehttp.Options{Failed: row.failed}, throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerSecond(2)), Key: fixed}),
			func(r *http.Request) { *r = *r.WithContext(row.ctx) })
		require.Equal(t, row.status, w.Code, i)
		require.Equal(t, row.body, w.Body.String(), i)
		retry := map[bool]string{true: "1"}[row.body == capacity+"\n"]
		wantHeaders(t, w, "RateLimit", "", "Retry-After", retry)
	}
}

// Whatever keeps the server from deciding, Allow, the middleware and Transport do the same: what the limiter's fallback says, and
// without one a request goes on. The page has the table.
func TestPolicy(t *testing.T) {
	for _, cause := range []error{errors.New("no route to host"), context.DeadlineExceeded, errReply("LOADING soon"), errReply("NOAUTH who?"), errReply("OOM full"),
		errReply("NOPERM no"), errReply("WRONGTYPE a list"), errReply("READONLY a replica"), errReply("ERR unknown command 'GO.THROTTLE'"), errReply("ERR what?")} {
		for want, option := range map[string]throttle.Option{
			"error 200 200 sent sent":            nil,
			"failed-open 200 200 sent sent":      throttle.FailOpen(),
			"failed-closed 503 503 late late":    throttle.FailClosed(),
			"failed-local 200 429 sent late":     throttle.FailLocal(1),
			"failed-local 200 429 sent late\x00": throttle.FailLocal(0.5),
		} {
			synctest.Test(t, func(t *testing.T) {
				c, s := throttletest.New(t, option, throttle.Logger(slog.New(slog.DiscardHandler)))
				s.Fail(cause)
				r, err := c.Rate("a", throttle.PerHour(1)).Allow(t.Context(), "a")
				require.Equal(t, err != nil, throttle.Undecided(err))
				got := cmp.Or(string(r.Source), "error")
				h := serve(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: c.Rate("b", throttle.PerHour(1)), Key: fixed})
				transport := &throttlehttp.Transport{Limiter: c.Rate("c", throttle.PerHour(1)), Base: answering(http.StatusOK, nil)}
				for range 2 {
					got += fmt.Sprint(" ", get(h).Code)
				}
				for range 2 {
					_, err := getWithin(t, transport, time.Second, "http://h.test")
					var late *throttle.DeniedError
					got += map[bool]string{true: " late", false: " sent"}[errors.As(err, &late)]
					require.True(t, err == nil || late != nil, "%v", err)
				}
				require.Equal(t, strings.TrimSuffix(want, "\x00"), got, "%v", cause)
			})
		}
	}
}

// overdue is a context whose deadline has passed, while its timer has not run.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

type errReply string

func (e errReply) Error() string { return string(e) }
func (errReply) RedisError()     {}

// Estimates don't leak: what requests of the last period have cost is in use, whenever they end and whatever they cost.
func TestCharge_leaksNothing(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
			const period, limit = 10 * time.Second, 1_000_000
			type request struct {
				began time.Time
				cost  int64
			}
			var all []request
			r, done := rand.New(rand.NewPCG(seed, 0)), sync.WaitGroup{}
			takes := time.Duration(r.IntN(20_000)) * time.Millisecond // the same for all: the server takes back what is oldest
			estimate := func(*http.Request) int64 { return 1000 }
			charge := func(r *http.Request, _ throttlehttp.Response) int64 { return r.ContentLength }
			rule := throttlehttp.Rule{Limiter: c.Window("w", limit, period), Key: fixed, Cost: estimate, Charge: charge}
			h := must(throttlehttp.New(c, throttlehttp.Options{}, rule))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				time.Sleep(takes)
			}))
			for range 300 {
				time.Sleep(time.Duration(1+r.IntN(200)) * time.Millisecond)
				one := request{time.Now(), r.Int64N(1000)}
				all = append(all, one)
				done.Go(func() { get(h, func(r *http.Request) { r.ContentLength = one.cost }) })
				time.Sleep(time.Microsecond)
				synctest.Wait()
				used, least := limit-must(rule.Limiter.Peek(t.Context(), "all")).Remaining, int64(0)
				for _, q := range all {
					switch age := time.Since(q.began); {
					case age >= period:
					case age < takes: // it has not ended
						least += 1000
					default:
						least += q.cost
					}
				}
				require.GreaterOrEqual(t, used, least, "seed %d", seed)
			}
			done.Wait()
		})
	}
}

// New refuses rules that no request could be decided by, and says why.
func TestNew_refusesRules(t *testing.T) {
	c, _ := throttletest.New(t, throttle.Logger(slog.New(slog.DiscardHandler)))
	rate, policy := throttlehttp.Rule{Limiter: c.Rate("a", throttle.PerSecond(1))}, c.Policy("p")
	charge := func(*http.Request, throttlehttp.Response) int64 { return 1 }
	units := func(*http.Request) throttle.Limit { return throttle.Units(2) }
	for _, row := range []struct {
		client *throttle.Client
		why    string
		rules  []throttlehttp.Rule
	}{
		{nil, "New needs a client", []throttlehttp.Rule{rate}},
		{c, "and a rule", nil},
		{c, "needs a limiter", []throttlehttp.Rule{{}}},
		{c, `the limiter "b"`, []throttlehttp.Rule{{Limiter: c.Rate("b", throttle.PerSecond(0))}}},
		{c, "another rule beside it", []throttlehttp.Rule{{Limiter: policy}, rate}},
		{c, "has two rules", []throttlehttp.Rule{rate, rate}},
		{c, "is a Policy and has Charge", []throttlehttp.Rule{{Limiter: policy, Charge: charge}}},
		{c, "cannot take a per-request limit", []throttlehttp.Rule{{Limiter: policy, Limit: units}}},
		{c, "a share needs a rule before it", []throttlehttp.Rule{{Limiter: c.Window("t", 1, time.Hour), Share: 1}, rate}},
	} {
		_, err := throttlehttp.New(row.client, throttlehttp.Options{}, row.rules...)
		require.ErrorContains(t, err, row.why)
	}
}

// A connection that the handler takes over is charged as such.
func TestMiddleware_hijacked(t *testing.T) {
	c, _ := throttletest.New(t)
	calls, charged := c.Quota("calls", 10, time.Hour), make(chan throttlehttp.Response, 1)
	limit := must(throttlehttp.New(c, throttlehttp.Options{}, throttlehttp.Rule{Limiter: calls, Key: fixed,
		Charge: func(_ *http.Request, r throttlehttp.Response) int64 { charged <- r; return 5 }}))
	server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"))
			_ = conn.Close()
		}
	})))
	defer server.Close()
	defer must(http.Get(server.URL)).Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, (<-charged).Status)
}

// A tenant that is alone leaves as much to others as it has, and they get their share.
func TestMiddleware_tenants(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		shared := throttlehttp.Rule{Limiter: c.Rate("api", throttle.PerHour(4)), Key: fixed}
		tenant := throttlehttp.Rule{Limiter: c.Window("tenant", 100, time.Hour), Share: 1, Key: throttlehttp.ByHeader("X-Tenant")}
		h := serve(c, throttlehttp.Options{}, shared, tenant)
		for i, want := range []int{200, 200, 429, 200} {
			require.Equal(t, want, get(h, func(r *http.Request) { r.Header.Set("X-Tenant", "aaab"[i:i+1]) }).Code, i)
		}
	})
}

package throttlehttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// respond returns an answer with this status and header.
func respond(status int, header map[string]string) *http.Response {
	w := httptest.NewRecorder()
	for name, value := range header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	return w.Result()
}

// answering is another side that has the same answer to all requests.
func answering(status int, header map[string]string) tripper {
	return func(*http.Request) (*http.Response, error) { return respond(status, header), nil }
}

// getWithin sends a request with a deadline.
func getWithin(t *testing.T, transport *throttlehttp.Transport, limit time.Duration, url string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
}

// Requests of two processes go one after another, and both wait when one is asked to. No pause is longer than MaxPause.
func TestTransport(t *testing.T) {
	for name, row := range map[string]struct {
		header map[string]string // of a denial
		pause  time.Duration
	}{
		"seconds":  {map[string]string{"Retry-After": "30"}, 30 * time.Second},
		"too long": {map[string]string{"Retry-After": "9000000000"}, 40 * time.Second},
		"nothing":  {map[string]string{"Retry-After": "soon", "X-Ratelimit-Remaining": "-1", "X-Ratelimit-Reset": "30"}, 0},
		"ms":       {map[string]string{"Retry-After-Ms": "1500.5", "Retry-After": "30"}, 2 * time.Second}, // in whole units,
		"no wait":  {map[string]string{"Retry-After": "0", "RateLimit": `"a";r=0;t=20`}, 0},
		"date":     {map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:32 GMT"}, 31 * time.Second}, // asked at 1 s
		"its date": {map[string]string{"Retry-After": "Sun, 01 Jan 2090 00:00:09 GMT", "Date": "Sun, 01 Jan 2090 00:00:00 GMT"}, 9 * time.Second},
		"fields":   {map[string]string{"RateLimit": `"day";r=5;t=3000, "a\",b";r=0;t=20;pk=:YQ==:,"hour";t=9;r=0`}, 20 * time.Second},
		"broken":   {map[string]string{"RateLimit": `"a";r=0;t=20, "b`}, 0},
		"text":     {map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "0m6.5s"}, 7 * time.Second},
		"epoch":    {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "946684811"}, 10 * time.Second},
		"RFC 3339": {map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "0", "Anthropic-Ratelimit-Requests-Reset": "2000-01-01T01:00:08+01:00"}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := throttletest.NewServer()
				var sent []time.Duration
				began := time.Now()
				gone := func() {} // the caller
				upstream := tripper(func(*http.Request) (*http.Response, error) {
					sent = append(sent, time.Since(began))
					gone()
					if len(sent) == 2 {
						return respond(http.StatusTooManyRequests, row.header), nil
					}
					return respond(http.StatusOK, map[string]string{"Retry-After": "30"}), nil // means nothing
				})
				var fleet []*throttlehttp.Transport
				for range 2 {
					c := must(throttle.New(s))
					defer c.Close()
					fleet = append(fleet, &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1)), Base: upstream, MaxPause: 40 * time.Second,
						Key: func(*http.Request) string { return "all hosts" }})
				}
				for i := range 4 {
					ctx, cancel := context.WithCancel(t.Context())
					gone = cancel
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%d.example.com/", i), nil)
					require.NoError(t, must(fleet[i%2].RoundTrip(r)).Body.Close())
				}
				third := max(time.Second+row.pause, 2*time.Second)
				require.Equal(t, []time.Duration{0, time.Second, third, third + time.Second}, sent)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				body := &closing{Reader: strings.NewReader("x")}
				_, err := fleet[0].RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", body))
				require.ErrorAs(t, err, new(*throttle.DeniedError))
				require.True(t, body.closed)
				require.Len(t, sent, 4)
			})
		})
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// sendAtOnce sends requests to one host, whose name is written in two ways.
func sendAtOnce(transport *throttlehttp.Transport, requests int) {
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			must(transport.RoundTrip(httptest.NewRequest(http.MethodGet, []string{"http://example.com/", "http://EXAMPLE.com/"}[i%2], nil)))
		})
	}
	wg.Wait()
}

// Requests that have their slots already when the other side asks for a pause wait, too, even if a later answer asks for less.
// While the limiters' server doesn't take pauses, another process than the one that was asked doesn't wait.
func TestTransport_slotInPause(t *testing.T) {
	const end = 10400 * time.Millisecond
	for fails, last := range map[string][]time.Duration{"": {end, end + time.Second, end + 2*time.Second}, "RAISE": {3 * time.Second, end, end}} {
		synctest.Test(t, func(t *testing.T) {
			s := hindered{throttletest.NewServer(), fails, 0, io.EOF}
			c := must(throttle.New(s, throttle.Logger(slog.New(slog.DiscardHandler))))
			defer c.Close()
			began := time.Now()
			var mu sync.Mutex
			var sent []time.Duration
			transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1).Burst(2)), Base: tripper(func(*http.Request) (*http.Response, error) {
				mu.Lock()
				sent = append(sent, time.Since(began))
				n := len(sent)
				mu.Unlock()
				if n > 2 {
					return respond(http.StatusOK, nil), nil
				}
				time.Sleep(time.Duration(n) * 400 * time.Millisecond) // meanwhile the others take their slots
				return respond(http.StatusTooManyRequests, map[string]string{"Retry-After": []string{"10", "1"}[n-1]}), nil
			})}
			other := must(throttle.New(s))
			defer other.Close()
			var all sync.WaitGroup
			all.Go(func() {
				time.Sleep(100 * time.Millisecond)
				sendAtOnce(&throttlehttp.Transport{Limiter: other.Rate("api", throttle.PerSecond(1).Burst(2)), Base: transport.Base}, 1)
			})
			sendAtOnce(transport, 4)
			all.Wait()
			require.Equal(t, append([]time.Duration{0, 0}, last...), sent)
		})
	}
}

// While the limiter's server is slow, a host's pause delays no other host's, and no request beyond its deadline.
func TestTransport_slowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(throttle.New(hindered{throttletest.NewServer(), "RAISE", time.Second, nil}, throttle.Timeout(time.Minute)))
		defer c.Close()
		transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1)),
			Base: answering(http.StatusTooManyRequests, map[string]string{"Retry-After": "10"})}
		for deadline, want := range map[time.Duration]time.Duration{time.Hour: time.Second, 500 * time.Millisecond: 500 * time.Millisecond} {
			var all sync.WaitGroup
			for i := range 25 { // each makes two calls
				all.Go(func() {
					began := time.Now()
					must(getWithin(t, transport, deadline, fmt.Sprintf("http://%d.%s.test/", i, deadline)))
					require.Equal(t, want, time.Since(began))
				})
			}
			all.Wait()
		}
		time.Sleep(time.Minute) // until all pauses are known, and over
		paused := (*sync.Map)(reflect.ValueOf(transport).Elem().FieldByName("paused").Addr().UnsafePointer())
		paused.Range(func(key, _ any) bool { t.Errorf("the pause of %s is kept", key); return true })
	})
}

// A request without a slot fails at its deadline, though the limiters' server is slow to take back what they have given.
func TestTransport_slowRefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := must(throttle.New(hindered{s, "MS", 140 * time.Millisecond, nil}, throttle.Timeout(time.Minute)))
		defer c.Close()
		tokens := c.Rate("tokens", throttle.PerHour(1000))
		transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerHour(1)), Key: fixed, Base: answering(http.StatusOK, nil),
			Costs: []throttlehttp.Rule{{Unit: "tokens", Limiter: tokens}}}
		for _, fails := range []bool{false, true} {
			began := time.Now()
			_, err := getWithin(t, transport, 300*time.Millisecond, "http://example.com/")
			require.Equal(t, fails, err != nil)
			require.LessOrEqual(t, time.Since(began), 300*time.Millisecond)
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 999, must(tokens.Peek(t.Context(), fixed(nil))).Remaining)
	})
}

// A request ends at its deadline, or with its connection, whatever the other side does. It stays charged for what it took, or
// for what came of its answer. Meanwhile it holds up no other host, and afterwards no goroutine is left.
func TestTransport_brokenUpstreams(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		half := func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") }
		for name, row := range map[string]struct {
			answer func(net.Conn)
			ends   time.Duration
			tokens int64 // that remain of 1000
		}{
			"silent": {func(net.Conn) {}, 300 * time.Millisecond, 900},
			"stalls": {half, 300 * time.Millisecond, 995}, // one may have drained
			"resets": {func(conn net.Conn) { _ = conn.Close() }, 0, 900},
			"breaks": {func(conn net.Conn) { half(conn); _ = conn.Close() }, 0, 996},
			"slow": {func(conn net.Conn) {
				for _, b := range []byte("HTTP/1.1 200 OK\r\n") {
					time.Sleep(100 * time.Millisecond)
					_, _ = conn.Write([]byte{b})
				}
			}, 300 * time.Millisecond, 900},
		} {
			base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, its := net.Pipe()
				go func() {
					_, _ = http.ReadRequest(bufio.NewReader(its))
					row.answer(its)
				}()
				return ours, nil
			}}
			calls, tokens := c.Rate(name+"-requests", throttle.PerHour(10)), c.Rate(name+"-tokens", throttle.PerHour(1000))
			transport := &throttlehttp.Transport{Limiter: calls, Base: base, Costs: []throttlehttp.Rule{{Unit: "tokens", Limiter: tokens,
				Cost: func(*http.Request) int64 { return 100 }, Charge: func(_ *http.Request, r throttlehttp.Response) int64 { return r.Bytes }}}}
			began := time.Now()
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() {
					w, err := getWithin(t, transport, 300*time.Millisecond, fmt.Sprintf("http://%d.test", i))
					if err == nil {
						_, err = io.Copy(io.Discard, w.Body)
						_ = w.Body.Close()
					}
					require.Error(t, err, name)
					require.Equal(t, row.ends, time.Since(began), name)
				})
			}
			all.Wait()
			time.Sleep(2 * time.Second) // estimates are settled after the deadline
			for i := range 3 {
				left, leftTokens := must(calls.Peek(t.Context(), fmt.Sprint(i, ".test"))), must(tokens.Peek(t.Context(), fmt.Sprint(i, ".test")))
				require.Equal(t, []int64{9, row.tokens}, []int64{left.Remaining, leftTokens.Remaining}, name)
			}
		}
	})
}

// An admitted answer says what others have left, too, of requests and of tokens. If it says that
// nothing is left before a time, all wait for it.
func TestTransport_follows(t *testing.T) {
	for name, row := range map[string]struct {
		header           map[string]string
		requests, tokens int64 // that remain
		wait             time.Duration
	}{
		"nothing":   {nil, 9, 900, 0},
		"OpenAI":    {map[string]string{"X-Ratelimit-Remaining-Requests": "4", "X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "6m0s"}, 4, 0, 0},
		"Anthropic": {map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "3", "Anthropic-Ratelimit-Tokens-Remaining": "70"}, 3, 70, 0},
		"more":      {map[string]string{"X-Ratelimit-Remaining-Requests": "5000", "X-Ratelimit-Remaining-Tokens": "1e3"}, 9, 900, 0},
		"fields":    {map[string]string{"RateLimit-Policy": `"a";q=9, "b";q=9;qu="tokens", "c";q=9;qu="content-bytes"`, "RateLimit": `"a";r=5;t=9, "b";r=20;t=9, "c";r=1;t=9, "d";r=7`}, 5, 20, 0},
		"none left": {map[string]string{"RateLimit": `"a";r=0;t=30`}, 0, 900, 30 * time.Second},
		"cached":    {map[string]string{"RateLimit": `"a";r=0;t=30`, "Age": "5"}, 9, 900, 0},
		"draft 6":   {map[string]string{"RateLimit-Remaining": "2", "RateLimit-Reset": "9"}, 2, 900, 0},
	} {
		bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
			calls, tokens := c.Rate("requests", throttle.PerMinute(10)), c.Rate("tokens", throttle.PerMinute(1000))
			transport := &throttlehttp.Transport{Limiter: calls, Base: answering(http.StatusOK, row.header),
				Costs: []throttlehttp.Rule{{Unit: "tokens", Limiter: tokens, Cost: func(*http.Request) int64 { return 100 }}}}
			sendAtOnce(transport, 1)
			left, leftTokens := must(calls.Peek(t.Context(), "example.com")), must(tokens.Peek(t.Context(), "example.com"))
			require.Equal(t, []int64{row.requests, row.tokens}, []int64{left.Remaining, leftTokens.Remaining}, name)
			// A request whose slot would come after its deadline fails at once, and takes nothing.
			before := time.Now()
			if _, err := getWithin(t, transport, row.wait*9/10, "http://example.com/"); row.wait > 0 {
				require.Zero(t, time.Since(before))
				var denied *throttle.DeniedError
				require.ErrorAs(t, err, &denied)
				require.Equal(t, row.wait, denied.Result.RetryAfter)
				require.ErrorContains(t, err, "no slot for example.com")
			}
		})
	}
}

// A request that is cancelled while it waits takes nothing, even from a budget whose slot has come.
func TestTransport_cancelled(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		tokens := c.Rate("tokens", throttle.PerHour(1000))
		transport := &throttlehttp.Transport{Limiter: c.Rate("requests", throttle.PerMinute(1).Burst(1)), Key: fixed, Base: answering(http.StatusOK, nil),
			Costs: []throttlehttp.Rule{{Unit: "tokens", Limiter: tokens, Cost: func(*http.Request) int64 { return 100 }}}}
		for range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, _ = transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil))
			cancel()
		}
		require.InDelta(t, 900, must(tokens.Peek(t.Context(), fixed(nil))).Remaining, 3)
	})
}

// While this process decides, a request without a slot takes no tokens either. Costs that can't be are said.
func TestTransport_failLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.FailLocal(1))
		s.Fail(io.EOF)
		costs := []throttlehttp.Rule{{Unit: "tokens", Limiter: c.Rate("tokens", throttle.PerMinute(2).Burst(1))}}
		calls := &throttlehttp.Transport{Limiter: c.Rate("calls", throttle.PerHour(1)), Key: fixed, Base: answering(http.StatusOK, nil), Costs: costs}
		began := time.Now()
		for _, want := range []time.Duration{0, 0, 0, 30 * time.Second} { // the second and the third have no slot
			if want > 0 {
				calls.Limiter = c.Rate("free", throttle.Unlimited())
			}
			w, err := getWithin(t, calls, 40*time.Second, "http://a.test/")
			if err == nil {
				require.NoError(t, w.Body.Close())
			}
			require.Equal(t, want, time.Since(began))
		}
		costs[0].Key = fixed
		_, err := getWithin(t, calls, time.Second, "http://a.test/")
		require.ErrorContains(t, err, "without Key")
	})
}

// Tokens are estimated before a request, and settled by its answer. One that gets no slot takes none of any budget.
func TestTransport_budgets(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		tokens, size := c.Rate("tokens", throttle.PerMinute(1000)), 40_000
		transport := &throttlehttp.Transport{Limiter: c.Rate("requests", throttle.Unlimited()),
			Limit: throttlehttp.HostLimits(map[string]throttle.Limit{"Slow.test": throttle.PerMinute(1), "closed.test:81": throttle.Suspended()}, throttle.Unlimited()),
			Key:   fixed,
			Base: tripper(func(*http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				fmt.Fprintf(w, "%*d", size, 150) // what was used, at the end
				return w.Result(), nil
			}),
			Costs: []throttlehttp.Rule{{Unit: "tokens", Limiter: tokens, Cost: func(r *http.Request) int64 { return int64(len(r.URL.Path)) * 100 },
				Charge: func(_ *http.Request, r throttlehttp.Response) (used int64) {
					require.Len(t, r.Tail, min(size, 16<<10))
					require.EqualValues(t, size, r.Bytes)
					_, err := fmt.Sscan(string(r.Tail), &used)
					require.NoError(t, err)
					return used
				}}}}
		send := func(url string, remaining int64) error {
			w, err := getWithin(t, transport, 5*time.Second, url)
			if err == nil {
				_, err = io.Copy(io.Discard, w.Body)
				require.NoError(t, errors.Join(err, w.Body.Close(), w.Body.Close())) // settled once
			}
			require.Equal(t, remaining, must(tokens.Peek(t.Context(), "all")).Remaining, url)
			return err
		}
		require.NoError(t, send("http://slow.test:80/4567", 850))
		size = 1000
		require.ErrorContains(t, send("http://SLOW.test/", 850), "try again in 55s") // in a minute, within 5 s
		require.ErrorContains(t, send("http://closed.test:81/", 850), "waiting won't help, because the limit is 0")
		require.NoError(t, send("http://other.test/", 700))
		require.ErrorContains(t, send("http://other.test/2345678901", 700), "waiting won't help, because the limit is 1000") // 1100 of 1000
	})
}

// In a pause, calls are admitted neither early nor more than the time of one unit late, whatever was in use.
func TestTransport_pause(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		r, plans := rand.New(rand.NewPCG(1, 2)), c.Rate("out", throttle.Unlimited())
		for i := range 500 {
			key, count, period := fmt.Sprint(i), 1+r.Int64N(1000), time.Duration(1+r.Int64N(100_000))*time.Millisecond
			rate := plans.With(throttle.Per(count, period).Burst(1 + r.Int64N(50)))
			must(rate.AllowAtMost(t.Context(), key, 1+r.Int64N(50)))
			s.Advance(time.Duration(r.Int64N(int64(time.Second))))
			pause := time.Duration(1+r.Int64N(60_000)) * time.Millisecond
			transport := &throttlehttp.Transport{Limiter: rate, Key: func(*http.Request) string { return key },
				Base: answering(http.StatusTooManyRequests, map[string]string{"Retry-After-Ms": fmt.Sprint(pause.Milliseconds())})}
			w := must(getWithin(t, transport, time.Hour, "http://example.com/"))
			require.NoError(t, w.Body.Close())
			wait := must(rate.Allow(t.Context(), key)).RetryAfter
			require.GreaterOrEqual(t, wait, pause)
			require.Less(t, wait, pause+period/time.Duration(count)+2*time.Millisecond)
		}
	})
}

// Whatever an answer says, the next request waits at most MaxPause.
func FuzzTransport_hostile(f *testing.F) {
	for _, text := range []string{"", "-1", "1e300", "-1e300", "NaN", "inf", "0x1p-2", "99999999999999999999h", "9223372036854775807", "9999-12-31T23:59:59Z", "1s",
		"Fri, 31 Dec 9999 23:59:59 GMT", "\"a\";r=0;t=99999999999", "\"\\\";r=0", "a;r=-1;t=-1,,", "\xff\x00;r=0", strings.Repeat("a;r=0;t=9,", 400), strings.Repeat(";", 5000)} {
		f.Add(text, "0", "Sat, 01 Jan 0001 00:00:00 GMT", true)
		f.Add("", text, text, false)
	}
	f.Fuzz(func(t *testing.T, wait, remaining, date string, denied bool) {
		bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
			rate := c.Rate("api", throttle.PerSecond(1).Burst(2))
			header, status := map[string]string{"Date": date}, http.StatusOK
			for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Ratelimit-Reset", "X-Ratelimit-Reset-Requests", "Anthropic-Ratelimit-Requests-Reset", "RateLimit"} {
				header[name], header[strings.Replace(name, "Reset", "Remaining", 1)] = wait, remaining
			}
			header["RateLimit-Policy"] = remaining
			if denied {
				status = http.StatusServiceUnavailable
			}
			transport := &throttlehttp.Transport{Limiter: rate, Base: answering(status, header), MaxPause: 7 * time.Second}
			sendAtOnce(transport, 1)
			require.LessOrEqual(t, must(rate.Reserve(t.Context(), "example.com", 1, time.Hour)).Wait, 8*time.Second)
			began := time.Now()
			sendAtOnce(transport, 1)
			require.LessOrEqual(t, time.Since(began), 9*time.Second)
		})
	})
}

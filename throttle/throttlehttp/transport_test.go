package throttlehttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests of two processes go one after another, and both wait when one is asked to: by Retry-After, by a date, or by
// RateLimit. No pause is longer than MaxPause.
func TestTransport(t *testing.T) {
	for name, row := range map[string]struct {
		header, value string
		pause         time.Duration
	}{
		"seconds": {"Retry-After", "30", 30 * time.Second}, "too long": {"Retry-After", "9000000000", 40 * time.Second},
		"date":    {"Retry-After", "Sat, 01 Jan 2000 00:00:32 GMT", 31 * time.Second}, // asked at 1 s
		"fields":  {"RateLimit", `"day";r=5;t=3000, "burst";r=0;t=20, "hour";r=0;t=9`, 20 * time.Second},
		"nothing": {"Retry-After", "soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := throttletest.NewServer()
				var sent []time.Duration
				began := time.Now()
				gone := func() {} // the caller
				upstream := tripper(func(r *http.Request) (*http.Response, error) {
					sent = append(sent, time.Since(began))
					gone()
					w := httptest.NewRecorder()
					w.Header().Set(row.header, row.value) // of an answer that isn't a denial it means nothing
					if len(sent) == 2 {
						w.WriteHeader(http.StatusTooManyRequests)
					}
					return w.Result(), nil
				})
				var fleet []*throttlehttp.Transport
				for range 2 {
					c, err := throttle.New(s)
					require.NoError(t, err)
					defer c.Close()
					fleet = append(fleet, &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1)), Base: upstream, MaxPause: 40 * time.Second,
						Key: func(*http.Request) string { return "all hosts" }})
				}
				for i := range 4 {
					ctx, cancel := context.WithCancel(t.Context())
					gone = cancel
					r, err := fleet[i%2].RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%d.example.com/", i), nil))
					require.NoError(t, err)
					require.NoError(t, r.Body.Close())
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
func sendAtOnce(t *testing.T, transport *throttlehttp.Transport, requests int) {
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, []string{"http://example.com/", "http://EXAMPLE.com/"}[i%2], nil))
			require.NoError(t, err)
		})
	}
	wg.Wait()
}

// Requests that have their slots already when the other side asks for a pause wait, too, in the process that was asked,
// even if a later answer asks for less.
func TestTransport_slotInPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t)
		began := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1).Burst(2)), Base: tripper(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			mu.Lock()
			sent = append(sent, time.Since(began))
			n := len(sent)
			mu.Unlock()
			if n <= 2 {
				time.Sleep(time.Duration(n) * 400 * time.Millisecond) // meanwhile the others take their slots
				w.Header().Set("Retry-After", []string{"10", "1"}[n-1])
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return w.Result(), nil
		})}
		sendAtOnce(t, transport, 4)
		require.Equal(t, []time.Duration{0, 0, 10400 * time.Millisecond, 11400 * time.Millisecond}, sent)
	})
}

// Many answers that ask for pauses make one pause, the longest, however many processes get them. It is at least as long as was
// asked for, and less than the time of one unit longer.
func TestTransport_onePause(t *testing.T) {
	for _, processes := range []int{1, 10, 30} {
		synctest.Test(t, func(t *testing.T) {
			s := throttletest.NewServer()
			var limiter throttle.Rate
			var all sync.WaitGroup
			var answers atomic.Int64
			for range processes {
				c, err := throttle.New(s, throttle.Observe(func(throttle.Event) { runtime.Gosched() })) // others go on meanwhile
				require.NoError(t, err)
				defer c.Close()
				limiter = c.Rate("api", throttle.PerSecond(100))
				transport := &throttlehttp.Transport{Limiter: limiter, Base: tripper(func(*http.Request) (*http.Response, error) {
					time.Sleep(time.Millisecond) // until all are sent
					w := httptest.NewRecorder()
					w.Header().Set("Retry-After", []string{"2", "1"}[answers.Add(1)%2])
					w.WriteHeader(http.StatusServiceUnavailable)
					return w.Result(), nil
				})}
				all.Go(func() { sendAtOnce(t, transport, 60/processes) })
			}
			all.Wait()
			r, err := limiter.Reserve(t.Context(), "example.com", 1, time.Hour)
			require.NoError(t, err)
			require.GreaterOrEqual(t, r.Wait, 2*time.Second, processes)
			require.Less(t, r.Wait, 2*time.Second+10*time.Millisecond, processes)
		})
	}
}

// slow is a server that holds calls for pauses back.
type slow struct {
	throttle.Processor
	by time.Duration
}

func (s slow) Process(ctx context.Context, cmd redis.Cmder) error {
	if slices.Contains(cmd.Args(), any("RAISE")) {
		time.Sleep(s.by)
	}
	return s.Processor.Process(ctx, cmd)
}

// While the limiter's server is slow, a host's pause delays no other host's, and no request beyond its deadline.
func TestTransport_slowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := throttle.New(slow{throttletest.NewServer(), time.Second}, throttle.Timeout(time.Minute))
		require.NoError(t, err)
		defer c.Close()
		transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(1)), Base: tripper(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.Header().Set("Retry-After", "10")
			w.WriteHeader(http.StatusTooManyRequests)
			return w.Result(), nil
		})}
		for deadline, want := range map[time.Duration]time.Duration{time.Hour: time.Second, 500 * time.Millisecond: 500 * time.Millisecond} {
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					_, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%d.%s.test/", i, deadline), nil))
					require.NoError(t, err)
					require.Equal(t, want, time.Since(began))
				})
			}
			all.Wait()
		}
		time.Sleep(time.Minute) // until all pauses are known
	})
}

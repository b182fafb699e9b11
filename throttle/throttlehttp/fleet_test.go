package throttlehttp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// bucket is a true limit: it fills with this many units a second, and holds as many.
type bucket struct{ rate, has float64 }

// upstream is a service with true limits of requests and tokens. Others may use a part of its requests.
type upstream struct {
	mu                       sync.Mutex
	requests, tokens         bucket
	others                   float64 // requests a second
	at                       time.Time
	sent, denied, usedTokens int
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(20 * time.Millisecond) // to it
	cost, _ := strconv.Atoi(r.URL.Path[1:])
	header, status := u.take(float64(cost)), http.StatusOK
	if header["Retry-After"] != "" {
		status = http.StatusTooManyRequests
	}
	time.Sleep(30 * time.Millisecond) // and back
	return respond(status, header), nil
}

func (u *upstream) take(cost float64) map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	since := time.Since(u.at).Seconds()
	u.at = time.Now()
	u.requests.has = min(u.requests.has+(u.requests.rate-u.others)*since, u.requests.rate)
	u.tokens.has = min(u.tokens.has+u.tokens.rate*since, u.tokens.rate)
	header := map[string]string{}
	if u.sent++; u.requests.has < 1 || u.tokens.has < cost {
		u.denied++
		header["Retry-After"] = "1"
	} else {
		u.requests.has, u.tokens.has, u.usedTokens = u.requests.has-1, u.tokens.has-cost, u.usedTokens+int(cost)
	}
	header["X-Ratelimit-Remaining-Requests"] = strconv.Itoa(int(u.requests.has))
	header["X-Ratelimit-Remaining-Tokens"] = strconv.Itoa(int(u.tokens.has))
	return header
}

// far is a server 1 ms away.
type far struct{ throttle.Processor }

func (f far) Process(ctx context.Context, cmd redis.Cmder) error {
	time.Sleep(time.Millisecond)
	return f.Processor.Process(ctx, cmd)
}

// backOff sends a request until it is admitted, as SDKs do: up to 8 s apart, and not before Retry-After.
func backOff(ctx context.Context, random *rand.Rand, send http.RoundTripper, cost int) {
	for wait := 500 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 8*time.Second) {
		w, err := send.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("http://api.test/", cost), nil))
		if err != nil || w.Body.Close() != nil || w.StatusCode == http.StatusOK {
			return
		}
		after, _ := strconv.Atoi(w.Header.Get("Retry-After"))
		jitter := time.Duration((0.75 + 0.25*random.Float64()) * float64(wait))
		select {
		case <-ctx.Done():
		case <-time.After(max(time.Duration(after)*time.Second, jitter)):
		}
	}
}

// A fleet is one row of the table in docs/go.md.
type fleet struct {
	plain    bool    // without a Transport
	limit    int64   // requests a second that the Transport is given
	others   float64 // requests a second of others
	tokens   float64 // the true limit a second. A request uses 800 in the mean
	estimate int64   // of the tokens of a request
}

// run lets processes of 10 workers send all they can for a minute. It returns the percentages of requests that are denied, and
// of the true limit that is used.
func (f fleet) run(t *testing.T, seed uint64, processes int) (denied, used float64) {
	u := &upstream{requests: bucket{50, 50}, tokens: bucket{f.tokens, f.tokens}, others: f.others, at: time.Now()}
	s, ctx, all := throttletest.NewServer(), t.Context(), sync.WaitGroup{}
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Minute, cancel)
	for process := range processes {
		c := must(throttle.New(far{s}))
		defer c.Close()
		var send http.RoundTripper = u
		if !f.plain {
			send = f.transport(c, u)
		}
		for worker := range 10 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(10*process+worker)))
				for ctx.Err() == nil {
					cost := 0
					if f.tokens > 0 {
						cost = 100 + random.IntN(1401)
					}
					backOff(ctx, random, send, cost)
				}
			})
		}
	}
	all.Wait()
	used = float64(u.sent-u.denied) / (60*(50-f.others) + 50)
	if f.tokens > 0 {
		used = float64(u.usedTokens) / (61 * f.tokens)
	}
	return 100 * float64(u.denied) / float64(u.sent), 100 * used
}

// transport returns a process's own.
func (f fleet) transport(c *throttle.Client, u *upstream) *throttlehttp.Transport {
	transport := &throttlehttp.Transport{Limiter: c.Rate("api", throttle.PerSecond(f.limit)), Base: u}
	if f.tokens > 0 {
		transport.Budgets = []throttlehttp.Budget{{Unit: "tokens", Limiter: c.Rate("tokens", throttle.PerSecond(int64(f.tokens))),
			Cost: func(*http.Request) int64 { return f.estimate },
			Charge: func(r *http.Request, _ throttlehttp.Response) int64 {
				cost, _ := strconv.Atoi(r.URL.Path[1:])
				return int64(cost)
			}}}
	}
	return transport
}

// docs/go.md has what fleets get from an upstream, in a table: shares of 429s, and of the true limit that is used. Costs
// and their order are random, so a figure is the mean of three runs. With -short there is only the fleet of one process.
func TestTransport_fleets(t *testing.T) {
	page, sizes := must(os.ReadFile("../../docs/go.md")), []int{1, 10, 100}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for name, f := range map[string]fleet{
		"retries with backoff":                         {plain: true},
		"`Transport`":                                  {limit: 50},
		"`Transport`, limit twice too high":            {limit: 100},
		"retries, others use half":                     {plain: true, others: 25},
		"`Transport`, others use half":                 {limit: 50, others: 25},
		"retries, requests and tokens":                 {plain: true, tokens: 20_000},
		"`Transport`, tokens estimated at their mean":  {limit: 50, tokens: 20_000, estimate: 800},
		"`Transport`, tokens estimated twice too high": {limit: 50, tokens: 20_000, estimate: 1600},
	} {
		row := regexp.MustCompile(`\n\| ` + regexp.QuoteMeta(name) + ` \| (\d+) %, (\d+) % \| (\d+) %, (\d+) % \| (\d+) %, (\d+) % \|\n`).FindSubmatch(page)
		got := "| " + name
		for i, processes := range sizes {
			synctest.Test(t, func(t *testing.T) {
				const runs = 3
				denied, used := 0., 0.
				for seed := range uint64(runs) {
					d, u := f.run(t, seed, processes)
					denied, used = denied+d/runs, used+u/runs
				}
				got += fmt.Sprintf(" | %.0f %%, %.0f %%", denied, used)
				for k, figure := range []float64{denied, used} {
					if row != nil {
						said, _ := strconv.Atoi(string(row[1+2*i+k]))
						assert.LessOrEqual(t, math.Abs(float64(said)-figure), 3., got)
					}
				}
			})
		}
		assert.NotNil(t, row, got)
	}
}

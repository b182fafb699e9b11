package throttlehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gothrottle/throttle"
)

// Transport is an http.RoundTripper for processes that share limiters: each request waits for its slot. One whose slot would
// come after the deadline of its context fails immediately. If the other side answers 429 or 503 and says how long to wait, all
// processes wait that long: Retry-After, retry-after-ms, or until a limit with nothing left resets. After any status they wait if
// RateLimit says r=0;t=30, and if it says how little is left, they go on with no more. RateLimit has that,
// x-ratelimit-remaining-requests with x-ratelimit-reset-requests, anthropic-ratelimit-requests-remaining with its -reset, the
// same for the Unit of a Cost, and without a unit. Pauses don't add up: the one that ends last counts. The answer is returned:
// no request is repeated. While the server doesn't decide, requests are sent immediately, unless the limiters have FailClosed or FailLocal. The
// fields must not change once the Transport is used.
type Transport struct {
	Limiter  throttle.Rate                      // of requests, without a Lockout
	Limit    func(*http.Request) throttle.Limit // the limit of a request, as HostLimits returns it: the Limiter's own if nil
	Costs    []Rule                             // what a request takes in addition, such as a language model's tokens
	Base     http.RoundTripper                  // http.DefaultTransport if nil
	Key      func(*http.Request) string         // the rest of the limiters' keys: if nil the host of the URL, in lower case
	MaxPause time.Duration                      // the longest pause that one answer may ask for: 1 min if 0

	paused sync.Map // map[string]time.Time: by key, when the pause of this process ends
}

// hostOf returns the host of a request, with a port that isn't its scheme's: h.test, H.test. and h.test:80 are one host.
func hostOf(r *http.Request) string {
	host := strings.TrimSuffix(strings.ToLower(r.URL.Hostname()), ".")
	if port := r.URL.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[r.URL.Scheme] {
		return net.JoinHostPort(host, port)
	}
	return host
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *Transport) CloseIdleConnections() {
	if base, ok := cmp.Or(t.Base, http.DefaultTransport).(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// HostLimits returns a function for the Limit of a Transport or its Costs, with a table of limits by host. A host with a
// port in the URL is looked up with it, and then without it.
func HostLimits(limits map[string]throttle.Limit, others throttle.Limit) func(*http.Request) throttle.Limit {
	table := map[string]throttle.Limit{}
	for host, limit := range limits {
		table[strings.ToLower(host)] = limit
	}
	return func(r *http.Request) throttle.Limit {
		own := hostOf(r)
		for _, host := range []string{strings.ToLower(r.URL.Host), own, strings.TrimSuffix(own, ":"+r.URL.Port())} {
			if limit, ok := table[host]; ok {
				return limit
			}
		}
		return others
	}
}

// slot is what a request takes of one limiter.
type slot struct {
	Rule
	rate  throttle.Rate // the Limiter, with the limit of the request
	cost  int64
	res   *throttle.Reservation // nil: nothing
	taken time.Time
}

// RoundTrip waits and sends the request. If no slot comes before the deadline of the context, errors.As finds a
// *throttle.DeniedError, whose RetryAfter says how long the wait would be.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, key := cmp.Or(t.Base, http.DefaultTransport), hostOf(r)
	if t.Key != nil {
		key = t.Key(r)
	}
	slots, err := t.wait(r, key)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("throttlehttp: no slot for %s: %w", key, err)
	}
	sent := time.Now()
	response, err := base.RoundTrip(r)
	if err == nil {
		t.follow(r, key, slots, response, sent)
		meter(r, key, slots, response)
	}
	return response, err
}

// wait takes slots and waits for them. Those that come in a pause were taken before the other side asked for it, and are
// not used.
func (t *Transport) wait(r *http.Request, key string) ([]slot, error) {
	for {
		if err := sleep(r.Context(), t.rest(key)); err != nil {
			return nil, err
		}
		slots, at, err := t.reserve(r, key)
		if err != nil {
			return nil, err
		}
		waits := time.Until(at) > 0
		if err := sleep(r.Context(), time.Until(at)); err != nil {
			giveBack(r.Context(), key, slots) // Cancel would keep units whose slot has come
			return nil, err
		}
		if waits && t.rest(key) <= 0 { // perhaps another process was asked for a pause meanwhile
			if p, err := t.pauses().Peek(r.Context(), key+pauseKey); err == nil {
				t.pauseHere(key, p.ResetAfter)
			}
		}
		if t.rest(key) <= 0 {
			return slots, nil
		}
		giveBack(r.Context(), key, slots[:len(t.Costs)])
	}
}

// reserve takes the slots of a request, that of the Limiter last, and returns when the last of them comes.
func (t *Transport) reserve(r *http.Request, key string) (slots []slot, at time.Time, err error) {
	ctx := r.Context()
	for _, rule := range append(slices.Clip(t.Costs), Rule{Unit: requests, Limiter: t.Limiter, Limit: t.Limit}) {
		s := slot{Rule: rule, cost: 1, taken: time.Now()}
		var ok bool
		if s.rate, ok = rule.Limiter.(throttle.Rate); !ok || rule.Key != nil || rule.Share != 0 {
			err = errors.New("throttlehttp: each of a Transport's Costs must be a Rate, without Key and Share")
			break
		}
		if rule.Limit != nil {
			s.rate = s.rate.With(rule.Limit(r))
		}
		if rule.Cost != nil {
			s.cost = max(rule.Cost(r), 0)
		}
		if s.cost > 0 {
			s.res, err = s.rate.Reserve(ctx, key, s.cost, left(ctx))
			if ctx.Err() == nil && throttle.Undecided(err) { // the request goes on without a slot
				s.res, err = &throttle.Reservation{Result: throttle.Result{Allowed: true, Cause: err}}, nil
			}
			if err == nil && !s.res.Allowed {
				err = &throttle.DeniedError{Result: s.res.Result}
			}
			if err != nil {
				break
			}
			if comes := time.Now().Add(s.res.Wait); comes.After(at) {
				at = comes
			}
		}
		slots = append(slots, s)
	}
	if wait := time.Until(at); err == nil && wait > left(ctx) { // the replies took part of the time
		err = late(wait)
	}
	if err != nil {
		giveBack(ctx, key, slots)
	}
	return slots, at, err
}

// giveBack gives units back that were just taken, or that a pause has left unused. Those that this process decided about
// are in no server: slots that have not come yet are cancelled.
func giveBack(ctx context.Context, key string, slots []slot) {
	for _, s := range slots {
		switch {
		case s.res == nil:
		case s.res.Source == "server":
			notify(ctx, func(ctx context.Context) { _, _ = s.rate.Refund(ctx, key, s.cost) })
		default:
			_ = s.res.Cancel(ctx)
		}
	}
}

// pause begins a pause, or makes it longer. All processes that wait for slots find it under a key of its own.
func (t *Transport) pause(ctx context.Context, key string, limiter throttle.Rate, pause time.Duration) {
	pause = min(pause, cmp.Or(t.MaxPause, time.Minute))
	t.pauseHere(key, pause)
	notify(ctx, func(ctx context.Context) {
		var both sync.WaitGroup
		for key, rate := range map[string]throttle.Rate{key + pauseKey: t.pauses(), key: limiter} {
			both.Go(func() { _, _ = rate.Raise(ctx, key, unitsFor(rate, pause)) })
		}
		both.Wait()
	})
}

// pauseKey is the end of the key of a host's pause.
const pauseKey = "|pause"

// pauses is the limiter of pauses: each unit in use is a ms to wait.
func (t *Transport) pauses() throttle.Rate { return t.Limiter.With(throttle.PerSecond(1000).Burst(1)) }

// unitsFor returns how many units are to be in use so that none is admitted for a time.
func unitsFor(rate throttle.Rate, pause time.Duration) int64 {
	info, err := rate.Info()
	if err != nil || info.Span == 0 {
		return 1
	}
	return int64(min(float64(info.Units-1)+math.Ceil(float64(info.Units)*float64(pause)/float64(info.Span)), 1e12))
}

// pauseHere notes a pause of this process, unless a longer one is known.
func (t *Transport) pauseHere(key string, pause time.Duration) {
	if pause <= 0 {
		return
	}
	end := time.Now().Add(pause)
	for {
		old, found := t.paused.LoadOrStore(key, end)
		if !found || !end.After(old.(time.Time)) || t.paused.CompareAndSwap(key, old, end) {
			break
		}
	}
	time.AfterFunc(pause, func() { t.paused.CompareAndDelete(key, end) })
}

// rest returns how long the pause of this process lasts.
func (t *Transport) rest(key string) time.Duration {
	end, ok := t.paused.Load(key)
	if !ok {
		return 0
	}
	return time.Until(end.(time.Time))
}

// notify makes a call, and returns at the deadline at the latest. The call goes on until all know.
func notify(ctx context.Context, call func(context.Context)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(context.WithoutCancel(ctx))
	}()
	select {
	case <-done:
	case <-time.After(left(ctx)):
	}
}

// left returns the time until the deadline of a context, if there is one, or more than 10 years.
func left(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end), 0)
	}
	return longest
}

// sleep waits, unless the wait would pass the deadline.
func sleep(ctx context.Context, wait time.Duration) error {
	switch {
	case wait <= 0:
		return nil
	case wait > left(ctx):
		return late(wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// late is the error of a wait that would pass the deadline.
func late(wait time.Duration) error {
	return &throttle.DeniedError{Result: throttle.Result{RetryAfter: wait}}
}

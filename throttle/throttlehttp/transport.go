package throttlehttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gothrottle/throttle"
)

// Transport is an http.RoundTripper for processes that share a limiter: each request waits for its slot, until the end
// of its context. If the other side answers 429 or 503, and says by Retry-After or by RateLimit how long to wait, all
// processes wait that long, except requests of other processes that have slots already. The answer is returned: no
// request is repeated. While the server is unavailable requests fail, unless the limiter has FailOpen. The fields must
// not change once the Transport is used.
type Transport struct {
	Limiter  throttle.Rate              // without a Lockout
	Base     http.RoundTripper          // http.DefaultTransport if nil
	Key      func(*http.Request) string // the rest of the limiter's key: the host of the URL, in lower case, if nil
	MaxPause time.Duration              // the longest pause that the other side may ask for: 1 min if 0

	mu     sync.Mutex           // not held during calls
	paused map[string]time.Time // by key, when the pause of this process ends
}

// RoundTrip waits and sends the request. It returns a *throttle.DeniedError at once if no slot comes before the end of the
// context.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, key := t.Base, strings.ToLower(r.URL.Host)
	if base == nil {
		base = http.DefaultTransport
	}
	if t.Key != nil {
		key = t.Key(r)
	}
	if err := t.wait(r.Context(), key); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	response, err := base.RoundTrip(r)
	if err == nil && (response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable) {
		if pause := askedFor(response.Header, time.Now()); pause > 0 {
			t.pause(r.Context(), key, pause)
		}
	}
	return response, err
}

// wait waits for a slot. One in a pause was taken before the other side asked for it, and is not used.
func (t *Transport) wait(ctx context.Context, key string) error {
	for {
		err := t.Limiter.Wait(ctx, key)
		t.mu.Lock()
		rest := time.Until(t.paused[key])
		t.mu.Unlock()
		if err != nil || rest <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
	}
}

// pause begins a pause, or makes it longer. It returns at the request's deadline, and goes on until all know of the pause.
func (t *Transport) pause(ctx context.Context, key string, pause time.Duration) {
	pause = min(pause, cmp.Or(t.MaxPause, time.Minute))
	t.pauseHere(key, time.Now().Add(pause))
	var late <-chan time.Time
	if end, ok := ctx.Deadline(); ok {
		late = time.After(time.Until(end))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = t.Limiter.Pause(context.WithoutCancel(ctx), key, pause)
	}()
	select {
	case <-done:
	case <-late:
	}
}

// pauseHere notes when the pause of this process ends.
func (t *Transport) pauseHere(key string, end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !end.After(t.paused[key]) {
		return
	}
	if t.paused == nil {
		t.paused = map[string]time.Time{}
	}
	t.paused[key] = end
	time.AfterFunc(time.Until(end), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.paused[key].Equal(end) {
			delete(t.paused, key)
		}
	})
}

// askedFor returns how long a response asks to wait; 0 if it does not say.
func askedFor(h http.Header, now time.Time) time.Duration {
	after := h.Get("Retry-After")
	if date, err := http.ParseTime(after); err == nil {
		return max(date.Sub(now), 0)
	}
	if pause, ok := wholeSeconds(after); ok {
		return pause
	}
	longest := time.Duration(0)
	for _, item := range strings.Split(strings.Join(h.Values("RateLimit"), ","), ",") {
		fields := strings.FieldsFunc(item, func(r rune) bool { return r == ';' || r == ' ' })
		if !slices.Contains(fields, "r=0") {
			continue
		}
		for _, field := range fields {
			if text, found := strings.CutPrefix(field, "t="); found {
				pause, _ := wholeSeconds(text)
				longest = max(longest, pause)
			}
		}
	}
	return longest
}

// wholeSeconds reads a number of seconds; one above 68 years is 68 years.
func wholeSeconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return time.Duration(n) * time.Second, err == nil || errors.Is(err, strconv.ErrRange)
}

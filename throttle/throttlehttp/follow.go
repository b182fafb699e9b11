package throttlehttp

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// requests is the unit of a Transport's own Limiter.
const requests = "requests"

// longest is the longest time that a header can say: 31 years.
const longest = 1e9 * time.Second

// follow obeys what an answer says of the limits of the other side: it asks all processes for a pause, or raises the usage of
// limiters to what the other side has left.
func (t *Transport) follow(r *http.Request, key string, slots []slot, response *http.Response, sent time.Time) {
	denied := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
	now := time.Now()
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil { // the clock of the dates in the header
		now = date
	}
	quotas := quotasOf(response.Header, slots, now)
	pause, ok := time.Duration(0), false
	if denied {
		pause, ok = retryAfter(response.Header, now)
	}
	for _, q := range quotas {
		if !ok && q.remaining < q.needed && (denied || q.exact) {
			pause = max(pause, q.wait)
		}
	}
	if pause > 0 {
		t.pause(r.Context(), key, slots[len(slots)-1].rate, pause)
	}
	for i := range slots {
		if n := slots[i].usage(quotas, time.Since(sent)); n > 0 {
			notify(r.Context(), func(ctx context.Context) { _, _ = slots[i].rate.Raise(ctx, key, n) })
		}
	}
}

// usage returns how much of a limiter is in use as the other side sees it, if that is more than the reply of its slot says,
// or 0. Units that have drained since the request was sent are not in use.
func (s *slot) usage(quotas []quota, since time.Duration) (n int64) {
	if s.res == nil || s.res.Source != "server" {
		return 0
	}
	limit, remaining := s.res.Limit, s.res.Remaining
	for _, q := range quotas {
		if q.unit == s.Unit {
			remaining = min(remaining, q.remaining)
		}
	}
	if remaining == s.res.Remaining {
		return 0
	}
	info, _ := s.rate.Info()
	return limit - remaining - int64(float64(limit)*min(float64(since)/float64(info.Span), 1))
}

// quota is what an answer says of one limit of the other side.
type quota struct {
	unit      string
	remaining int64
	needed    int64         // by a request like this one
	wait      time.Duration // until more remains, or until all does; 0: not said
	exact     bool          // wait is until more remains
}

// quotasOf reads what a header says of the units of slots. A cached answer says nothing.
func quotasOf(h http.Header, slots []slot, now time.Time) (quotas []quota) {
	if age := h.Get("Age"); age != "" && age != "0" {
		return nil
	}
	units := map[string]string{}
	for _, item := range itemsOf(h, "RateLimit-Policy") {
		units[item[""]] = strings.Trim(item["qu"], `"`)
	}
	for _, item := range itemsOf(h, "RateLimit") {
		if n, ok := whole(item["r"]); ok {
			wait, _ := until(item["t"], now)
			quotas = append(quotas, quota{cmp.Or(units[item[""]], requests), n, 1, wait, true})
		}
	}
	for i := range slots {
		unit := slots[i].Unit
		pairs := []string{"X-Ratelimit-Remaining-" + unit, "X-Ratelimit-Reset-" + unit,
			"Anthropic-Ratelimit-" + unit + "-Remaining", "Anthropic-Ratelimit-" + unit + "-Reset"}
		if unit == requests {
			pairs = append(pairs, "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit-Remaining", "Ratelimit-Reset")
		}
		for p := 0; p < len(pairs); p += 2 {
			if n, ok := whole(h.Get(pairs[p])); ok {
				wait, _ := until(h.Get(pairs[p+1]), now)
				quotas = append(quotas, quota{unit, n, max(slots[i].cost, 1), wait, false})
			}
		}
	}
	return quotas
}

// retryAfter reads how long a denied request is to wait, if the header says so.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if wait, ok := until(h.Get("Retry-After-Ms")+"ms", now); ok {
		return wait, true
	}
	return until(h.Get("Retry-After"), now)
}

// until reads a time to wait, 0 to longest: seconds, seconds since 1970 (from 1985 on), a text such as 6m0s, an HTTP date, or RFC 3339.
func until(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseFloat(text, 64); (err == nil || n != 0) && !math.IsNaN(n) { // out of range: it is infinite
		if n >= 5e8 { // since 1970
			n -= float64(now.Unix())
		}
		return time.Duration(min(max(n, 0), 1e9) * 1e9), true
	}
	if wait, err := time.ParseDuration(text); err == nil {
		return min(max(wait, 0), longest), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	return min(max(at.Sub(now), 0), longest), err == nil
}

// whole reads a number of units, which isn't negative.
func whole(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// An item of a list in RFC 9651, and one of its parameters.
var (
	listItem  = regexp.MustCompile(`^[ \t]*("(?:[^"\\]|\\.)*"|[^\s,;"=]+)((?:;[ ]*[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s,;"=]+|:[^:]*:))?)*)[ \t]*(?:,|$)`)
	parameter = regexp.MustCompile(`;[ ]*([a-z*][a-z0-9_.*-]*)(?:=("(?:[^"\\]|\\.)*"|:[^:]*:|[^\s,;"]+))?`)
)

// longestList is how many bytes of a list are read.
const longestList = 4096

// itemsOf reads a header that is a list: the parameters of each item, whose name is the parameter "". One that is malformed
// or long says nothing.
func itemsOf(h http.Header, name string) (items []map[string]string) {
	text := strings.Join(h.Values(name), ",")
	if len(text) > longestList {
		return nil
	}
	for text != "" {
		m := listItem.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		item := map[string]string{"": m[1]}
		for _, p := range parameter.FindAllStringSubmatch(m[2], -1) {
			item[p[1]] = p[2]
		}
		items, text = append(items, item), text[len(m[0]):]
	}
	return items
}

// tailBytes is how much of a body's end a Charge of a Cost sees.
const tailBytes = 16 << 10

// metered is the body of an answer that Charges wait for.
type metered struct {
	io.ReadCloser
	ended func(Response)
	mu    sync.Mutex // a body may be closed while it is read
	seen  Response
	done  bool
}

// meter settles the estimates of a request when the body of its answer ends.
func meter(r *http.Request, key string, slots []slot, response *http.Response) {
	charges := false
	for _, s := range slots {
		charges = charges || s.Charge != nil
	}
	if !charges || response.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	response.Body = &metered{ReadCloser: response.Body, seen: Response{Status: response.StatusCode, Header: response.Header},
		ended: func(seen Response) {
			for _, s := range slots {
				s.settle(r, key, seen)
			}
		}}
}

// settle corrects an estimate, unless nobody knows whether it was taken.
func (s *slot) settle(r *http.Request, key string, seen Response) {
	if s.Charge == nil || s.res != nil && s.res.Source != "server" {
		return
	}
	if more := returnable(s.rate, s.Charge(r, seen)-s.cost, time.Since(s.taken), 0); more != 0 {
		notify(r.Context(), func(ctx context.Context) { _, _ = s.rate.Settle(ctx, key, more) })
	}
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.mu.Lock()
	if !m.done {
		m.seen.Bytes += int64(n)
		m.seen.Tail = append(m.seen.Tail, p[max(n-tailBytes, 0):n]...)
		if over := len(m.seen.Tail) - tailBytes; over > tailBytes {
			m.seen.Tail = append(m.seen.Tail[:0], m.seen.Tail[over:]...)
		}
	}
	m.mu.Unlock()
	if err != nil {
		m.end()
	}
	return n, err
}

// Close ends the body, also one that nobody has read.
func (m *metered) Close() error {
	err := m.ReadCloser.Close()
	m.end()
	return err
}

func (m *metered) end() {
	m.mu.Lock()
	seen, done := m.seen, m.done
	m.done = true
	m.mu.Unlock()
	if !done {
		seen.Tail = seen.Tail[max(len(seen.Tail)-tailBytes, 0):]
		m.ended(seen)
	}
}

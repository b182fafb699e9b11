package throttle

import (
	"math"
	"time"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// retryUnavailable is the RetryAfter of calls that are denied because the server is unavailable.
const retryUnavailable = time.Second

// unavailable is what a verb returns when the server did not decide.
func (c *Client) unavailable(key string, l *Limit, n int64, m mode, cause error) (Result, error) {
	r := Result{Limit: l.limit, Cause: cause}
	switch c.o.OnUnavailable {
	case FailOpen:
		r.Allowed, r.Granted, r.Source = true, max(n, 0), FailedOpen
		return r, nil
	case FailClosed:
		r.RetryAfter, r.Source = retryUnavailable, FailedClosed
		return r, nil
	case LimitLocally:
		if l.kind != policyKind && l.kind != slotsKind {
			return c.local.decide(key, l, n, m, cause)
		}
	}
	return Result{Cause: cause}, cause
}

// fallback limits in this process while the server is away, each limiter to a share of its limit. Its state begins anew
// with each process. It knows no policies.
type fallback struct {
	server *memory.Server
	share  float64
}

func newFallback(share float64) *fallback { return &fallback{memory.NewServer(), share} }

// decide asks the limiter in this process.
func (f *fallback) decide(key string, l *Limit, n int64, m mode, cause error) (Result, error) {
	scaled := f.scale(*l)
	cmd := newCall(background, key, &scaled, n, m, 0, 0)
	reply, err := f.server.Do(funnel.Micros(time.Now().UnixMicro()), cmd.words()...)
	if err != nil {
		return Result{Cause: cause}, cause
	}
	ints, _ := leadingInts(reply)
	r, err := readResult(ints, &scaled, n, m)
	r.Source, r.Cause = FromLocal, cause
	if r.RetryAfter == Never && n <= l.limit {
		r.RetryAfter = retryUnavailable // more than the share, but the server may be back by then
	}
	return r, err
}

// scale returns the share of a limit, at least one unit: fewer units at once, and a rate that takes longer for them.
func (f *fallback) scale(l Limit) Limit {
	l.limit = max(int64(float64(l.limit)*f.share), 1)
	if l.kind == rateKind {
		longer := math.Ceil(float64(l.period/time.Millisecond) / f.share)
		l.period = time.Duration(min(longer, float64(maxPeriod/time.Millisecond))) * time.Millisecond
	}
	return l
}

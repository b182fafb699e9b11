package main

import (
	"context"
	"fmt"
	"time"

	"gothrottle/throttle"
)

// limiter is a counter or *throttle.Slots.
type limiter interface{ Info() throttle.Info }

// counter is what the other limiters of package throttle have in common.
type counter interface {
	limiter
	AllowN(ctx context.Context, key string, n int64) (throttle.Result, error)
	Peek(ctx context.Context, key string) (throttle.Result, error)
	Refund(ctx context.Context, key string, n int64) (throttle.Result, error)
	Settle(ctx context.Context, key string, n int64) (throttle.Result, error)
	Part(key string, n int64) throttle.Part
}

// newLimiter returns the limiter of a limit. Those of one algorithm and period share their name, so usage carries over when
// a limit changes.
func newLimiter(c *throttle.Client, m *limit) limiter {
	units, name := max(m.units, 1), string(m.Algorithm)+"."+m.period.String()
	switch m.Algorithm {
	case concurrency: // slots have no With
		hold := or(m.Hold, time.Minute)
		return c.Slots(fmt.Sprintf("slots.%s.%d", hold, units), units, hold)
	case slidingWindow:
		return c.Window(name, 1, m.period).With(units)
	case fixedWindow:
		return c.AlignedQuota(name, 1, m.period, nil).With(units)
	}
	rate := throttle.Per(units, m.period)
	if m.Burst != nil {
		rate = rate.Burst(int64(*m.Burst))
	}
	if m.Lockout != nil {
		rate = rate.Lockout(*m.Lockout)
	}
	return c.Rate(name, throttle.Per(1, m.period)).With(rate)
}

// bind makes the limiters of rules, so that no decision has to look for them.
func (e *engine) bind(r *rules) error {
	for _, m := range r.limits {
		if m.Unlimited {
			continue
		}
		m.bound, m.local = newLimiter(e.remote, m), newLimiter(e.local, m)
		if err := m.bound.Info().Err; err != nil {
			return fmt.Errorf("%s: rule %s: %w", m.place, m.path, err)
		}
	}
	return nil
}

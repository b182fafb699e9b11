package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gothrottle/throttle"
)

// limiters has the limiters of a client. Those of one algorithm and period share their name, so usage carries over when a
// limit changes.
type limiters struct {
	client *throttle.Client
	mu     sync.Mutex
	all    map[spec]any // a counter or *throttle.Slots
	first  map[string]any
}

// spec is what a limiter depends on.
type spec struct {
	algorithm            algorithm
	units, burst         int64
	period, lockout, ttl time.Duration
}

// maxLimiters bounds how many different limits requests may bring: each is remembered.
const maxLimiters = 10_000

var errLimiters = errors.New("more than 10,000 different limits: requests bring too many of their own")

func (s spec) name() string {
	if s.algorithm == concurrency {
		return "slots"
	}
	return string(s.algorithm) + "." + s.period.String()
}

func (m *limit) spec() spec {
	return spec{m.algorithm, max(m.units, 1), m.burst, m.period, m.lockout, m.hold}
}

func newLimiters(c *throttle.Client) *limiters {
	return &limiters{client: c, all: map[spec]any{}, first: map[string]any{}}
}

// get returns the limiter of a spec.
func (l *limiters) get(s spec) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.all[s]; found != nil {
		return found, nil
	}
	if len(l.all) >= maxLimiters {
		return nil, errLimiters
	}
	made, err := l.make(s)
	if err != nil {
		return nil, err
	}
	l.all[s] = made
	if l.first[s.name()] == nil {
		l.first[s.name()] = made
	}
	return made, nil
}

func (l *limiters) make(s spec) (any, error) {
	name := s.name()
	rate := throttle.Per(s.units, s.period)
	if s.burst > 0 {
		rate = rate.Burst(s.burst)
	}
	if s.lockout > 0 {
		rate = rate.Lockout(s.lockout)
	}
	var made interface{ Info() throttle.Info }
	switch first := l.first[name].(type) {
	case *throttle.Rate:
		made = first.With(rate)
	case *throttle.Window:
		made = first.With(s.units)
	case *throttle.Quota:
		made = first.With(s.units)
	default:
		switch s.algorithm {
		case concurrency: // slots have no With
			made = l.client.Slots(fmt.Sprintf("%s.%s.%d", name, s.ttl, s.units), s.units, s.ttl)
		case gcra:
			made = l.client.Rate(name, rate)
		case slidingWindow:
			made = l.client.Window(name, s.units, s.period)
		default:
			made = l.client.AlignedQuota(name, s.units, s.period, nil)
		}
	}
	return made, made.Info().Err
}

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// Bounds of what a page may ask for. They keep the server, the page and the memory small.
const (
	maxLanes    = 4
	maxClauses  = 3
	maxUnits    = 1000
	maxPeriodMS = 3600_000
	minPeriodMS = 100
)

// Spec is one limiter as the page describes it. All times are milliseconds.
type Spec struct {
	Kind     string `json:"kind"`               // throttle, window, quota, all or policy
	Limit    int64  `json:"limit,omitempty"`    // units that fit at once
	Count    int64  `json:"count,omitempty"`    // throttle: units that drain per period
	Period   int64  `json:"period,omitempty"`   // 100 ms to 1 h
	Quantity int64  `json:"quantity,omitempty"` // units of one call; 1 if 0
	Mode     string `json:"mode,omitempty"`     // "", upto, force, and of a throttle reserve or lockout
	Time     int64  `json:"time,omitempty"`     // of reserve and lockout
	Exact    bool   `json:"exact,omitempty"`    // of a window
	Align    bool   `json:"align,omitempty"`    // of a quota: windows end at multiples of the period
	Policy   string `json:"policy,omitempty"`   // the policy's name
	Clauses  []Spec `json:"clauses,omitempty"`  // of all: 1 to 3 limiters without a mode
}

// modes are the options that a kind may have.
var modes = map[string]string{"throttle": " upto force reserve lockout ", "window": " upto force ", "quota": " upto force ", "all": " force "}

func between(name string, n, low, high int64) error {
	if n < low || n > high {
		return fmt.Errorf("%s must be between %d and %d", name, low, high)
	}
	return nil
}

// check says what is wrong with a limiter, in a sentence for the page. It sets the quantity if there is none.
func (s *Spec) check(policies []Policy) error {
	if s.Quantity == 0 {
		s.Quantity = 1
	}
	if err := between("quantity", s.Quantity, 1, maxUnits); err != nil {
		return err
	}
	if s.Mode != "" && !strings.Contains(modes[s.Kind], " "+s.Mode+" ") {
		return fmt.Errorf("%s has no option %q", s.Kind, s.Mode)
	}
	switch s.Kind {
	case "throttle", "window", "quota":
		return s.checkNumbers()
	case "all":
		return s.checkClauses()
	case "policy":
		for _, p := range policies {
			if p.Name == s.Policy {
				return nil
			}
		}
		return fmt.Errorf("there is no policy %q for the playground", s.Policy)
	}
	return fmt.Errorf("there is no limiter of kind %q", s.Kind)
}

func (s *Spec) checkNumbers() error {
	err := between("limit", s.Limit, 1, maxUnits)
	if err == nil {
		err = between("period", s.Period, minPeriodMS, maxPeriodMS)
	}
	if err == nil && s.Kind == "throttle" {
		err = between("count", s.Count, 1, maxUnits)
	}
	if err == nil && (s.Mode == "reserve" || s.Mode == "lockout") {
		err = between("the time of "+s.Mode, s.Time, minPeriodMS, maxPeriodMS)
	}
	return err
}

func (s *Spec) checkClauses() error {
	if err := between("the number of clauses", int64(len(s.Clauses)), 1, maxClauses); err != nil {
		return err
	}
	for i := range s.Clauses {
		c := &s.Clauses[i]
		if c.Kind == "all" || c.Kind == "policy" || c.Mode != "" {
			return fmt.Errorf("a clause is a throttle, a window or a quota without options")
		}
		if err := c.check(nil); err != nil {
			return fmt.Errorf("clause %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Spec) limit() throttle.Limit {
	period := time.Duration(s.Period) * time.Millisecond
	switch s.Kind {
	case "throttle":
		l := throttle.Per(s.Count, period).Burst(s.Limit)
		if s.Mode == "lockout" {
			l = l.Lockout(time.Duration(s.Time) * time.Millisecond)
		}
		return l
	case "window":
		l := throttle.Window(s.Limit, period)
		if s.Exact {
			l = l.Exact()
		}
		return l
	case "quota":
		l := throttle.Quota(s.Limit, period)
		if s.Align {
			l = l.Align(0)
		}
		return l
	}
	return throttle.Policy()
}

// takes are the parts of GO.ALL. Cells share the first key; every window and quota has a key of its own.
func (s *Spec) takes(key string, peek bool) []throttle.Take {
	takes := make([]throttle.Take, len(s.Clauses))
	for i := range s.Clauses {
		c := &s.Clauses[i]
		takes[i] = throttle.Take{Key: clauseKey(key, c.Kind, i), Limit: c.limit(), N: c.Quantity}
		if peek {
			takes[i].N = 0
		}
	}
	return takes
}

func clauseKey(key, kind string, i int) string {
	if kind == "throttle" {
		return key
	}
	return fmt.Sprintf("%s:%s%d", key, kind, i+1)
}

// keys are the keys that calls of this limiter may write.
func (s *Spec) keys(key string) []string {
	keys := []string{key}
	for i := range s.Clauses {
		keys = append(keys, clauseKey(key, s.Clauses[i].Kind, i))
	}
	return keys
}

// ask makes one call. The reply is read from the wire, so the result is not needed.
func (s *Spec) ask(ctx context.Context, c *throttle.Client, key string) (err error) {
	switch {
	case s.Kind == "all" && s.Mode == "force":
		_, err = c.SettleAll(ctx, s.takes(key, false)...)
	case s.Kind == "all":
		_, err = c.All(ctx, s.takes(key, false)...)
	case s.Mode == "upto":
		_, err = c.AllowAtMost(ctx, key, s.limit(), s.Quantity)
	case s.Mode == "force":
		_, err = c.Settle(ctx, key, s.limit(), s.Quantity)
	case s.Mode == "reserve":
		_, err = c.Reserve(ctx, key, s.limit(), s.Quantity, time.Duration(s.Time)*time.Millisecond)
	case s.Quantity == 1:
		_, err = c.Allow(ctx, key, s.limit())
	default:
		_, err = c.AllowN(ctx, key, s.limit(), s.Quantity)
	}
	return err
}

// words returns the command that ask sends, without sending it.
func (s *Spec) words(key string) []string {
	w := &wire{to: nowhere{}}
	client, err := throttle.New(w, throttle.Options{NoCoalescing: true})
	if err != nil {
		return nil
	}
	_ = s.ask(context.Background(), client, key) // there is no reply to read
	return w.words
}

// nowhere is a throttle.Processor without a server.
type nowhere struct{}

func (nowhere) Process(context.Context, redis.Cmder) error { return nil }

// peek looks without taking.
func (s *Spec) peek(ctx context.Context, c *throttle.Client, key string) (err error) {
	if s.Kind == "all" {
		_, err = c.All(ctx, s.takes(key, true)...)
		return err
	}
	_, err = c.Peek(ctx, key, s.limit())
	return err
}

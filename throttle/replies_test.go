package throttle

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"gothrottle/throttle/internal/wire"
)

// A reply that lacks a part is an error, and admits nothing: neither a panic nor a guess at what is missing.
func TestReplies_tooShort(t *testing.T) {
	ctx, inner := context.Background(), []any{int64(0), int64(10), int64(9), int64(-1), int64(1000)}
	rate := PerSecond(10)
	verbs := map[string]struct {
		full []any
		call func(*Client) (Result, error)
	}{
		"Allow":  {inner, func(c *Client) (Result, error) { return c.Rate("k", rate).Allow(ctx, "") }},
		"AllowN": {inner, func(c *Client) (Result, error) { return c.Rate("k", rate).AllowN(ctx, "", 3) }},
		"Peek":   {inner, func(c *Client) (Result, error) { return c.Rate("k", rate).Peek(ctx, "") }},
		"Settle": {inner, func(c *Client) (Result, error) { return c.Rate("k", rate).Settle(ctx, "", 3) }},
		"Policy": {append(inner, int64(0), inner), func(c *Client) (Result, error) { return c.Policy("k").Allow(ctx, "a") }},
		"AtMost": {append(inner, int64(3)), func(c *Client) (Result, error) { return c.Rate("k", rate).AllowAtMost(ctx, "", 3) }},
		"Refund": {append(inner, int64(-3)), func(c *Client) (Result, error) { return c.Rate("k", rate).Refund(ctx, "", 3) }},
		"Reserve": {append(inner, int64(0)), func(c *Client) (Result, error) {
			r, err := c.Rate("k", rate).Reserve(ctx, "", 3, 0)
			return r.Result, err
		}},
		"Lease": {append(inner, int64(0)), func(c *Client) (Result, error) {
			lease, err := c.Slots("k", 10, time.Minute).Lease(ctx, "")
			if lease == nil {
				return Result{}, err
			}
			lease.end(nil) // nothing renews it
			return lease.Result, err
		}},
		"All": {append(inner, int64(0), inner), func(c *Client) (Result, error) {
			r, err := c.All(ctx, c.Rate("k", rate).Part("", 1))
			return r.Result, err
		}},
		"AllSlots": {append(inner, int64(0), append(inner, int64(0))), func(c *Client) (Result, error) {
			r, err := c.All(ctx, c.Slots("k", 10, time.Minute).Part("", "h"))
			return r.Result, err
		}},
	}
	for name, verb := range verbs {
		for n := range len(verb.full) {
			if name == "Policy" && n >= 5 {
				continue // what follows is not read
			}
			wantNoDecision(t, fmt.Sprintf("%s: %d of %d", name, n, len(verb.full)), ints(verb.full[:n:n]), verb.call)
		}
		c := open(t, ints(verb.full))
		r, err := verb.call(c)
		assert.NoError(t, err, name)
		assert.True(t, r.Allowed, name)
	}
	all := verbs["AllSlots"]
	for _, index := range []int64{-1, 1, 1 << 40} {
		wantNoDecision(t, "an index of no clause", ints(append(inner, index, append(inner, int64(0)))), all.call)
	}
	for _, each := range []any{nil, int64(1), "text", inner, []any{}, []any{"0", "1", "2", "3", "4", "5"}} {
		wantNoDecision(t, fmt.Sprint("a clause of ", each), ints(append(inner, int64(0), each)), all.call)
	}
}

func wantNoDecision(t *testing.T, what string, server Processor, call func(*Client) (Result, error)) {
	t.Helper()
	for _, o := range []Option{nil, Budget(5, time.Second), DenyCache(true), FailOpen()} {
		c := open(t, server, o)
		for range 2 {
			r, err := call(c)
			assert.ErrorIs(t, err, wire.ErrReply, what)
			assert.Equal(t, Result{}, r, what)
		}
	}
}

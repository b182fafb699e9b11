package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrDenied: Wait was not admitted, because no slot comes in time.
var ErrDenied = errors.New("throttle: no slot comes in time")

// Reservation is a slot in the future.
type Reservation struct {
	Result Result        // Allowed: there is a slot
	Wait   time.Duration // how long after the reply the slot comes; 0: at once
	client *Client
	key    string
	limit  Limit
	n      int64
	at     time.Time // when the slot comes

	mu        sync.Mutex
	cancelled bool
	cancelErr error // of the first Cancel
}

// Reserve asks for n units that fit within maxWait: 0 to 100 years, in whole milliseconds, rounded down. The units are
// taken now; the caller acts after Wait. Callers get slots one after another, by the server's clock. All callers of the key
// should reserve, with the same limit. Reserve needs a rate without Lockout. When the server is unavailable the slot is at
// once or never, as Options say.
func (c *Client) Reserve(ctx context.Context, key string, limit Limit, n int64, maxWait time.Duration) (*Reservation, error) {
	began := time.Now()
	r, err := c.reserve(ctx, key, limit, n, maxWait)
	if c.o.Observe != nil {
		c.o.Observe(Event{"Reserve", key, limit, r.Result, err, time.Since(began)})
	}
	return r, err
}

func (c *Client) reserve(ctx context.Context, key string, limit Limit, n int64, maxWait time.Duration) (*Reservation, error) {
	res := &Reservation{client: c, key: key, limit: limit, n: n}
	maxWait = maxWait.Truncate(time.Millisecond)
	switch err := limit.check(); {
	case err != nil:
		return res, err
	case limit.kind != rateKind || limit.lockout != 0:
		return res, params("Reserve of %s", limit)
	case n < 1 || n > maxUnits || maxWait < 0 || maxWait > maxPeriod:
		return res, params("Reserve of %d units within %s", n, maxWait)
	case c.closed.Load():
		return res, ErrClosed
	}
	less, err := c.o.Budget.less(&limit)
	if err != nil {
		return res, err
	}
	cmd := newCall(c.limit(ctx), c.o.KeyPrefix+key, &limit, n, reserve, less, maxWait)
	err = c.do(&cmd.within, c.o.KeyPrefix+key, cmd)
	if errors.Is(err, ErrUnavailable) {
		res.Result, err = c.unavailable(c.o.KeyPrefix+key, &limit, n, take, err)
		res.at = time.Now()
		return res, err
	}
	if err != nil {
		return res, err
	}
	ints := cmd.Val()
	if res.Result, err = readResult(ints, &limit, n, reserve); err != nil {
		return res, err
	}
	if res.Result.Allowed {
		res.Wait = millis(ints[5])
		res.at = time.Now().Add(res.Wait)
	}
	return res, nil
}

// Cancel gives the units back, if the slot has not come yet; after it nothing. It is sent once, and later calls
// return the same error: why the units were perhaps not given back.
func (r *Reservation) Cancel(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled {
		return r.cancelErr
	}
	if !r.Result.Allowed || r.Result.Source != FromServer || !time.Now().Before(r.at) {
		return nil
	}
	r.cancelled = true
	less, _ := r.client.o.Budget.less(&r.limit)
	_, r.cancelErr = r.client.send(ctx, r.client.o.KeyPrefix+r.key, &r.limit, -r.n, upTo, less)
	return r.cancelErr
}

// Wait reserves one unit and returns when its slot comes. It returns ErrDenied if the slot would come after the end of
// the context, without waiting. If the context is cancelled meanwhile, the slot is cancelled. If the context has ended
// before the call, Wait returns the context's error, whatever OnUnavailable says.
func (c *Client) Wait(ctx context.Context, key string, limit Limit) error {
	return c.WaitN(ctx, key, limit, 1)
}

// WaitN is Wait for n units.
func (c *Client) WaitN(ctx context.Context, key string, limit Limit, n int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	maxWait := maxPeriod
	end, ends := ctx.Deadline()
	if ends {
		maxWait = min(max(time.Until(end), 0), maxPeriod)
	}
	r, err := c.Reserve(ctx, key, limit, n, maxWait)
	switch {
	case err != nil:
		return err
	case !r.Result.Allowed && r.Result.Cause != nil:
		return r.Result.Cause
	case r.Result.RetryAfter == Never:
		return fmt.Errorf("%w: %d units never fit into %s", ErrDenied, n, limit)
	case !r.Result.Allowed:
		return fmt.Errorf("%w: the next one comes in %s", ErrDenied, r.Result.RetryAfter)
	case r.Wait == 0:
		return nil
	case ends && r.at.After(end): // the reply took part of the time
		return errors.Join(fmt.Errorf("%w: it would come after the end of the context", ErrDenied), r.Cancel(ctx))
	}
	timer := time.NewTimer(time.Until(r.at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("throttle: %w", ctx.Err()), r.Cancel(context.WithoutCancel(ctx)))
	}
}

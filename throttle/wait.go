package throttle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gothrottle/throttle/internal/wire"
)

// Reservation is a slot in the future.
type Reservation struct {
	Result               // Allowed: there is a slot
	Wait   time.Duration // how long after the reply the slot comes; 0: at once
	l      limiter
	key    string
	n      int64
	at     time.Time // when the slot comes; zero if there is none

	cancelled ending
	err       error // of Cancel
}

// Reserve asks for n units that fit within maxWait: 0 to 100 years, in whole milliseconds. The units are taken now; the
// caller acts after Wait. All callers of the key should reserve, with the same limit, without a Lockout.
func (a Rate) Reserve(ctx context.Context, key string, n int64, maxWait time.Duration) (res *Reservation, err error) {
	l := a.l
	res = &Reservation{key: key, n: n, cancelled: newEnding()}
	began := time.Now()
	defer func() { l.observe("Reserve", key, began, &res.Result, &err) }()
	if err := l.check(ctx, "Reserve", n, take); err != nil {
		return res, err
	}
	if maxWait < 0 || maxWait > maxPeriod {
		return res, params("maxWait must be 0 to 100 years, not %s", maxWait)
	}
	if l.answer != asks {
		res.Result = l.fixed(n)
		return res, nil
	}
	ask := func(l limiter) (r Result, err error) {
		var wait int64
		r, wait, err = l.do(ctx, key, n, reserve, maxWait)
		res.l, res.Wait = l, wire.Millis(wait)
		return r, err
	}
	r, err := ask(l)
	if err != nil {
		r, err = l.otherwise("Reserve", n, err, ask)
	}
	if res.Result = r; !r.Allowed {
		res.Wait = 0
		return res, err
	}
	res.at = time.Now().Add(res.Wait)
	return res, err
}

// Cancel gives the units back if the slot has not come yet; afterwards it does nothing. It is sent once, even if ctx
// has ended. After an error, the units may still be taken.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.at.IsZero() {
		return nil
	}
	r.cancelled.once(func() {
		if time.Now().Before(r.at) {
			_, r.err = r.l.send(context.WithoutCancel(ctx), r.key, -r.n, upTo)
		}
	})
	return r.err
}

// Wait reserves one unit and returns when its slot comes. It returns a *DeniedError at once if that is after the
// context ends. If the context is cancelled meanwhile, the slot is given back.
func (r Rate) Wait(ctx context.Context, key string) error { return r.WaitN(ctx, key, 1) }

// WaitN is Wait for n units.
func (r Rate) WaitN(ctx context.Context, key string, n int64) error {
	maxWait := maxPeriod
	end, ends := ctx.Deadline()
	if ends {
		maxWait = min(max(time.Until(end), 0), maxPeriod)
	}
	res, err := r.Reserve(ctx, key, n, maxWait)
	switch {
	case err != nil:
		return err
	case !res.Allowed:
		return &DeniedError{res.Result}
	case res.Wait == 0:
		return nil
	case ends && res.at.After(end): // the reply took part of the time
		denied := res.Result
		denied.Allowed, denied.Granted, denied.RetryAfter = false, 0, res.Wait
		return errors.Join(&DeniedError{denied}, res.Cancel(ctx))
	}
	if !sleep(time.Until(res.at), ctx.Done()) {
		return errors.Join(fmt.Errorf("throttle: %w", ctx.Err()), res.Cancel(ctx))
	}
	return nil
}

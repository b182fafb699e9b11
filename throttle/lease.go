package throttle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"gothrottle/throttle/internal/wire"
)

// Lease is a slot that this process holds. The slot is renewed in the background until Close.
type Lease struct {
	Result         // of the call that took the slot
	holder  string // its id on the server, unique to this lease
	l       limiter
	key     string
	ctx     context.Context
	end     context.CancelCauseFunc
	token   atomic.Int64
	renewed chan struct{} // closed when nothing renews any more
	closed  ending
	err     error // of Close
}

// Part returns a part of All: a slot of this key, for a holder the caller names (1 to 512 bytes). Nothing renews it.
func (s Slots) Part(key, holder string) Part { return Part{l: s.l, key: key, n: 1, holder: holder} }

// Lease takes a slot, or returns a *DeniedError at once if none is free. The slot is renewed in the background until
// Close, which you must call; the end of ctx does not end it. With FailOpen, a Lease taken while the server is
// unavailable holds nothing.
func (s Slots) Lease(ctx context.Context, key string) (*Lease, error) {
	return s.acquire(ctx, key, false)
}

// Acquire is a Lease that waits for a free slot until ctx ends. Callers don't queue: chance decides. It returns any
// error but a denial at once. With FailClosed, it waits while the server is unavailable.
func (s Slots) Acquire(ctx context.Context, key string) (*Lease, error) {
	return s.acquire(ctx, key, true)
}

func (s Slots) acquire(ctx context.Context, key string, waits bool) (lease *Lease, err error) {
	lost := false // a reply, with which a slot may have come
	holder := rand.Text()
	defer func() { s.l.forget(lease, key, holder, lost) }()
	for {
		lease, err = s.lease(ctx, key, holder)
		lost = lost || mayHold(err)
		var denied *DeniedError
		if !waits || !errors.As(err, &denied) || denied.RetryAfter == Never {
			return lease, err
		}
		pause := min(max(s.l.period/20, 10*time.Millisecond), time.Second)
		pause = min(pause/2+mathrand.N(pause), max(denied.RetryAfter, time.Millisecond))
		if !sleep(pause, ctx.Done()) {
			return nil, fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// lease asks once.
func (s Slots) lease(ctx context.Context, key, holder string) (*Lease, error) {
	began := time.Now()
	lease, r, err := s.l.lease(ctx, key, holder)
	s.l.observe("Lease", key, began, &r, &err)
	if err == nil && lease == nil {
		err = &DeniedError{r}
	}
	return lease, err
}

// mayHold reports whether a call that failed may have taken a slot.
func mayHold(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// forget gives back a slot that a call without a reply may have taken, unless a lease holds it.
func (l limiter) forget(lease *Lease, key, holder string, lost bool) {
	if lease == nil && lost || lease != nil && lease.Cause != nil {
		l.c.conn.Start(func() {
			_, _ = l.c.conn.Do(context.Background(), &l.wait, nil, "GO.RELEASE", l.prefix+key, holder)
		})
	}
}

func (l limiter) lease(ctx context.Context, key, holder string) (lease *Lease, r Result, err error) {
	if err := l.check(ctx, "Lease", 1, take); err != nil {
		return nil, Result{}, err
	}
	lease = &Lease{key: key, holder: holder, renewed: make(chan struct{}), closed: newEnding()}
	sent := time.Now()
	ask := func(l limiter) (Result, error) {
		lease.l = l
		return l.slot(ctx, key, holder, take)
	}
	if r, err = ask(l); err != nil {
		r, err = l.otherwise("Lease", 1, err, ask)
	}
	if err != nil || !r.Allowed {
		return nil, r, err
	}
	lease.Result = r
	lease.ctx, lease.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if r.Source == fromServer || r.Source == failedLocal {
		go lease.renew(sent)
	} else { // the lease holds nothing
		close(lease.renewed)
	}
	l.c.leases.Store(lease, nil)
	if l.c.closed.Load() { // in between
		return nil, Result{}, errors.Join(wire.ErrClosed, lease.Close())
	}
	return lease, r, nil
}

// slot takes or renews a slot, or looks.
func (l *limiter) slot(ctx context.Context, key, holder string, m mode) (r Result, err error) {
	if l.answer != asks {
		return l.fixed(1), nil
	}
	words := l.appendLimit([]any{l.kind.command(m), l.prefix + key})
	reply, err := l.c.conn.Do(ctx, &l.wait, nil, append(words, holder, "MS")...)
	if err != nil {
		return Result{}, err
	}
	r, _, err = l.result(reply, 1, m)
	return r, err
}

// Take takes or renews a slot for a holder that the caller names (1 to 512 bytes). Nothing renews it afterwards. If you
// expect Renewed and it is false, the slot had been lost.
func (s Slots) Take(ctx context.Context, key, holder string) (Result, error) {
	return s.take(ctx, "Take", key, holder, take)
}

// Peek returns what Take would return and changes nothing. Allowed: the holder has a slot or would get one. Remaining
// is how many slots are free now.
func (s Slots) Peek(ctx context.Context, key, holder string) (Result, error) {
	return s.take(ctx, "Peek", key, holder, peek)
}

func (s Slots) take(ctx context.Context, v string, key, holder string, m mode) (r Result, err error) {
	defer s.l.observe(v, key, time.Now(), &r, &err)
	if err := s.l.checkHolder(ctx, v, holder); err != nil {
		return Result{}, err
	}
	ask := func(l limiter) (Result, error) { return l.slot(ctx, key, holder, m) }
	if r, err = ask(s.l); err != nil {
		r, err = s.l.otherwise(v, 1, err, ask)
	}
	if m == peek && r.Source == fromServer {
		if r.Granted = 0; r.Allowed && !r.Renewed { // the reply counts the slot that Take would take
			r.Remaining++
		}
	}
	return r, err
}

// Release gives back a holder's slot and reports whether it was held.
func (s Slots) Release(ctx context.Context, key, holder string) (held bool, err error) {
	var r Result
	defer s.l.observe("Release", key, time.Now(), &r, &err)
	if err := s.l.checkHolder(ctx, "Release", holder); err != nil || s.l.answer != asks {
		return false, err
	}
	reply, err := s.l.c.conn.Do(ctx, &s.l.wait, nil, "GO.RELEASE", s.l.prefix+key, holder)
	if r.Allowed = err == nil; r.Allowed {
		r.Source = fromServer
	}
	return reply == int64(1), err
}

func (l *limiter) checkHolder(ctx context.Context, v string, holder string) error {
	if holder == "" {
		return params("%s needs a holder", v)
	}
	return l.check(ctx, v, 1, take)
}

// Context returns a context that ends when the lease is closed, or lost (the cause is then ErrLost). It has the values
// of the context passed to Lease but does not end with it.
func (l *Lease) Context() context.Context { return l.ctx }

// Token returns a fencing token: storage that refuses smaller ones than it has seen refuses holders that have lost
// their slots. It is the server's time in µs when the slot was taken. Call it before the work; it asks the server once, and
// needs the permission +zmscore and a client that reads from masters. ErrLost: the server knows no such slot.
//
// The next holder's token is larger, but for two exceptions: with Script, if the server's clock was set back; and after a
// restart or failover that lost the slot, if the new clock is behind by more than the time between the two grants.
func (l *Lease) Token(ctx context.Context) (int64, error) {
	if lost := context.Cause(l.ctx); errors.Is(lost, ErrLost) { // though it may have asked before
		return 0, lost
	} else if token := l.token.Load(); token != 0 {
		return token, nil
	}
	reply, err := l.l.c.conn.Do(ctx, &l.l.wait, nil, "ZMSCORE", l.l.prefix+l.key, "\x02"+l.holder)
	scores, _ := reply.([]any)
	switch {
	case err != nil:
		return 0, err
	case len(scores) != 1:
		return 0, wire.ErrReply
	case scores[0] == nil:
		return 0, fmt.Errorf("%w: the server knows no such slot", ErrLost)
	}
	lapses, err := strconv.ParseFloat(fmt.Sprintf("%v", scores[0]), 64) // below 0; it is a string in RESP2
	if err != nil {
		return 0, wire.ErrReply
	}
	l.token.CompareAndSwap(0, -int64(lapses)-l.l.period.Microseconds())
	if lost := context.Cause(l.ctx); errors.Is(lost, ErrLost) { // meanwhile
		return 0, lost
	}
	return l.token.Load(), nil
}

// renew renews the slot until Close, or until it is lost. It was taken by a command sent at this time.
func (l *Lease) renew(sent time.Time) {
	defer close(l.renewed)
	ttl := l.l.period
	pause := ttl / 3
	for {
		// Without a reply the slot is held for one ttl after the last command that got one.
		lapses := sent.Add(ttl)
		if !sleep(min(pause, time.Until(lapses)), l.ctx.Done()) {
			return
		}
		now := time.Now()
		if !now.Before(lapses) {
			l.end(fmt.Errorf("%w: it could not be renewed within %s", ErrLost, ttl))
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), lapses)
		r, err := l.l.slot(ctx, l.key, l.holder, take)
		cancel()
		switch {
		case err == nil && r.Renewed:
			sent, pause = now, ttl/3
		case err == nil: // the renewal may have taken it again
			l.end(fmt.Errorf("%w: it had lapsed, or was released", ErrLost))
			_ = l.release()
			return
		case errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			pause = ttl / 10
		default:
			l.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

// sleep waits, and reports whether the time has passed before stop was closed.
func sleep(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// Close releases the slot and ends the lease's context. An error says why the slot wasn't released: it lapses by
// itself. Close of a nil Lease does nothing.
func (l *Lease) Close() error {
	if l == nil {
		return nil
	}
	l.closed.once(func() {
		l.end(context.Canceled)
		<-l.renewed
		l.l.c.leases.Delete(l)
		if l.Source == fromLimit { // it holds nothing
			return
		}
		err := l.release()
		if !errors.Is(context.Cause(l.ctx), ErrLost) {
			l.err = err
		}
	})
	return l.err
}

func (l *Lease) release() error {
	_, err := l.l.c.conn.Do(context.WithoutCancel(l.ctx), &l.l.wait, nil, "GO.RELEASE", l.l.prefix+l.key, l.holder)
	return err
}

// closeLeases closes all leases and holds. A later one is closed by the call that takes it.
func (c *Client) closeLeases() error {
	var calls []func() error
	c.leases.Range(func(l, _ any) bool {
		calls = append(calls, l.(io.Closer).Close)
		return true
	})
	return wire.AtOnce(calls)
}

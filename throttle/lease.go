package throttle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrLost is the cause of a lease's context that ended because the slot was lost.
var ErrLost = errors.New("throttle: the lease was lost")

// maxHolder is how many bytes the name of a holder has at most.
const maxHolder = 512

// Lease is a slot that this process holds. The slot is renewed by itself until Close.
type Lease struct {
	client  *Client
	key     string
	slots   Limit
	holder  string
	ctx     context.Context
	lose    context.CancelCauseFunc
	stop    chan struct{}
	stopped chan struct{} // closed when nothing renews any more
	once    sync.Once
	err     error
}

// Lease asks for one of some Slots. If none is free, or the server is unavailable, the Lease is nil, and the Result or
// the error tells why. The slot is renewed every third of its time, and every tenth while the server is away. With
// FailOpen, and no server, the Lease holds nothing. Close must be called. If the reply of the server is lost, a slot may
// stay taken until it lapses.
func (c *Client) Lease(ctx context.Context, key string, slots Limit) (*Lease, Result, error) {
	began := time.Now()
	lease, r, err := c.lease(ctx, key, slots)
	if c.o.Observe != nil {
		c.o.Observe(Event{"Lease", key, slots, r, err, time.Since(began)})
	}
	return lease, r, err
}

func (c *Client) lease(ctx context.Context, key string, slots Limit) (*Lease, Result, error) {
	if err := slots.check(); err != nil {
		return nil, Result{}, err
	}
	if slots.kind != slotsKind {
		return nil, Result{}, params("Lease of %s", slots)
	}
	if c.closed.Load() {
		return nil, Result{}, ErrClosed
	}
	l := &Lease{client: c, key: c.o.KeyPrefix + key, slots: slots, holder: rand.Text(),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	sent := time.Now()
	r, _, err := l.ask(ctx)
	if errors.Is(err, ErrUnavailable) {
		r, err = c.unavailable(l.key, &slots, 1, take, err)
	}
	if err != nil || !r.Allowed {
		return nil, r, err
	}
	l.ctx, l.lose = context.WithCancelCause(ctx)
	adopted := c.adopt(l)
	if !adopted || r.Source != FromServer { // the client was closed meanwhile, or the lease holds nothing
		close(l.stopped)
	} else {
		go l.renew(sent)
	}
	if !adopted {
		return nil, Result{}, errors.Join(ErrClosed, l.Close())
	}
	return l, r, nil
}

// adopt notes a lease, so that Close of the client closes it. It reports whether the client is open.
func (c *Client) adopt(l *Lease) bool {
	c.leasesMu.Lock()
	defer c.leasesMu.Unlock()
	if c.leases == nil {
		return false
	}
	c.leases[l] = true
	return true
}

// ask takes or renews the slot. It reports whether the slot was held before.
func (l *Lease) ask(ctx context.Context) (r Result, renewed bool, err error) {
	cmd := newLease(l.client.limit(ctx), l.key, &l.slots, l.holder)
	if err := l.client.do(&cmd.within, l.key, cmd); err != nil {
		return Result{}, false, err
	}
	ints := cmd.Val()
	r, err = readResult(ints, &l.slots, 1, take)
	return r, err == nil && ints[5] == 1, err
}

// Context ends when the lease is lost, with the cause ErrLost, when it is closed, or with the context that Lease was
// called with.
func (l *Lease) Context() context.Context { return l.ctx }

// renew renews the slot until Close, or until it is lost. It was taken by a command sent at this time.
func (l *Lease) renew(sent time.Time) {
	defer close(l.stopped)
	ttl := l.slots.period
	pause := ttl / 3
	for {
		// Without a reply the slot is held for one ttl after the last command that got one.
		lapses := sent.Add(ttl)
		if !l.sleep(min(pause, time.Until(lapses))) {
			return
		}
		now := time.Now()
		if !now.Before(lapses) {
			l.lose(fmt.Errorf("%w: it could not be renewed within %s", ErrLost, ttl))
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), lapses)
		_, renewed, err := l.ask(ctx)
		cancel()
		switch {
		case err == nil && renewed:
			sent, pause = now, ttl/3
		case err == nil:
			l.lose(fmt.Errorf("%w: it had lapsed, or was released", ErrLost))
			return
		case errors.Is(err, ErrUnavailable):
			pause = ttl / 10
		default:
			l.lose(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

// sleep waits, and reports whether the lease is still wanted.
func (l *Lease) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.stop:
		return false
	case <-timer.C:
		return true
	}
}

// Close releases the slot and ends the lease's context. The error tells why the slot was not released; then it lapses by
// itself.
func (l *Lease) Close() error {
	l.once.Do(func() {
		close(l.stop)
		<-l.stopped
		l.client.forget(l)
		lost := errors.Is(context.Cause(l.ctx), ErrLost)
		l.lose(context.Canceled)
		limited := l.client.limit(context.Background())
		cmd := newGeneralCall(&limited, []any{"GO.RELEASE", l.key, l.holder})
		if err := l.client.do(&limited, l.key, cmd); err != nil && !lost {
			l.err = err
		}
	})
	return l.err
}

// forget drops a lease that is closed.
func (c *Client) forget(l *Lease) {
	c.leasesMu.Lock()
	defer c.leasesMu.Unlock()
	delete(c.leases, l)
}

// closeLeases closes all leases. Later ones are not renewed.
func (c *Client) closeLeases() (err error) {
	c.leasesMu.Lock()
	leases := c.leases
	c.leases = nil
	c.leasesMu.Unlock()
	var wg sync.WaitGroup
	errs := make(chan error, len(leases))
	for l := range leases {
		wg.Go(func() { errs <- l.Close() })
	}
	wg.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

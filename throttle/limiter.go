package throttle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Allower is what most services need of a limiter: Rate, Window, Quota and Policy are Allowers. If you accept this
// type, your tests need neither a server nor this package's clients.
type Allower interface {
	Allow(ctx context.Context, key string) (Result, error)
}

// limiter is one name with its limit and options.
type limiter struct {
	c      *Client
	name   string
	prefix string // of its keys
	bounds
	settings
	err       error // why every verb is refused
	words     []any // of its command: name, place of the key, numbers
	lastWords []any // after the quantity and its mode
	latest    atomic.Pointer[context.Context]
	keys      sync.Map // of each key that is remembered a *state
	merges    bool     // concurrent calls of Allow
	spends    bool     // units of a budget
	unseen    bool     // nobody observes how

	home *limiter // the first one of the name, where limits of With meet

	mu      sync.Mutex
	sweeper *time.Timer         // if a sweep comes
	busy    map[string][]*group // the keys with a command of merge under way, and who waits for the next one
	lone    bool                // there is one more such key. An entry of busy would be the lone caller's largest cost
	loner   string              // that key
}

// Rate is a limiter that drains at a rate.
type Rate struct{ counts }

// Window is a limiter over a sliding window.
type Window struct{ counts }

// Quota is a limiter over fixed windows.
type Quota struct{ counts }

// Policy is a limiter whose limits are in the server's configuration. Nothing can be given back to it, settled, or
// combined by All.
type Policy struct{ asks }

// Slots is a limiter of concurrent holders.
type Slots struct{ named }

// named has what all limiters have.
type named struct{ l *limiter }

// asks has the verbs of all limiters but Slots.
type asks struct{ named }

// counts has the verbs of limiters whose units can be given back.
type counts struct{ asks }

// Info describes a limiter. Only the server knows the limits of a Policy: Units, Span and Next are 0.
type Info struct {
	Name    string
	Err     error         // why the limiter is refused, or nil
	Units   int64         // that fit at once
	Span    time.Duration // how long a full limiter takes to be empty, if nobody takes more
	Next    time.Duration // the longest time until a limiter in use has one more unit: of a Window or a Quota the period
	Lockout time.Duration // of a Rate, or 0
}

// Info describes the limiter.
func (a *named) Info() Info {
	l := a.l
	info := Info{l.name, l.err, l.bounds.units, l.drain(l.bounds.units), l.drain(1), l.lockout}
	if l.kind == slotsKind { // they come back when their holders release them
		info.Next = 0
	}
	return info
}

// Allow asks for one unit.
func (a *asks) Allow(ctx context.Context, key string) (r Result, err error) {
	if a.l.unseen && a.l.spend(a.l.find(key), &r) {
		return r, nil
	}
	return a.l.verb(ctx, verbAllow, key, 1, take)
}

// AllowN asks for n units, all or none; n is at least 1.
func (a *asks) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, verbAllow, key, n, take)
}

// Peek returns the state of a key and changes nothing. It also works when the server's memory is full. Allowed is false
// while nothing remains, unless the SHADOW of a Policy admits. RetryAfter is known only while more is in use than the
// limit, or during a lockout.
func (a *asks) Peek(ctx context.Context, key string) (Result, error) {
	return a.l.verb(ctx, verbPeek, key, 0, peek)
}

// Reset deletes the key: nothing is in use afterwards, a lockout has ended, and leases are lost at their next renewal. The
// user of the server needs the permission for DEL. Other processes with a DenyCache notice it late.
func (a *named) Reset(ctx context.Context, key string) error { return a.l.reset(ctx, key) }

// AllowAtMost takes n units, or as many as are left. Allowed is false only if none is left. Granted is how many were
// taken. A Rate must have no Lockout.
func (a *counts) AllowAtMost(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, verbAllowAtMost, key, n, upTo)
}

// Refund gives n units back, but no more than are in use; n is at least 1. Granted is minus the number of units given
// back.
func (a *counts) Refund(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, verbRefund, key, -n, upTo)
}

// Settle corrects an estimate: a positive difference is charged, past the limit if need be, and a negative one is given
// back. If the estimate has drained meanwhile, the units given back are those of later calls. Settle is sent once: if it
// fails, it may have settled.
func (a *counts) Settle(ctx context.Context, key string, difference int64) (Result, error) {
	m := force
	if difference < 0 {
		m = upTo
	}
	return a.l.verb(ctx, verbSettle, key, difference, m)
}

// Part returns a part of All: n units of this key. 0 peeks. A negative number gives units back, at most those in use;
// Granted is then n.
func (a *counts) Part(key string, n int64) Part { return Part{l: a.l, key: key, n: n} }

// With returns the limiter of the same name and options with another limit, for limits that differ by user or change at
// run time. Both limits count at the same keys: docs/commands.md says how usage carries over to a changed rate. The Client
// remembers the last 1,000 limits of a name. Close and Reset do not reach the budgets and denials of older ones.
func (r *Rate) With(limit Limit) *Rate {
	return &Rate{counts{asks{named{r.l.with(limit.limit)}}}}
}

// With returns the limiter of the same name, period and options with another limit: see Rate.With.
func (w *Window) With(limit int64) *Window {
	b := w.l.bounds
	b.units = limit
	return &Window{counts{asks{named{w.l.with(b)}}}}
}

// With returns the limiter of the same name, period and options with another limit: see Rate.With.
func (q *Quota) With(limit int64) *Quota {
	b := q.l.bounds
	b.units = limit
	return &Quota{counts{asks{named{q.l.with(b)}}}}
}

// with returns the limiter of the same name and options with other bounds.
func (l *limiter) with(b bounds) *limiter {
	if l.err != nil {
		return l
	}
	if err := b.check(); err != nil {
		return &limiter{c: l.c, name: l.name, bounds: b, settings: l.settings, err: err}
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.addLimiter(l.name, b, l.settings)
}

// verb decides, applies the fallback and calls the observer.
func (l *limiter) verb(ctx context.Context, v Verb, key string, n int64, m mode) (r Result, err error) {
	if l.c.o.Observe != nil {
		defer l.observe(v, key, time.Now(), &r, &err)
	}
	err = l.decide(ctx, v, key, n, m, &r)
	return r, err
}

// observe calls the observer of a verb that began at this time and has ended.
func (l *limiter) observe(v Verb, key string, began time.Time, r *Result, err *error) {
	if l.c.o.Observe != nil {
		l.c.o.Observe(Event{v, l.name, key, *r, *err, time.Since(began)})
	}
}

// decide sets r, which is the zero Result.
func (l *limiter) decide(ctx context.Context, v Verb, key string, n int64, m mode, r *Result) (err error) {
	if err := l.check(v, n, m); err != nil {
		return err
	}
	if m == take && l.remembers() && l.recall(key, n, r) {
		return nil
	}
	if m == take && n == 1 && l.merges {
		err = l.merge(ctx, key, r)
	} else {
		*r, err = l.send(ctx, l.clock(), key, n, m)
	}
	if err != nil {
		*r, err = l.failed(v, n, err)
	}
	if m == peek && l.kind != policyKind {
		r.Allowed = r.Allowed && r.Remaining > 0
	}
	return err
}

// remembers reports whether the limiter decides by what it knows of a key.
func (l *limiter) remembers() bool { return l.denies || l.spends }

// clock returns the time of the client's clock, if the limiter needs it.
func (l *limiter) clock() time.Duration {
	if !l.remembers() {
		return 0
	}
	return l.c.now()
}

// recall decides by what this process knows of a key.
func (l *limiter) recall(key string, n int64, r *Result) bool {
	s := l.find(key)
	if s == nil {
		return false
	}
	if n == 1 && l.spend(s, r) {
		return true
	}
	d := s.denial.Load()
	return d != nil && d.repeat(n, l.c.now(), r)
}

// check refuses a limiter or a quantity that the verb cannot have.
func (l *limiter) check(v Verb, n int64, m mode) error {
	if v == verbRefund { // as the caller gave it
		n = -n
	}
	switch {
	case l.err != nil:
		return l.err
	case l.c.closed.Load():
		return ErrClosed
	case n > maxUnits+1 || n < -maxUnits-1 || n < 1 && (m == take || v == verbAllowAtMost || v == verbRefund):
		return params("%s does not take %d units", v, n)
	case l.lockout != 0 && slices.Contains(withoutLockout, v) || l.kind == slotsKind && v == verbSettleAll:
		return params("%s does not work with %s", v, l.bounds)
	}
	return nil
}

// withoutLockout has the verbs that do not work with a lockout.
var withoutLockout = []Verb{verbAllowAtMost, verbReserve, verbAll, verbSettleAll}

// failed is what a verb returns after an error. If the server did not decide, decisions have a fallback.
func (l *limiter) failed(v Verb, n int64, cause error) (Result, error) {
	r := Result{Limit: l.bounds.units, Source: l.fallback, Cause: cause}
	switch {
	case !errors.Is(cause, ErrUnavailable):
		return Result{}, cause
	case l.fallback == "" || v == verbPeek || v == verbRefund || v == verbSettle || v == verbSettleAll:
		return Result{Cause: cause}, cause
	case l.fallback == FailedOpen:
		r.Allowed, r.Granted = true, n
	default:
		r.RetryAfter = time.Second
	}
	return r, nil
}

// reset deletes a key, and what this process knows of it.
func (l *limiter) reset(ctx context.Context, key string) (err error) {
	var r Result
	defer l.observe(verbReset, key, time.Now(), &r, &err)
	if err := l.check(verbReset, 1, peek); err != nil {
		return err
	}
	if _, err = l.general(ctx, "DEL", l.prefix+key); err == nil {
		r.Allowed, r.Source = true, FromServer
	}
	for _, other := range l.c.allLimiters() {
		if s := other.find(key); s != nil && other.name == l.name {
			s.denial.Store(nil)
			s.drop()
		}
	}
	return err
}

// send asks the server within the time limit. It is sent at this time of the client's clock, if the limiter remembers.
func (l *limiter) send(ctx context.Context, sent time.Duration, key string, n int64, m mode) (r Result, err error) {
	if l.kind == policyKind { // its reply holds more than integers
		r, _, err = l.doGeneral(ctx, n, m, policyKind.command(m), l.prefix+key, n, "MS")
	} else {
		r, _, err = l.do(l.newCall(ctx, key, n, m, 0), n, m)
	}
	if err == nil {
		l.noteDenial(key, n, m, sent, &r)
	}
	return r, err
}

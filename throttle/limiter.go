package throttle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gothrottle/throttle/internal/local"
	"gothrottle/throttle/internal/wire"
)

// limiter is what Rate, Window, Quota, Policy and Slots have in common: a family of keys, and the limit of their calls.
type limiter struct {
	*family
	bounds
}

// family is one name with its options, and what this process knows of its keys. All limits of the name meet there.
type family struct {
	c      *Client
	name   string
	prefix string // of its keys
	settings
	err    error // why every verb is refused
	wait   wire.Timeout
	inner  *family // decides in this process; nil: no limiter has FailLocal
	keys   local.Keys[bounds]
	calls  local.Merge[spot, decision]
	unseen bool // nobody observes how units of a budget are spent

	mu      sync.Mutex
	sweeper *time.Timer // if a sweep comes
}

// Rate is a limiter that drains at a rate.
type Rate struct{ counts }

// Window is a limiter over a sliding window, or over fixed ones: see Client.Quota.
type Window struct{ counts }

// Policy is a limiter whose limits are in the server's configuration. It takes no refunds or settlements, and All
// cannot combine it.
type Policy struct{ verbs }

// Slots is a limiter of concurrent holders.
type Slots struct{ named }

// named has what all limiters have.
type named struct{ l limiter }

// verbs has the verbs of all limiters but Slots.
type verbs struct{ named }

// counts has the verbs of limiters whose units can be given back.
type counts struct{ verbs }

// withLimit is a limiter with the verbs of its units.
func withLimit(l limiter) counts { return counts{verbs{named{l}}} }

// another is the limiter with another limit.
func (l limiter) another(limit Limit) limiter { return limiter{l.family, l.bounds.with(limit)} }

// With returns the limiter of the same name and options with another rate, for limits that differ by user or change at
// run time. It costs no search, lock or memory. Both count under the same keys: docs/commands.md
// says how usage carries over to a changed rate.
func (r Rate) With(limit Limit) Rate { return Rate{withLimit(r.l.another(limit))} }

// With returns the limiter of the same name, period and options with other Units: see Rate.With.
func (w Window) With(limit Limit) Window { return Window{withLimit(w.l.another(limit))} }

// With returns the limiter of the same name, ttl and options with other Units: see Rate.With.
func (s Slots) With(limit Limit) Slots { return Slots{named{s.l.another(limit)}} }

// Info describes a limiter. Only the server knows the limits of a Policy: Units and Span are 0.
type Info struct {
	Name  string
	Units int64         // how many fit together
	Span  time.Duration // how long a full limiter takes to drain, if nobody takes more
}

// Info describes the limiter. The error says why its verbs refuse to work. Units is 1<<63 - 1 if the limiter is
// Unlimited and 0 if it is Suspended; neither has a Span.
func (a named) Info() (info Info, err error) {
	l := a.l
	if l.family != nil {
		info.Name = l.name
	}
	if err := l.broken(); err != nil {
		return info, err
	}
	if l.answer != asks {
		info.Units = l.fixed(0).Limit
		return info, nil
	}
	info.Units, info.Span = l.bounds.units, l.drain()
	return info, nil
}

// broken returns why no verb works, or nil.
func (l *limiter) broken() error {
	switch {
	case l.family == nil:
		return params("a limiter must be made by a Client")
	case l.err != nil:
		return l.err
	}
	return l.bounds.check()
}

// Allow asks for one unit.
func (a verbs) Allow(ctx context.Context, key string) (r Result, err error) {
	if f := a.l.family; f != nil && f.unseen && ctx.Err() == nil && a.l.spend(key, &r) {
		return r, nil
	}
	return a.l.verb(ctx, "Allow", key, 1, take)
}

// AllowN asks for n units, all or none; n is at least 1.
func (a verbs) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, "Allow", key, n, take)
}

// Peek returns the state of a key and changes nothing. It also works when the server's memory is full. Allowed is false
// while nothing remains, unless a Policy's SHADOW admits. RetryAfter is known only while more is in use than the limit,
// or during a lockout.
func (a verbs) Peek(ctx context.Context, key string) (Result, error) {
	return a.l.verb(ctx, "Peek", key, 0, peek)
}

// Reset deletes the key: nothing is in use afterwards, a lockout has ended, and leases are lost at their next renewal.
// The server's user needs permission for DEL. Other processes with a DenyCache notice the reset late.
func (a named) Reset(ctx context.Context, key string) error { return a.l.reset(ctx, key) }

// AllowAtMost takes n units, or as many as are left. Allowed is false only if none is left. Granted is how many were
// taken. A Rate must have no Lockout.
func (a counts) AllowAtMost(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, "AllowAtMost", key, n, upTo)
}

// Refund gives n units back, but no more than are in use; n is at least 1. Granted is minus the units given back.
func (a counts) Refund(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, "Refund", key, -n, upTo)
}

// Settle corrects an estimate: a positive difference is charged, past the limit if need be, and a negative one is given
// back. If the estimate has drained by then, the units given back are later calls'. Settle is sent once: if it fails, it
// may have settled.
func (a counts) Settle(ctx context.Context, key string, difference int64) (Result, error) {
	m := force
	if difference < 0 {
		m = upTo
	}
	return a.l.verb(ctx, "Settle", key, difference, m)
}

// Raise makes a key's usage at least n units, past the limit if need be: with n = limit - remaining it follows a limit
// elsewhere, for callers with the same limit. Granted is the units added. Raise is sent once and has no fallback.
func (a counts) Raise(ctx context.Context, key string, n int64) (Result, error) {
	return a.l.verb(ctx, "Raise", key, n, raise)
}

// Part returns a part of All: n units of this key. 0 peeks. A negative number gives units back, at most those in use;
// Granted is then n.
func (a counts) Part(key string, n int64) Part { return Part{l: a.l, key: key, n: n} }

// verb decides, applies the fallback and calls the observer.
func (l *limiter) verb(ctx context.Context, v string, key string, n int64, m mode) (r Result, err error) {
	if l.observes() {
		defer l.observe(v, key, time.Now(), &r, &err)
	}
	if err := l.check(ctx, v, n, m); err != nil {
		return Result{}, err
	}
	switch {
	case l.answer != asks:
		return l.fixed(n), nil
	case m == take && l.remembers() && l.recall(key, n, &r):
		return r, nil
	case m == take && n == 1 && l.bounds.merges():
		err = l.merge(ctx, key, &r)
	default:
		r, err = l.send(ctx, key, n, m)
	}
	if err != nil {
		if v == "Settle" && n > 0 {
			l.c.conn.Unsettled(&l.wait, err)
		}
		r, err = l.otherwise(v, n, err, func(here limiter) (Result, error) { return here.verb(ctx, v, key, n, m) })
	}
	if m == peek && l.kind != policyKind {
		r.Allowed = r.Allowed && r.Remaining > 0
	}
	return r, err
}

func (f *family) observes() bool { return f != nil && f.c.o.observe != nil }

// observe calls the observer of a verb that began at this time and has ended.
func (f *family) observe(v string, key string, began time.Time, r *Result, err *error) {
	if f.observes() {
		f.c.o.observe(Event{v, f.name, key, *r, *err, time.Since(began)})
	}
}

// spends reports whether Allow spends units of a budget.
func (l *limiter) spends() bool { return l.settings.units > 0 && l.bounds.merges() }

// remembers reports whether the limiter decides by what it knows of a key.
func (l *limiter) remembers() bool { return l.denies || l.spends() }

// check refuses a limiter or a quantity that the verb cannot have, and a call whose context has ended.
func (l *limiter) check(ctx context.Context, v string, n int64, m mode) error {
	if v == "Refund" { // as the caller gave it
		n = -n
	}
	if err := l.broken(); err != nil {
		if l.family != nil && l.err == nil { // a limit that comes from data; the log has the others
			l.c.conn.Refused(l.name, err)
		}
		return err
	}
	switch ended := ctx.Err(); {
	case l.c.closed.Load():
		return wire.ErrClosed
	case ended != nil:
		return fmt.Errorf("throttle: %w", ended)
	case n > maxUnits+1 || n < -maxUnits-1 || n < 1 && (m == take || v == "AllowAtMost" || v == "Refund"):
		return params("%s does not take %d units", v, n)
	case l.lockout != 0 && slices.Contains(withoutLockout, v) || l.kind == slotsKind && v == "SettleAll":
		return params("%s does not work with %s", v, l.bounds)
	}
	return nil
}

var (
	withoutLockout  = []string{"AllowAtMost", "Reserve"}                         // verbs that do not work with a lockout
	withoutFallback = []string{"Peek", "Refund", "Settle", "Raise", "SettleAll"} // verbs that decide nothing
)

// failed is what a verb returns after an error. If the server did not decide, decisions have a fallback.
func (l *limiter) failed(v string, n int64, cause error) (Result, error) {
	r := Result{Limit: l.bounds.units, Source: l.fallback, Cause: cause}
	switch {
	case !Undecided(cause):
		return Result{}, cause
	case l.fallback == "" || l.fallback == failedLocal || slices.Contains(withoutFallback, v):
		return Result{Cause: cause}, cause
	case l.fallback == failedOpen:
		r.Allowed, r.Granted = true, n
	default:
		r.RetryAfter = time.Second
	}
	return r, nil
}

// reset deletes a key, and what this process knows of it.
func (l limiter) reset(ctx context.Context, key string) (err error) {
	var r Result
	defer l.observe("Reset", key, time.Now(), &r, &err)
	if err := l.check(ctx, "Reset", 1, peek); err != nil {
		return err
	}
	if _, err = l.c.conn.Do(ctx, &l.wait, nil, "DEL", l.prefix+key); err == nil {
		r.Allowed, r.Source = true, fromServer
	}
	l.keys.Forget(key)
	return err
}

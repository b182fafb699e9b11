package throttle

import (
	"context"
	"fmt"
	"time"

	"gothrottle/throttle/internal/local"
	"gothrottle/throttle/internal/wire"
)

// spot is where calls of Allow can be merged: one limit of one key.
type spot struct {
	key string
	bounds
}

// decision is what the callers of one call get. They are granted units first come, first served.
type decision struct {
	Result       // to all of them together
	kept   int64 // so many of them get units of the budget: the first ones
	rest   error // the error of those who are granted nothing; nil: they are denied
	err    error
}

func (c *Client) newFamily(name string, s settings) *family {
	f := &family{c: c, name: name, prefix: c.o.keyPrefix + name + ":", settings: s}
	if c.inside != nil {
		f.inner = c.inside.newFamily(name, c.inside.o.settings)
	}
	f.wait.Limit, f.wait.Name = s.timeout, name
	f.unseen = s.units > 0 && c.o.observe == nil
	f.keys = local.Keys[bounds]{Units: s.units, Hold: s.hold, Closed: &c.closed.Bool, Grew: f.sweepLater}
	f.calls = local.Merge[spot, decision]{Limit: s.timeout, Slack: s.timeout / wire.Steps, Late: errLate, Ended: wire.ErrClosed,
		Ask: func(ctx context.Context, at spot, callers int64) decision {
			return limiter{f, at.bounds}.ask(ctx, at.key, callers)
		},
		Start: func(call func()) bool { return !c.closed.Load() && c.conn.Start(call) },
	}
	return f
}

var errLate = fmt.Errorf("%w: %w", ErrUnavailable, context.DeadlineExceeded)

// merge asks for one unit, alone or with others. It sets r, which is the zero Result.
func (l *limiter) merge(ctx context.Context, key string, r *Result) error {
	at, own := spot{key, l.bounds}, decision{}
	d, place, err := l.calls.Do(ctx, &at, &own)
	if err != nil {
		return err
	}
	return d.of(place, r)
}

// of sets r for the caller at a place.
func (d *decision) of(place int64, r *Result) error {
	switch {
	case d.err != nil:
		return d.err
	case d.rest != nil && place >= d.Granted:
		return d.rest
	}
	*r = d.Result
	if place < d.kept {
		r.Source = fromBudget
	}
	if r.Allowed = place < r.Granted; r.Allowed {
		r.Granted, r.RetryAfter = 1, 0
	} else {
		r.Granted = 0
	}
	return nil
}

// ask asks for the units of some callers and for more units of the budget. The first callers get units that are kept,
// whatever becomes of the command for the others.
func (l limiter) ask(ctx context.Context, key string, callers int64) (d decision) {
	now, more := l.c.conn.Now(), int64(0)
	if l.spends() {
		var u local.Unit[bounds]
		if u, d.kept, more = l.keys.Take(key, &l.bounds, callers, l.c.conn.Now); u.Low != nil {
			l.startAhead(u.Low)
		}
		if l.spent(u, d.kept, &d.Result); d.kept == callers {
			return d
		}
	}
	n, m := callers-d.kept+more, upTo
	if callers == 1 && more == 0 {
		m = take
	}
	if d.Result, d.err = l.send(ctx, key, n, m); d.err == nil && l.spends() {
		back := l.keys.Keep(key, &l.bounds, now, l.c.conn.Now(), d.Granted-(callers-d.kept), d.reply())
		if back > 0 {
			l.startGiveBack(key, back)
		}
	}
	if d.Granted += d.kept; d.err != nil && d.kept > 0 {
		return decision{Result{Granted: d.kept, Limit: l.bounds.units}, d.kept, d.err, nil}
	}
	return d
}

// reply returns what the budget and the deny cache need of a Result.
func (r *Result) reply() *local.Reply {
	return &local.Reply{Allowed: r.Allowed, Limit: r.Limit, Remaining: r.Remaining, RetryAfter: r.RetryAfter, ResetAfter: r.ResetAfter}
}

// recall decides by what this process knows of a key.
func (l *limiter) recall(key string, n int64, r *Result) bool {
	if n == 1 && l.spends() && l.spend(key, r) {
		return true
	}
	var d local.Reply
	if !l.denies || !l.keys.Denied(key, &l.bounds, n, l.c.conn.Now(), &d) {
		return false
	}
	*r = Result{Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Source: fromDenials}
	return true
}

// spend spends one unit of a key, if there is one, and sets r.
func (l *limiter) spend(key string, r *Result) bool {
	u, spent := l.keys.Spend(key, &l.bounds, l.c.conn.Now)
	if u.Low != nil {
		l.startAhead(u.Low)
	}
	if spent {
		l.spent(u, 1, r)
	}
	return spent
}

// spent sets r for n units of the budget.
func (l *limiter) spent(u local.Unit[bounds], n int64, r *Result) {
	r.Allowed, r.Granted, r.Source, r.Limit = true, n, fromBudget, l.bounds.units
	r.Remaining, r.ResetAfter = u.Remaining, u.ResetAfter
}

// startAhead has a receiver of its own, so that the limiter of spend needs no memory.
func (l limiter) startAhead(low *local.Grant[bounds]) { l.c.conn.Start(func() { l.ahead(low) }) }

// ahead asks for more units before those of a grant are spent, so that no caller waits for a reply.
func (l limiter) ahead(low *local.Grant[bounds]) {
	now := l.c.conn.Now()
	more := l.keys.Ahead(low, now)
	if more <= 0 {
		return
	}
	r, err := l.send(context.Background(), low.Key(), more, upTo)
	reply := r.reply()
	if err != nil {
		reply = nil
	}
	if back := l.keys.Came(low, now, l.c.conn.Now(), r.Granted, reply); back > 0 {
		l.giveBack(low.Key(), back)
	}
}

// startGiveBack is for callers, who don't wait for that. It has a receiver of its own, so that the limiter of ask needs no memory.
func (l limiter) startGiveBack(key string, n int64) { l.c.conn.Start(func() { l.giveBack(key, n) }) }

// giveBack sends units back that came too late to be kept: the client is closed, or another limit holds units of the key.
func (l limiter) giveBack(key string, n int64) {
	_, _ = l.send(context.Background(), key, -n, upTo)
}

// policyMemory bounds how long a denial of a Policy is repeated, whose limit may change on the server at any time.
const policyMemory = time.Second

// learn remembers a denial of a limiter with a DenyCache. After a part was granted one more unit is denied. It ends if
// units are given back.
func (l *limiter) learn(key string, n int64, m mode, sent time.Duration, r *Result) {
	if m != take && m != upTo || n > 0 && (r.RetryAfter <= 0 || r.RetryAfter == Never) {
		return
	}
	if m == upTo {
		n = min(n, 1)
	}
	most := r.RetryAfter
	if l.kind == policyKind {
		most = policyMemory
	}
	l.keys.Deny(key, &l.bounds, n, sent, most, r.reply())
}

const sweepEvery = 10 * time.Second

func (f *family) sweepLater() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.c.closed.Load() && f.sweeper == nil {
		f.sweeper = time.AfterFunc(sweepEvery, f.sweep)
	}
}

// sweep drops what says nothing about a key.
func (f *family) sweep() {
	f.mu.Lock()
	f.sweeper = nil
	f.mu.Unlock()
	if f.keys.Sweep(f.c.conn.Now()) {
		f.sweepLater()
	}
}

// end lets no unit be spent any more, and returns the calls that refund those of all keys, when the client closes. The
// lanes make pipelines of them.
func (f *family) end() (refunds []func() error) {
	f.mu.Lock()
	if f.sweeper != nil {
		f.sweeper.Stop()
	}
	f.mu.Unlock()
	now := f.c.conn.Now()
	f.keys.End(now, func(key string, of bounds, n int64) {
		refunds = append(refunds, func() error {
			_, err := limiter{f, of}.send(context.Background(), key, -n, upTo)
			return err
		})
	})
	return refunds
}

package throttle

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gothrottle/throttle/internal/wire"
)

// group is callers of Allow for one key that wait for one command, because another one is under way. They are granted units
// first come first served. They began within a sixteenth of the time limit of each other, and share a timer.
type group struct {
	first   context.Context // of the first caller, for its values
	timer   *time.Timer
	full    bool // later callers need another group
	callers int64
	gone    []int64 // the places of callers that did not wait for the reply
	over    bool    // the callers have their result

	done   chan struct{} // closed when the fields below are set
	before int64         // callers of earlier groups
	kept   int64         // how many callers of all groups get units of the budget: the first ones
	reply  Result        // to all callers together
	err    error
	rest   error // the error of the callers that are granted nothing; nil: they are denied
}

// merge asks for one unit, alone or with others. The first call for a key is sent at once. It sets r, which is the zero
// Result.
func (l limiter) merge(ctx context.Context, key string, r *Result) error {
	at := spot{key, l.bounds}
	l.mu.Lock()
	_, busy := l.busy[at]
	switch {
	case busy || l.lone && l.loner == at:
		return l.join(ctx, at, r)
	case l.lone:
		l.busy[at] = nil
	default:
		l.lone, l.loner = true, at
	}
	l.mu.Unlock()
	defer l.next(at)
	reply, kept, _, err := l.ask(ctx, key, 1)
	if *r = reply; err == nil && kept == 0 {
		r.only(0)
	}
	return err
}

// ask asks for the units of some callers and for more units of the budget. The first callers get units that are kept. If
// the command for the others fails, rest is its error.
func (l limiter) ask(ctx context.Context, key string, callers int64) (r Result, kept int64, rest, err error) {
	now := l.clock()
	more := int64(0)
	if l.spends() {
		kept, more = l.take(key, callers, now, &r)
	}
	if kept == callers {
		r.Granted = kept
		return r, kept, nil, nil
	}
	n, m := callers-kept+more, upTo
	if callers == 1 && more == 0 {
		m = take
	}
	if r, err = l.send(ctx, now, key, n, m); err == nil && l.spends() {
		l.keep(key, now, r.Granted-(callers-kept), &r)
	}
	if r.Granted += kept; err != nil && kept > 0 { // the first callers have their units, whatever became of the command
		return Result{Granted: kept, Limit: l.bounds.units}, kept, err, nil
	}
	return r, kept, nil, err
}

// join waits for the next command. It unlocks l.mu.
func (f *family) join(ctx context.Context, at spot, r *Result) error {
	g := f.group(ctx, at)
	place := g.callers
	g.callers++
	f.mu.Unlock()
	if ctx.Done() == nil {
		<-g.done // a select would take twice as long
		return g.result(place, r)
	}
	select {
	case <-g.done:
		return g.result(place, r)
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.over {
		return g.result(place, r)
	}
	g.gone = append(g.gone, place)
	return fmt.Errorf("throttle: %w", ctx.Err())
}

// group returns the group of a caller that begins now. f.mu is locked.
func (f *family) group(ctx context.Context, at spot) *group {
	groups := f.busy[at]
	if n := len(groups); n > 0 && !groups[n-1].full {
		return groups[n-1]
	}
	g := &group{first: ctx, done: make(chan struct{})}
	g.timer = time.AfterFunc(f.timeout/wire.Steps, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !g.full {
			g.full = true
			g.timer.Reset(f.timeout - f.timeout/wire.Steps)
			return
		}
		g.finish(Result{}, fmt.Errorf("%w: %w", ErrUnavailable, context.DeadlineExceeded))
	})
	f.busy[at] = append(groups, g)
	return g
}

// finish lets the callers go, unless their time was over before. The limiter is locked.
func (g *group) finish(reply Result, err error) {
	if g.over {
		return
	}
	g.reply, g.err, g.over = reply, err, true
	g.timer.Stop()
	close(g.done)
}

// waiting returns how many callers still wait. The limiter is locked.
func (g *group) waiting() int64 {
	if g.over {
		return 0
	}
	return g.callers - int64(len(g.gone))
}

// result sets r for the caller at a place.
func (g *group) result(place int64, r *Result) error {
	if g.err != nil {
		return g.err
	}
	at := g.before + place
	for _, gone := range g.gone {
		if gone < place {
			at--
		}
	}
	if g.rest != nil && at >= g.reply.Granted {
		return g.rest
	}
	*r = g.reply
	if at < g.kept {
		r.Source = FromBudget
	}
	r.only(at)
	return nil
}

// only turns the reply to all callers into that of the caller at a place. The first callers get what was granted.
func (r *Result) only(place int64) {
	if r.Allowed = place < r.Granted; r.Allowed {
		r.Granted, r.RetryAfter = 1, 0
		return
	}
	r.Granted = 0
}

// next lets those go who waited for the end of a command. If there are none, no command is under way any more.
func (f *family) next(at spot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loner == at {
		f.lone = false
	}
	groups, callers := f.busy[at], int64(0)
	for _, g := range groups {
		callers += g.waiting()
	}
	if callers > 0 && !f.c.closed.Load() && f.c.conn.Start(func() { f.lead(at, groups, callers) }) {
		f.busy[at] = nil
		return
	}
	for _, g := range groups {
		g.finish(Result{}, ErrClosed)
	}
	delete(f.busy, at)
}

// lead decides for all callers of some groups. A caller whose time limit ends earlier returns earlier. The command has
// a time limit of its own, and the values of the first caller's context.
func (f *family) lead(at spot, groups []*group, callers int64) {
	reply, kept, rest, err := limiter{f, at.bounds}.ask(context.WithoutCancel(groups[0].first), at.key, callers)
	f.mu.Lock()
	before := int64(0)
	for _, g := range groups { // some callers have gone since the command was sent: others get their units
		g.before = before
		before += g.waiting()
		g.kept, g.rest = kept, rest
		g.finish(reply, err)
	}
	f.mu.Unlock()
	regroup(callers)
	f.next(at)
}

// regroup lets the callers run that have their results, so that they join the next batch. Otherwise the next batch would
// be sent with only a few of them. The scheduler comes back to a goroutine that yields after about 60 others.
func regroup(callers int64) {
	for range min(callers/32+1, 8) {
		runtime.Gosched()
	}
}

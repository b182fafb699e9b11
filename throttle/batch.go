package throttle

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// batches makes one command of concurrent calls for one unit of a key. The first call is sent at once. Callers that come
// while a command is under way wait for the next one, and are granted units first come first served.
type batches struct {
	l *limiter
	*table[string, queue]
	closed bool // all parts are locked to set it
}

// queue is a key with a command under way.
type queue struct{ next *batch }

// batch is the callers that wait for one command.
type batch struct {
	first  context.Context // of the first caller, for its values
	groups []*group
}

// group is the callers of a batch that began at the same time, and so have the same time limit.
type group struct {
	callers int
	gone    []int         // the places of callers that did not wait for the reply
	limit   *deadline     // of all callers
	timer   *time.Timer   // ends the wait
	done    chan struct{} // closed when the fields below are set
	before  int64         // callers of earlier groups
	kept    int64         // how many callers of the batch get units of the budget: the first ones
	reply   Result        // to all callers together
	err     error
	rest    error // the error of the callers that are granted nothing; nil: they are denied
}

func newBatches(l *limiter) *batches {
	return &batches{l: l, table: newTable[string](func(*queue, time.Duration) bool { return false })}
}

// ask asks for one unit, alone or with others. It sets r, which is the zero Result.
func (s *batches) ask(ctx context.Context, key string, now time.Duration, r *Result) (err error) {
	p := s.lock(key)
	if s.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	if q := p.values[key]; q != nil {
		return s.join(ctx, p, q, r)
	}
	q := s.add(p, key, now)
	p.mu.Unlock()
	defer s.ended(key, p, q)
	var kept int64
	if *r, kept, _, err = s.send(ctx, s.l.deadline(), key, 1, now); err == nil && kept == 0 {
		r.only(0)
	}
	return err
}

// send asks for the units of some callers and for more units of the budget. The first callers get units that are kept. If
// the command for the others fails, rest is its error.
func (s *batches) send(ctx context.Context, d *deadline, key string, callers int64, now time.Duration) (r Result, kept int64, rest, err error) {
	var more int64
	if s.l.budgets != nil {
		if kept, more = s.l.budgets.spendFor(key, callers, now, &r); kept == callers {
			r.Granted = kept
			return r, kept, nil, nil
		}
	}
	n, m := callers-kept+more, upTo
	if callers == 1 && more == 0 {
		m = take
	}
	r, err = s.l.sendWithin(ctx, d, key, n, m)
	if err == nil && s.l.budgets != nil {
		s.l.budgets.granted(key, now, r.Granted-(callers-kept), &r)
	}
	s.l.noteDenial(key, 1, now, r, err)
	if r.Granted += kept; err != nil && kept > 0 { // the first callers have their units, whatever became of the command
		return Result{Granted: kept, Limit: s.l.bounds.units}, kept, err, nil
	}
	return r, kept, nil, err
}

// join waits for the next command. The part p is locked when join is called.
func (s *batches) join(ctx context.Context, p *part[string, queue], q *queue, r *Result) error {
	if q.next == nil {
		q.next = &batch{first: ctx}
	}
	g := q.next.group(s.l.deadline(), p)
	place := g.callers
	g.callers++
	p.mu.Unlock()
	if ctx.Done() == nil {
		<-g.done // a select would take twice as long
		return g.result(place, r)
	}
	select {
	case <-g.done:
		return g.result(place, r)
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.over() {
		return g.result(place, r)
	}
	g.gone = append(g.gone, place)
	return fmt.Errorf("throttle: %w", ctx.Err())
}

// group returns the group of callers with this time limit. The part p is locked.
func (b *batch) group(d *deadline, p *part[string, queue]) *group {
	if n := len(b.groups); n > 0 && b.groups[n-1].limit == d {
		return b.groups[n-1]
	}
	g := &group{limit: d, done: make(chan struct{})}
	g.timer = time.AfterFunc(time.Until(d.end), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		g.finish(Result{}, fmt.Errorf("%w: %w", ErrUnavailable, context.DeadlineExceeded))
	})
	b.groups = append(b.groups, g)
	return g
}

// finish lets the callers go, unless their time was over before. The part is locked.
func (g *group) finish(reply Result, err error) {
	if g.over() {
		return
	}
	g.reply, g.err = reply, err
	g.timer.Stop()
	close(g.done)
}

// waiting returns how many callers still wait. The part is locked.
func (g *group) waiting() int64 {
	if g.over() {
		return 0
	}
	return int64(g.callers - len(g.gone))
}

// over reports whether the callers have their result.
func (g *group) over() bool { return isClosed(g.done) }

// result sets r for the caller at a place.
func (g *group) result(place int, r *Result) error {
	if g.err != nil {
		return g.err
	}
	at := g.before + int64(place)
	for _, gone := range g.gone {
		if gone < place {
			at--
		}
	}
	if g.rest != nil && at >= g.reply.Granted {
		return g.rest
	}
	*r = g.reply
	r.Source = FromBatch
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

// ended is called when the command of a key has ended. The callers that waited for that go next.
func (s *batches) ended(key string, p *part[string, queue], q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := q.next
	q.next = nil
	if b != nil && !s.closed && b.waiting() > 0 {
		s.l.c.running.Add(1)
		go s.lead(key, p, q, b)
		return
	}
	if b != nil {
		b.finish(Result{}, ErrClosed)
	}
	delete(p.values, key)
}

// waiting returns how many callers still wait. The part is locked.
func (b *batch) waiting() (n int64) {
	for _, g := range b.groups {
		n += g.waiting()
	}
	return n
}

// finish lets all callers go that still wait. The part is locked.
func (b *batch) finish(reply Result, err error) {
	before := int64(0)
	for _, g := range b.groups {
		g.before = before
		before += g.waiting()
		g.finish(reply, err)
	}
}

// lead decides for all callers of a batch, within the latest of their time limits. Whose limit is over before goes before.
// The command has the values of the first caller's context.
func (s *batches) lead(key string, p *part[string, queue], q *queue, b *batch) {
	defer s.l.c.running.Done()
	defer s.ended(key, p, q)
	p.mu.Lock()
	callers := b.waiting()
	p.mu.Unlock()
	defer regroup(int(callers))
	var now time.Duration
	if s.l.denials != nil || s.l.budgets != nil {
		now = s.l.c.now()
	}
	last := b.groups[len(b.groups)-1].limit
	reply, kept, rest, err := s.send(context.WithoutCancel(b.first), last, key, callers, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range b.groups {
		g.kept, g.rest = kept, rest
	}
	b.finish(reply, err)
}

// regroup lets the callers run that have their results, so that they join the next batch. Otherwise the next batch would
// be sent with only a few of them. The scheduler comes back to a goroutine that yields after about 60 others.
func regroup(callers int) {
	for range min(callers/32+1, 8) {
		runtime.Gosched()
	}
}

// close ends the calls that wait for their turn. No command begins afterwards.
func (s *batches) close() {
	for i := range s.parts {
		s.parts[i].mu.Lock()
	}
	s.closed = true
	for i := range s.parts {
		s.parts[i].mu.Unlock()
	}
}

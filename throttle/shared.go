package throttle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A shard keeps what concurrent and later callers of some limiters share: calls under way, denials, budgets.
type shard struct {
	mu      sync.Mutex
	entries map[entryKey]*entry
	sweepAt int    // sweep when there are this many entries
	most    int    // entries, since the map was made
	spare   *entry // to be used again; nil: none
	closed  bool
}

const shardCount = 64

// entryKey is a limiter and a quantity.
type entryKey struct {
	key   string
	limit Limit
	n     int64
}

// entry is what is shared of one limiter. An entry that holds nothing is dropped.
type entry struct {
	busy bool   // a call is under way
	next *batch // who waits for the next one; nil: nobody
	*kept
}

// kept is what later calls can use of earlier replies. An entry has it if the client has a deny cache or a budget.
type kept struct {
	denied      Result // the last denial
	deniedUntil time.Duration
	budget      budget
}

// batch is the callers that wait for one command. They are granted first come first served.
type batch struct {
	callers int
	left    []int // the places of callers that went before the command was sent
	sent    bool
	within  *deadline     // of the first caller
	done    chan struct{} // closed when the fields below are set
	held    int64         // how many callers get units of the budget: the first ones
	reply   Result        // to all callers together
	err     error
	rest    error // the error of the callers that are granted nothing; nil: they are denied
}

func (c *Client) shardOf(key string) *shard {
	return &c.shards[maphash.String(c.seed, key)%shardCount]
}

func (c *Client) now() time.Duration { return c.o.Now().Sub(c.base) }

// shared asks for n units by what is shared: a denial that still stands, the local budget, a call together with others.
// It sets r, which is the zero Result.
func (c *Client) shared(ctx context.Context, key string, l *Limit, n, less int64, r *Result) (err error) {
	k := entryKey{key, *l, n}
	s := c.shardOf(key)
	merges := c.merges(l, n)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	var now time.Duration
	if c.keeps() {
		now = c.now() // under the lock, so that no reply that was noted before seems to be of the future
		c.sweepInTurn(s, now)
	}
	e := s.entries[k]
	if e != nil && e.kept != nil {
		if merges && e.budget.spend(now, 1, c.o.Budget.Hold) == 1 {
			*r = e.budget.result(now)
			s.mu.Unlock()
			return nil
		}
		if e.denies(now) {
			*r = e.stillDenied(now)
			s.mu.Unlock()
			return nil
		}
	}
	if !merges {
		s.mu.Unlock()
		*r, err = c.send(ctx, key, l, n, take, less)
		c.remember(s, k, now, *r, err)
		return err
	}
	if e == nil {
		e = c.enter(s, k, now)
	}
	if e.busy {
		return c.join(ctx, s, e, r)
	}
	e.busy = true
	var more int64
	if e.kept != nil {
		more = e.budget.refill(now, &c.o.Budget)
	}
	s.mu.Unlock()
	*r, err = c.ask(ctx, s, k, e, now, more, less)
	return err
}

// ask asks for one unit of a caller that nobody waits with, and for more units of the budget.
func (c *Client) ask(ctx context.Context, s *shard, k entryKey, e *entry, now time.Duration, more, less int64) (Result, error) {
	defer c.ended(s, k, e, less)
	if more == 0 {
		r, err := c.send(ctx, k.key, &k.limit, 1, take, less)
		c.note(s, e, now, 0, r, err)
		return r, err
	}
	r, err := c.send(ctx, k.key, &k.limit, 1+more, upTo, less)
	c.note(s, e, now, r.Granted-1, r, err)
	if err == nil {
		r.only(0)
	}
	return r, err
}

// keeps reports whether later calls can use earlier replies.
func (c *Client) keeps() bool { return c.o.DenyCache || c.o.Budget.Units > 0 }

// denies reports whether the last denial still stands. The clock may jump: before the denial it tells nothing.
func (e *entry) denies(now time.Duration) bool {
	return now < e.deniedUntil && e.deniedUntil-now <= e.denied.RetryAfter
}

// stillDenied returns the last denial as it is now.
func (e *entry) stillDenied(now time.Duration) Result {
	r := e.denied
	passed := r.RetryAfter - (e.deniedUntil - now)
	r.RetryAfter, r.ResetAfter, r.Source = e.deniedUntil-now, max(r.ResetAfter-passed, 0), FromDenials
	return r
}

// enter adds an entry. The shard is locked.
func (c *Client) enter(s *shard, k entryKey, now time.Duration) *entry {
	e := s.spare
	if s.spare = nil; e == nil {
		e = new(entry)
	}
	if c.keeps() {
		if len(s.entries) >= max(s.sweepAt, leastSweep) {
			s.sweep(now, c.o.Budget.Hold)
		}
		e.kept = new(kept)
	}
	s.entries[k] = e
	return e
}

// join waits for the next command. The shard is locked when join is called.
func (c *Client) join(ctx context.Context, s *shard, e *entry, r *Result) error {
	b := e.next
	if b == nil {
		b = &batch{within: c.deadline(), done: make(chan struct{})}
		e.next = b
	}
	place := b.callers
	b.callers++
	s.mu.Unlock()
	if ctx.Done() == nil {
		<-b.done // a select would take twice as long
	} else if err := b.wait(ctx, s, place); err != nil {
		return err
	}
	if b.err != nil {
		return b.err
	}
	for _, left := range b.left {
		if left < place {
			place--
		}
	}
	if b.rest != nil && int64(place) >= b.reply.Granted {
		return b.rest
	}
	*r = b.reply
	r.Source = FromBatch
	if int64(place) < b.held {
		r.Source = FromBudget
	}
	r.only(int64(place))
	return nil
}

// wait waits until the batch is done. If the caller goes before its command was sent, nothing is asked for its place.
func (b *batch) wait(ctx context.Context, s *shard, place int) error {
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	if !b.sent {
		b.left = append(b.left, place)
	}
	s.mu.Unlock()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	return fmt.Errorf("throttle: %w", ctx.Err())
}

// only turns the reply to all callers into that of the caller at a place. The first callers get what was granted.
func (r *Result) only(place int64) {
	if r.Allowed = place < r.Granted; r.Allowed {
		r.Granted, r.RetryAfter = 1, 0
		return
	}
	r.Granted = 0
}

// ended is called when the command of an entry has ended. The callers that waited for that go next.
func (c *Client) ended(s *shard, k entryKey, e *entry, less int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := e.next
	if b != nil && b.callers > len(b.left) && !s.closed {
		e.next = nil
		c.running.Add(1)
		go c.lead(s, k, e, b, less)
		return
	}
	if b != nil {
		e.next, b.sent, b.err = nil, true, ErrClosed
		close(b.done)
	}
	e.busy = false
	if e.kept == nil {
		delete(s.entries, k)
		s.spare = e
	}
}

// lead decides for all callers of a batch, by units that are held and by one command for the rest. The command has a
// context of its own, so a caller that goes away does not fail the others.
func (c *Client) lead(s *shard, k entryKey, e *entry, b *batch, less int64) {
	defer c.running.Done()
	defer c.ended(s, k, e, less)
	defer regroup(b.callers)
	defer close(b.done)
	var now time.Duration
	var held, more int64
	s.mu.Lock()
	b.sent = true
	callers := int64(b.callers - len(b.left))
	if e.kept != nil {
		now = c.now()
		if held = e.budget.spend(now, callers, c.o.Budget.Hold); held == callers {
			b.reply = e.budget.result(now)
			b.held, b.reply.Granted = callers, callers
			s.mu.Unlock()
			return
		}
		more = e.budget.refill(now, &c.o.Budget)
	}
	s.mu.Unlock()
	b.reply, b.err = c.send(b.within, k.key, &k.limit, callers-held+more, upTo, less)
	c.note(s, e, now, b.reply.Granted-(callers-held), b.reply, b.err)
	b.held = held
	b.reply.Granted += held
	if b.err != nil && held > 0 {
		// The first callers have their units, whatever became of the command for the rest.
		b.reply, b.err, b.rest = Result{Granted: held, Limit: k.limit.limit}, nil, b.err
	}
}

// regroup lets the callers run that have their results, so that they join the next batch. Otherwise the next batch would
// be sent with only a few of them. The scheduler comes back to a goroutine that yields after about 60 others.
func regroup(callers int) {
	for range min(callers/32+1, 8) {
		runtime.Gosched()
	}
}

// note keeps what later calls can use of a reply: units beyond those of the callers, and a denial. The command was sent at
// the time began.
func (c *Client) note(s *shard, e *entry, began time.Duration, extra int64, r Result, err error) {
	if err != nil || e.kept == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.noteDenial(e, began, r)
	e.budget.granted(began, extra, r)
}

// noteDenial keeps a denial, also that of the callers behind a part that was granted. The denial stands for its RetryAfter,
// counted from when the command was sent. Counted from the reply, it would stand longer than on the server.
func (c *Client) noteDenial(e *entry, began time.Duration, r Result) {
	if c.o.DenyCache && r.RetryAfter > 0 && r.RetryAfter != Never {
		r.Allowed, r.Granted = false, 0
		e.denied, e.deniedUntil = r, began+r.RetryAfter
	}
}

// remember keeps the denial of a call that was sent alone at the time began.
func (c *Client) remember(s *shard, k entryKey, began time.Duration, r Result, err error) {
	if err != nil || r.Allowed || !c.o.DenyCache || r.RetryAfter == Never {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	e := s.entries[k]
	if e == nil {
		e = c.enter(s, k, began)
	}
	c.noteDenial(e, began, r)
}

// closeShard notes how many units of each of the shard's budgets go back. No batch starts afterwards.
func (c *Client) closeShard(s *shard, back map[entryKey]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	entries := s.entries
	s.entries = map[entryKey]*entry{}
	now := c.now()
	for k, e := range entries {
		if e.kept == nil {
			continue
		}
		if n := e.budget.giveBack(now, c.o.Budget.Hold); n > 0 {
			back[k] = n
		}
	}
}

// giveBack refunds units, in pipelines. It stops when the server does not answer.
func (c *Client) giveBack(back map[entryKey]int64) (failed error) {
	cmds := make([]redis.Cmder, 0, min(len(back), maxPipeline))
	send := func() {
		ctx := c.deadline()
		for _, err := range c.sendAll(ctx, cmds) {
			if err := classify(ctx, err); failed == nil || errors.Is(err, ErrUnavailable) {
				failed = err
			}
		}
		cmds = cmds[:0]
	}
	for k, n := range back {
		less, _ := c.o.Budget.less(&k.limit)
		cmds = append(cmds, newCall(background, k.key, &k.limit, -n, upTo, less, 0))
		if len(cmds) == maxPipeline {
			send()
		}
		if errors.Is(failed, ErrUnavailable) {
			return failed
		}
	}
	if len(cmds) > 0 {
		send()
	}
	return failed
}

package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gothrottle/throttle"
)

// verbs are those of Rate and Window.
type verbs interface {
	Allow(context.Context, string) (throttle.Result, error)
	AllowN(context.Context, string, int64) (throttle.Result, error)
	AllowAtMost(context.Context, string, int64) (throttle.Result, error)
	Peek(context.Context, string) (throttle.Result, error)
	Refund(context.Context, string, int64) (throttle.Result, error)
	Settle(context.Context, string, int64) (throttle.Result, error)
	Raise(context.Context, string, int64) (throttle.Result, error)
	Part(string, int64) throttle.Part
	Hold(context.Context, string, int64, ...throttle.Part) (*throttle.Hold, error)
}

// other returns a limiter's other limit.
func (l *limit) other(limiter any) verbs {
	switch limiter := limiter.(type) {
	case throttle.Window:
		return limiter.With(throttle.Units(2 * l.Units))
	}
	rate := throttle.Per(2*l.Units, l.Period)
	if l.Lockout > 0 {
		rate = rate.Lockout(l.Lockout)
	}
	return limiter.(throttle.Rate).With(rate)
}

// call makes one call.
func (r *run) call(o *outcome, limiters []any) {
	ctx, cancel := context.Background(), func() {}
	if o.Deadline != 0 {
		ctx, cancel = context.WithDeadline(ctx, time.Now().Add(o.Deadline))
	} else if o.Cancel != 0 {
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(o.Cancel, cancel)
	}
	defer cancel()
	o.Began = time.Since(r.epoch)
	key := o.keyName()
	if slots, is := limiters[o.Limit].(throttle.Slots); is {
		r.slot(ctx, o, slots, key)
		return
	}
	one := func(p throttle.Result, err error) { o.Parts, o.Err = []throttle.Result{p}, err }
	l := limiters[o.Limit].(verbs)
	if o.Other {
		l = r.Limits[o.Limit].other(l)
	}
	if o.Verb == "Hold" {
		r.takeHold(ctx, o, l, key)
		return
	}
	switch o.Verb {
	case "Allow":
		one(l.Allow(ctx, key))
	case "AllowN":
		one(l.AllowN(ctx, key, o.N))
	case "AllowAtMost":
		one(l.AllowAtMost(ctx, key, o.N))
	case "Peek":
		one(l.Peek(ctx, key))
	case "Refund":
		one(l.Refund(ctx, key, o.N))
	case "Settle":
		one(l.Settle(ctx, key, o.N))
	case "Raise":
		one(l.Raise(ctx, key, o.N))
	case "Reserve":
		res, err := l.(throttle.Rate).Reserve(ctx, key, o.N, 100*time.Millisecond)
		one(res.Result, err)
	case "Wait":
		one(throttle.Result{}, l.(throttle.Rate).WaitN(ctx, key, o.N))
	default:
		r.all(ctx, o, l, limiters, key)
	}
	o.Ended = time.Since(r.epoch)
}

// all is All and SettleAll, of one or two limiters.
func (r *run) all(ctx context.Context, o *outcome, l verbs, limiters []any, key string) {
	c := limiters[len(limiters)-1].(*throttle.Client)
	parts := []throttle.Part{l.Part(key, o.N)}
	if o.both(r.world) {
		parts = append(parts, limiters[o.With].(verbs).Part(key, o.N))
	}
	decide := c.All
	if o.Verb == "SettleAll" {
		decide = c.SettleAll
	}
	result, err := decide(ctx, parts...)
	o.Parts, o.Err = slices.Clone(result.Each), err
}

// both reports whether the call has the other limiter as a part.
func (s *step) both(w *world) bool {
	return s.With < len(w.Limits) && s.With != s.Limit && (s.Verb == "All" || s.Verb == "SettleAll") && w.Limits[s.With].Kind != "slots"
}

// keyName has a hash tag, so that calls of several limiters go to one slot.
func (s *step) keyName() string { return fmt.Sprint("{", s.Key, "}") }

// slot is a call of Slots. A lease is held for some time, and lost in between or closed.
func (r *run) slot(ctx context.Context, o *outcome, l throttle.Slots, key string) {
	var p throttle.Result
	holder := fmt.Sprint("holder of ", o.At)
	switch o.Verb {
	case "Lease":
		o.lease, o.Err = l.Lease(ctx, key)
	case "Acquire":
		o.lease, o.Err = l.Acquire(ctx, key)
	case "Take":
		p, o.Err = l.Take(ctx, key, holder)
	case "PeekSlot":
		p, o.Err = l.Peek(ctx, key, holder)
	}
	o.Ended = time.Since(r.epoch)
	if o.lease == nil {
		o.Parts = []throttle.Result{p}
		return
	}
	o.Parts = []throttle.Result{o.lease.Result}
	select {
	case <-time.After(o.Hold):
	case <-o.lease.Context().Done():
		if !errors.Is(context.Cause(o.lease.Context()), throttle.ErrLost) {
			break // the client is closed
		}
		o.lost = time.Since(r.epoch)
		time.Sleep(r.Limits[o.Limit].Period / 7)
		o.token, o.tokenErr = o.lease.Token(context.Background())
	}
	o.released = time.Since(r.epoch)
	_ = o.lease.Close()
}

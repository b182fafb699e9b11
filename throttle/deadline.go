package throttle

import (
	"context"
	"time"
)

// deadline is the context of calls that begin within a short time of each other: it ends at their time limit. They share
// it because a timer for each call would cost more than the call's own work.
type deadline struct {
	end   time.Time
	fresh time.Time // calls that begin earlier share it
	done  chan struct{}
}

// deadlineSteps is how many deadlines are made within one time limit, so a call may lose that part of its limit.
const deadlineSteps = 16

func (d *deadline) Deadline() (time.Time, bool) { return d.end, true }
func (d *deadline) Done() <-chan struct{}       { return d.done }
func (d *deadline) Value(any) any               { return nil }

func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// deadline returns the end of the time limit of a call that begins now.
func (c *Client) deadline() *deadline {
	now := time.Now()
	if d := c.latest.Load(); d != nil && now.Before(d.fresh) {
		return d
	}
	d := &deadline{end: now.Add(c.o.Timeout), fresh: now.Add(c.o.Timeout / deadlineSteps), done: make(chan struct{})}
	time.AfterFunc(c.o.Timeout, func() { close(d.done) })
	c.latest.Store(d)
	return d
}

// within is the context of one call: it has the values of the caller's context, and ends at the call's time limit or at
// an earlier deadline of the caller. It does not end when the caller's context is cancelled.
type within struct {
	context.Context
	caller context.Context
}

func (w *within) Value(key any) any { return w.caller.Value(key) }

// background is the context of commands in a pipeline, which has a context of its own, and of commands that a limiter in
// this process decides.
var background = within{context.Background(), context.Background()}

// limit returns the context of one call.
func (c *Client) limit(ctx context.Context) within {
	d := c.deadline()
	if end, ok := ctx.Deadline(); ok && end.Before(d.end) {
		return within{ctx, ctx}
	}
	return within{d, ctx}
}

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
	if isClosed(d.done) {
		return context.DeadlineExceeded
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func newDeadline(limit time.Duration) *deadline {
	now := time.Now()
	d := &deadline{end: now.Add(limit), fresh: now.Add(limit / deadlineSteps), done: make(chan struct{})}
	time.AfterFunc(limit, func() { close(d.done) })
	return d
}

// deadline returns the end of the time limit of a call that begins now.
func (l *limiter) deadline() *deadline {
	if d := l.latest.Load(); d != nil && time.Now().Before(d.fresh) {
		return d
	}
	d := newDeadline(l.timeout)
	l.latest.Store(d)
	return d
}

// within is the context of one command: it ends at the time limit and has the values of the caller's context. It does not
// end with the caller's context, so a caller in a hurry costs no connection.
type within struct {
	context.Context
	caller context.Context
}

func (w *within) Value(key any) any { return w.caller.Value(key) }

// background is the context of commands in a pipeline, which has a context of its own.
var background = within{context.Background(), context.Background()}

// ended returns the error of a caller's context that has ended, even if its timer has not run yet.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return nil
}

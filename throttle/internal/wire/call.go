package wire

import (
	"cmp"
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one command.
type call struct {
	redis.Cmd        // as it is sent
	within    within // its context
	words     []any  // as the caller gave them
	done      chan struct{}
	err       error // not the command's own, which go-redis may still set
	gone      bool  // the caller does not wait any more: the command is not sent
}

// NoRetry makes go-redis send the command once: a call that is sent twice takes its units twice.
func (*call) NoRetry() bool { return true }

// set sets what is sent.
func (c *call) set(words []any) {
	c.Cmd = *redis.NewCmd(&c.within, words...)
	c.SetStepCount(keyStep)
}

// keyStep is the number of words from one key to the next. A cluster client that does not know it asks for the list of
// commands before its first command, and takes up to 5 s for that, whatever the context says.
const keyStep = 1

func newCall(w within, words []any) *call {
	c := &call{within: w, words: words}
	c.set(words)
	return c
}

// Do sends a command and returns its reply. It has the values of the caller's context. The second word is its first key; more
// has the others.
func (c *Conn) Do(ctx context.Context, t *Timeout, more []any, words ...any) (any, error) {
	cmd := &call{within: within{t.deadline(), ctx, t}, words: words}
	cmd.set(c.address(words, more))
	if err := c.send(cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// LeadingInts splits a reply into its first integers, which it appends to ints, and what follows them.
func LeadingInts(ints []int64, reply any) (_ []int64, rest []any) {
	items, _ := reply.([]any)
	for i, item := range items {
		n, ok := item.(int64)
		if !ok {
			return ints, items[i:]
		}
		ints = append(ints, n)
	}
	return ints, nil
}

// Millis turns Milliseconds into a Duration, the longest if it does not fit. A reply has up to 10^13 ms.
func Millis(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

// Timeout is a time limit of a limiter's calls. Its latest context is shared.
type Timeout struct {
	Limit  time.Duration
	Name   string // of the limiter, for the log
	latest atomic.Pointer[context.Context]
	lanes  atomic.Pointer[lanes]
}

// Steps is how many contexts are made within one time limit, so a call may lose that part of its limit.
const Steps = 16

// deadline returns a context that ends with the time limit of a call that begins now. Calls that begin within a short time
// of each other share it, because a timer for each call would cost more than the call's own work.
func (t *Timeout) deadline() context.Context {
	if shared := t.latest.Load(); shared != nil {
		if end, _ := (*shared).Deadline(); time.Until(end) > t.Limit-t.Limit/Steps {
			return *shared
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.Limit)
	context.AfterFunc(ctx, cancel)
	t.latest.Store(&ctx)
	return ctx
}

// within is the context of one command: it ends at the time limit and has the values of the caller's context. It does not
// end with the caller's context, so a caller in a hurry costs no connection.
type within struct {
	context.Context
	caller context.Context
	by     *Timeout // of which less may be left
}

func (w *within) Value(key any) any { return w.caller.Value(key) }

// hasty reports whether the caller's context ends before the time limit.
func (w *within) hasty() bool {
	end, ends := w.caller.Deadline()
	limit, _ := w.Deadline()
	return ends && end.Before(limit)
}

// await waits until something is done, the time limit or the caller's context has ended.
func (w *within) await(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-w.Done():
	case <-w.caller.Done():
	}
	return cmp.Or(w.caller.Err(), w.Err())
}

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

package wire

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// command is a command of this package.
type command interface {
	redis.Cmder
	context() *within
	asked() []any    // the words of the call, whose second one is its key
	set(words []any) // they are sent
	answered() bool  // there is a reply that isn't an error
}

// once is what commands have in common.
type once struct {
	within within
	words  []any
}

// NoRetry makes go-redis send the command once: a call that is sent twice takes its units twice.
func (*once) NoRetry() bool { return true }

func (o *once) context() *within { return &o.within }
func (o *once) asked() []any     { return o.words }

// Call is one command whose reply is an array of integers.
type Call struct {
	once
	redis.IntSliceCmd
	args [9]any
}

func (c *Call) answered() bool { return c.Val() != nil }

func (c *Call) set(words []any) {
	c.IntSliceCmd = *redis.NewIntSliceCmd(&c.within, words...)
	c.SetStepCount(keyStep)
}

// generalCall is one command with a reply of any form.
type generalCall struct {
	once
	*redis.Cmd
}

func (c *generalCall) answered() bool { return c.Val() != nil }

func (c *generalCall) set(words []any) {
	c.Cmd = redis.NewCmd(&c.within, words...)
	c.SetStepCount(keyStep)
}

// keyStep is the number of words from one key to the next. A cluster client that does not know it asks for the list of
// commands before its first command, and takes up to 5 s for that, whatever the context says.
const keyStep = 1

func newGeneralCall(w within, words []any) *generalCall {
	c := &generalCall{once: once{w, words}}
	c.set(words)
	return c
}

// Call returns a command with this time limit and the values of the caller's context, and a place for its words.
func (t *Timeout) Call(ctx context.Context) (c *Call, words []any) {
	c = &Call{once: once{within: t.within(ctx)}}
	return c, c.args[:0]
}

// Do sends a command of these words and returns its reply. After an error go-redis may still use the command.
func (c *Conn) Do(cmd *Call, words []any) ([]int64, error) {
	cmd.words = words
	c.address(cmd, nil)
	if err := c.send(cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// General sends a command whose reply has any form. The second word is its first key; more has the others.
func (c *Conn) General(ctx context.Context, t *Timeout, more []any, words ...any) (any, error) {
	cmd := newGeneralCall(t.within(ctx), words)
	c.address(cmd, more)
	if err := c.send(cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// LeadingInts splits a reply into its first integers and what follows them.
func LeadingInts(reply any) (ints []int64, rest []any) {
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
	Limit   time.Duration
	Name    string // of the limiter, for the log
	latest  atomic.Pointer[context.Context]
	lanes   atomic.Pointer[lanes]
	advised [len(advice)]atomic.Int64 // when the log last had a record of each cause: see due

	unsettled atomic.Int64 // the same of Unsettled
}

// Steps is how many contexts are made within one time limit, so a call may lose that part of its limit.
const Steps = 16

// within returns the context of a command that is sent now.
func (t *Timeout) within(ctx context.Context) within {
	return within{t.deadline(), ctx, t}
}

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

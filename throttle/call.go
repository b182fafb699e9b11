package throttle

import (
	"context"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// command is a command of this package.
type command interface {
	redis.Cmder
	context() *within
	answered() bool // there is a reply that isn't an error
}

// once is what commands have in common.
type once struct{ within within }

// NoRetry makes go-redis send the command once: a call that is sent twice takes its units twice.
func (*once) NoRetry() bool { return true }

func (o *once) context() *within { return &o.within }

// call is one command whose reply is an array of integers.
type call struct {
	once
	redis.IntSliceCmd
	args [9]any
}

func (c *call) answered() bool { return c.Val() != nil }

// generalCall is one command with a reply of any form.
type generalCall struct {
	once
	*redis.Cmd
}

func (c *generalCall) answered() bool { return c.Val() != nil }

// keyStep is the number of words from one key to the next. A cluster client that does not know it asks for the list of
// commands before its first command, and takes up to 5 s for that, whatever the context says.
const keyStep = 1

func newGeneralCall(w within, words []any) *generalCall {
	c := &generalCall{once: once{w}}
	c.Cmd = redis.NewCmd(&c.within, words...)
	c.SetStepCount(keyStep)
	return c
}

// Boxed once: a constant string in an interface does not allocate, but a variable does.
var (
	commandNames = [...][2]any{
		rateKind:   {"GO.THROTTLE", "GO.THROTTLE_RO"},
		windowKind: {"GO.WINDOW", "GO.WINDOW_RO"},
		quotaKind:  {"GO.QUOTA", "GO.QUOTA_RO"},
		policyKind: {"GO.POLICY", "GO.POLICY_RO"},
		slotsKind:  {"GO.LEASE", "GO.LEASE_RO"},
	}
	clauseNames = [...]any{rateKind: "THROTTLE", windowKind: "WINDOW", quotaKind: "QUOTA", slotsKind: "LEASE"}
)

// command returns the name of the command that decides in this mode.
func (k kind) command(m mode) any {
	if m == peek {
		return commandNames[k][1]
	}
	return commandNames[k][0]
}

// mode says how a quantity is taken.
type mode uint8

const (
	take    mode = iota
	upTo         // UPTO
	force        // FORCE
	reserve      // RESERVE
	peek         // the read-only command, with quantity 0
)

// boxed is the words of a limit's command. Numbers in interfaces allocate, so a family keeps those of its own limit and of
// limits that were used recently.
type boxed struct {
	of    bounds
	first []any // the name, the place of the key, and numbers
	last  []any // after the quantity and its mode
}

// recentLimits is how many limits of a name keep their words: a power of 2.
const recentLimits = 64

// boxed returns the words of the limiter's limit.
func (l *limiter) boxed() *boxed {
	if l.declared.of == l.bounds {
		return &l.declared
	}
	mixed := (uint64(l.bounds.units)*31+uint64(l.count))*31 + uint64(l.period)
	place := &l.recent[mixed*0x9E3779B97F4A7C15>>32%recentLimits]
	words := place.Load()
	if words == nil || words.of != l.bounds {
		words = l.bounds.boxed()
		place.Store(words)
	}
	return words
}

func (b *bounds) boxed() *boxed {
	w := &boxed{of: *b}
	w.first, w.last = b.words()
	return w
}

// words returns the words of the limit's command before the quantity, with a place for the key, and those at its end.
func (b *bounds) words() (first, last []any) {
	first = []any{b.kind.command(take), nil}
	switch b.kind {
	case rateKind:
		first = append(first, b.units-1, b.count)
	case windowKind, quotaKind, slotsKind:
		first = append(first, b.units)
	}
	if b.monthly {
		first = append(first, "1mo")
	} else {
		first = append(first, b.period.Milliseconds())
	}
	if b.exact {
		last = append(last, "EXACT")
	}
	if b.aligned {
		last = append(last, "ALIGN", int64(0))
	}
	return first, append(last, "MS")
}

// last returns the words after the quantity and its mode.
func (l *limiter) last() []any {
	if l.zone == nil {
		return l.boxed().last
	}
	return []any{"ALIGN", l.c.o.now().In(l.zone).Format("-07:00"), "MS"}
}

// newCall makes the command of one decision. The limiter's words are boxed once, so sending allocates little.
func (l *limiter) newCall(ctx context.Context, key string, n int64, m mode, maxWait time.Duration) *call {
	c := &call{once: once{l.within(ctx)}}
	words := l.boxed()
	args := append(c.args[:0], words.first...)
	args[1] = l.prefix + key
	if args[0] = l.kind.command(m); n != 1 { // that is the server's default
		args = append(args, n)
	}
	switch {
	case m == upTo:
		args = append(args, "UPTO")
	case m == force:
		args = append(args, "FORCE")
	case m == reserve:
		args = append(args, "RESERVE", maxWait.Milliseconds())
	case l.lockout != 0 && m == take:
		args = append(args, "LOCKOUT", l.lockout.Milliseconds())
	}
	c.IntSliceCmd = *redis.NewIntSliceCmd(&c.within, append(args, l.last()...)...)
	c.SetStepCount(keyStep)
	return c
}

// newLease makes the command of a holder of a slot.
func (l *limiter) newLease(ctx context.Context, key, holder string, m mode) *call {
	c := &call{once: once{l.within(ctx)}}
	args := append(append(c.args[:0], l.boxed().first...), holder, "MS")
	args[0], args[1] = l.kind.command(m), l.prefix+key
	c.IntSliceCmd = *redis.NewIntSliceCmd(&c.within, args...)
	c.SetStepCount(keyStep)
	return c
}

// do sends a command and reads its reply: a Result, and the sixth integer, if there is one. If there is an error, go-redis
// may still use the command.
func (l *limiter) do(cmd *call, n int64, m mode) (Result, int64, error) {
	if err := l.c.do(cmd); err != nil {
		return Result{}, 0, err
	}
	return readResult(cmd.Val(), &l.bounds, n, m)
}

// general sends any command within the time limit, and returns its reply. The second word is its key.
func (f *family) general(ctx context.Context, words ...any) (any, error) {
	cmd := newGeneralCall(f.within(ctx), words)
	if err := f.c.do(cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// doGeneral sends any command whose reply begins with the integers of a decision. It is do for such commands.
func (l *limiter) doGeneral(ctx context.Context, n int64, m mode, words ...any) (Result, int64, error) {
	reply, err := l.general(ctx, words...)
	if err != nil {
		return Result{}, 0, err
	}
	ints, _ := leadingInts(reply)
	return readResult(ints, &l.bounds, n, m)
}

// leadingInts splits a reply into its first integers and what follows them.
func leadingInts(reply any) (ints []int64, rest []any) {
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

// readResult reads the integers of one reply: five, or six with UPTO, with RESERVE and of a lease.
func readResult(ints []int64, b *bounds, n int64, m mode) (r Result, sixth int64, err error) {
	if len(ints) < 5 || len(ints) < 6 && (m == upTo || m == reserve || b.kind == slotsKind) {
		return Result{}, 0, errReply
	}
	if len(ints) > 5 {
		sixth = ints[5]
	}
	r = Result{
		Allowed: ints[0] == 0, Limit: ints[1], Remaining: ints[2], RetryAfter: millis(ints[3]), ResetAfter: millis(ints[4]),
		Source: FromServer,
	}
	switch {
	case m == upTo:
		r.Granted = sixth
	case r.Allowed:
		r.Granted = n
	}
	if r.RetryAfter < 0 {
		r.RetryAfter = Never
		if r.Allowed {
			r.RetryAfter = 0
		}
	}
	return r, sixth, nil
}

// millis turns milliseconds into a Duration, the longest if it does not fit. A reply has up to 10^13 ms.
func millis(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

// steps is how many contexts are made within one time limit, so a call may lose that part of its limit.
const steps = 16

// within returns the context of a command that is sent now.
func (f *family) within(ctx context.Context) within {
	return within{f.deadline(), ctx, f.timeout}
}

// deadline returns a context that ends with the time limit of a call that begins now. Calls that begin within a short time
// of each other share it, because a timer for each call would cost more than the call's own work.
func (f *family) deadline() context.Context {
	if shared := f.latest.Load(); shared != nil {
		if end, _ := (*shared).Deadline(); time.Until(end) > f.timeout-f.timeout/steps {
			return *shared
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.timeout)
	context.AfterFunc(ctx, cancel)
	f.latest.Store(&ctx)
	return ctx
}

// within is the context of one command: it ends at the time limit and has the values of the caller's context. It does not
// end with the caller's context, so a caller in a hurry costs no connection.
type within struct {
	context.Context
	caller context.Context
	limit  time.Duration // of which less may be left
}

func (w *within) Value(key any) any { return w.caller.Value(key) }

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

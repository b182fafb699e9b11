package throttle

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one command whose reply is an array of integers. Its arguments point into it, so sending it allocates little.
type call struct {
	redis.IntSliceCmd
	within   within
	key      string
	numbers  [5]int64 // the numbers that args point to
	used     int
	args     [10]any
	argCount int
}

// NoRetry tells go-redis to send the command once: a call that is sent twice takes its units twice.
func (*call) NoRetry() bool { return true }

// keyStep is the number of words from one key to the next. A cluster client that is not told asks for the list of
// commands before its first command. The client takes up to 5 s for that, whatever the context says.
const keyStep = 1

// generalCall is one command with a reply of any form, sent once.
type generalCall struct{ *redis.Cmd }

func (*generalCall) NoRetry() bool { return true }

func newGeneralCall(ctx context.Context, args []any) *generalCall {
	c := &generalCall{redis.NewCmd(ctx, args...)}
	c.SetStepCount(keyStep)
	return c
}

// answered reports whether a command of this package has a reply that is no error.
func answered(cmd redis.Cmder) bool {
	switch cmd := cmd.(type) {
	case *call:
		return cmd.Val() != nil
	case *generalCall:
		return cmd.Val() != nil
	}
	return true
}

// newPolicyCall makes the command that asks a policy.
func newPolicyCall(ctx context.Context, key string, n int64, m mode) *generalCall {
	return newGeneralCall(ctx, []any{policyKind.command(m), key, n, "MS"})
}

func (c *call) word(w any) {
	c.args[c.argCount] = w
	c.argCount++
}

func (c *call) number(n int64) {
	c.numbers[c.used] = n
	c.word(&c.numbers[c.used])
	c.used++
}

func (c *call) millis(d time.Duration) { c.number(int64(d / time.Millisecond)) }

// Boxed once: a constant string in an interface does not allocate, but a variable does.
var (
	commandNames = [...][2]any{
		rateKind:   {"GO.THROTTLE", "GO.THROTTLE_RO"},
		windowKind: {"GO.WINDOW", "GO.WINDOW_RO"},
		quotaKind:  {"GO.QUOTA", "GO.QUOTA_RO"},
		policyKind: {"GO.POLICY", "GO.POLICY_RO"},
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

// newCall makes the command of one decision. It keeps what lies less below the limit's units: see Budget.Clients.
func newCall(ctx within, key string, l *Limit, n int64, m mode, less int64, maxWait time.Duration) *call {
	c := &call{key: key, within: ctx}
	c.word(l.kind.command(m))
	c.word(&c.key)
	switch l.kind {
	case rateKind:
		c.number(l.limit - 1 - less)
		c.number(l.count)
		c.millis(l.period)
	case windowKind, quotaKind:
		c.number(l.limit - less)
		c.millis(l.period)
	}
	c.number(n)
	switch {
	case m == upTo:
		c.word("UPTO")
	case m == force:
		c.word("FORCE")
	case m == reserve:
		c.word("RESERVE")
		c.millis(maxWait)
	case l.lockout != 0 && m == take && n > 0:
		c.word("LOCKOUT")
		c.millis(l.lockout)
	}
	if l.exact {
		c.word("EXACT")
	}
	if l.aligned {
		c.word("ALIGN")
		c.millis(l.offset)
	}
	c.word("MS")
	c.IntSliceCmd = *redis.NewIntSliceCmd(&c.within, c.args[:c.argCount]...)
	c.SetStepCount(keyStep)
	return c
}

// newLease makes the command that takes or renews a slot.
func newLease(ctx within, key string, slots *Limit, holder string) *call {
	c := &call{key: key, within: ctx}
	c.word("GO.LEASE")
	c.word(&c.key)
	c.number(slots.limit)
	c.millis(slots.period)
	c.word(holder)
	c.word("MS")
	c.IntSliceCmd = *redis.NewIntSliceCmd(&c.within, c.args[:c.argCount]...)
	c.SetStepCount(keyStep)
	return c
}

// words returns the arguments as text.
func (c *call) words() []string {
	words := make([]string, c.argCount)
	for i, arg := range c.args[:c.argCount] {
		switch arg := arg.(type) {
		case string:
			words[i] = arg
		case *string:
			words[i] = *arg
		case *int64:
			words[i] = strconv.FormatInt(*arg, 10)
		}
	}
	return words
}

// readResult reads the integers of one reply: five, or six with UPTO, with RESERVE and of a lease.
func readResult(ints []int64, l *Limit, n int64, m mode) (Result, error) {
	if len(ints) < 5 || len(ints) < 6 && (m == upTo || m == reserve || l.kind == slotsKind) {
		return Result{}, errReply
	}
	r := Result{
		Allowed: ints[0] == 0, Limit: ints[1], Remaining: ints[2], RetryAfter: millis(ints[3]), ResetAfter: millis(ints[4]),
	}
	if l.kind != policyKind {
		r.Limit = l.limit
	}
	switch {
	case m == upTo:
		r.Granted = ints[5]
	case m == peek:
	case r.Allowed:
		r.Granted = n
	}
	if r.RetryAfter < 0 {
		r.RetryAfter = Never
		if r.Allowed {
			r.RetryAfter = 0
		}
	}
	return r, nil
}

// millis turns milliseconds into a Duration, the longest if it does not fit. A reply has up to 10^13 ms.
func millis(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

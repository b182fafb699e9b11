package throttle

import (
	"cmp"
	"log/slog"
	"time"
)

// Option sets how a client and its limiters behave. New takes the client's options and those that all its limiters
// share. Each limiter may add its own: Timeout, FailOpen, FailClosed, FailLocal, DenyCache, Budget and Holds.
type Option func(*options)

// options is what an Option sets.
type options struct {
	settings
	keyPrefix string
	observe   func(Event)
	logger    *slog.Logger
	script    bool
	ofClient  string // the name of an option that only New takes
	shape     shape
}

// shape is what options say of the windows of a limiter.
type shape struct {
	exact, aligned bool
	zone           *time.Location
	day            int
}

// of returns bounds of this shape.
func (s *shape) of(b bounds, err error) (bounds, error) {
	switch {
	case err != nil:
		return b, err
	case s.exact && b.kind != windowKind:
		return b, params("Exact is an option of a sliding Window")
	case s.aligned && b.kind != quotaKind:
		return b, params("In is an option of a Quota")
	case s.day != 0 && (b.kind != quotaKind || b.period != Month || s.day < 1 || s.day > 31):
		return b, params("OnDay takes 1 to 31, and is an option of a Quota of a Month")
	}
	b.exact, b.aligned, b.zone = s.exact, s.aligned, s.zone
	if b.kind == quotaKind && b.period == Month {
		b.period, b.day, b.aligned = 31*24*time.Hour, int8(max(s.day, 1)), true
	}
	return b, nil
}

// Exact makes a Window keep an entry for each microsecond with calls, whatever its limit.
func Exact() Option { return func(o *options) { o.shape.exact = true } }

// In makes the windows of a Quota end at multiples of the period by the clocks of a time zone, UTC if it is nil: a
// 24-hour window is a day there. On a day when clocks change, up to twice the limit is admitted.
func In(zone *time.Location) Option {
	return func(o *options) { o.shape.aligned, o.shape.zone = true, zone }
}

// OnDay makes the windows of a Quota of a Month begin on this day of the month, 1 to 31, or on the last day of a month that
// is shorter: a bill from the 31st begins on February 28, and next on March 31. With a zone and a day after the 28th the
// program's clock decides which month it is, so it must be right.
func OnDay(day int) Option { return func(o *options) { o.shape.day = day } }

// Month is the period of a Quota whose windows are calendar months: UTC's, or as In and OnDay say. The month in which clocks
// change may end an hour early or late.
const Month time.Duration = -1

// settings are the options of a limiter. They are comparable: limiters of one name that have the same share what is
// known.
type settings struct {
	timeout  time.Duration
	fallback string  // "" returns an error
	share    float64 // of FailLocal
	denies   bool
	units    int64
	hold     time.Duration
	ttl      time.Duration // of a Hold
	longest  time.Duration // how long a Hold is renewed; 0: never
}

// KeyPrefix puts a prefix before all the client's keys. A Policy's prefix has no colon: the key's part before the first
// one names the policy. Only New takes it.
func KeyPrefix(prefix string) Option {
	return func(o *options) { o.keyPrefix, o.ofClient = prefix, "KeyPrefix" }
}

// Observe calls f after every decision, in the caller's goroutine. f must not block. Lease renewals aren't decisions.
// Only New takes it.
func Observe(f func(Event)) Option { return func(o *options) { o.observe, o.ofClient = f, "Observe" } }

// Logger sets where log records go, by default slog.Default(). They are few, whatever the load: about outages, refused
// limiters and a wrong set-up. Only New takes it.
func Logger(l *slog.Logger) Option {
	return func(o *options) { o.logger, o.ofClient = cmp.Or(l, slog.Default()), "Logger" }
}

// Script is for servers without the module: the client sends the commands as a Lua script. Replies and keys are the
// same, also beside clients that use the module. A Policy needs the module. docs/managed.md lists the limits that the
// script refuses. Only New takes it.
func Script() Option { return func(o *options) { o.script, o.ofClient = true, "Script" } }

// Timeout bounds every call, from the verb to its return, by default to 50 ms. Set more than two round trips: Allow
// may wait for another call. A call may end a sixteenth of the Timeout earlier. If the caller's context ends before, so
// does the call, with the context's error.
func Timeout(limit time.Duration) Option { return func(s *options) { s.timeout = limit } }

// FailOpen admits if the server does not decide: instead of an error that is Undecided, decisions return a Result with
// the Source "failed-open" and the Cause. Still returned are other errors, the error of a caller's context that has ended,
// and all errors of verbs that do not decide, such as Refund, Settle and Peek.
func FailOpen() Option { return func(s *options) { s.fallback, s.share = failedOpen, 0 } }

// FailClosed denies if the server does not decide: instead of an Undecided error, decisions return a Result with the
// Source "failed-closed", the Cause and a RetryAfter of 1 s. FailOpen says which errors are still returned. Acquire
// goes on asking, and so waits through a restart or a failover.
func FailClosed() Option { return func(s *options) { s.fallback, s.share = failedClosed, 0 } }

// FailLocal lets this process decide by a share of the limit if the server does not: more than 0, at most 1. With 10
// processes, 0.1 admits about what the server would. Results have the Source "failed-local" and the Cause. A Policy
// returns its error. FailOpen says which errors are still returned.
func FailLocal(share float64) Option {
	return func(s *options) { s.fallback, s.share = failedLocal, share }
}

// DenyCache makes Allow and AllowN repeat a denial in this process until its RetryAfter has passed (for a Policy, at
// most 1 s). It notices late that another process has refunded units, deleted a key or changed a policy. A denied key
// takes about 400 bytes.
func DenyCache(on bool) Option { return func(s *options) { s.denies = on } }

// Budget makes Allow take up to this many units in one call, and spend them in this process within hold; 1 s is a good
// start. A hot key costs few calls. A crash admits nothing too much, and loses at most units. Budget(0, 0) takes none.
// It has no effect on a Policy, Slots or a limit with a Lockout. Limits may be exceeded by what is on its way back:
// docs/scaling.md has the bounds.
func Budget(units int64, hold time.Duration) Option {
	return func(s *options) { s.units, s.hold = units, hold }
}

// Holds sets how long after its last renewal a Hold lapses, 1 ms to 100 years, by default 30 s, and for how long it is
// renewed, by default an hour; 0: never, nor does the Client's Close end it.
func Holds(ttl, longest time.Duration) Option {
	return func(s *options) { s.ttl, s.longest = ttl, longest }
}

// apply sets options and checks them.
func (s *options) apply(options []Option) error {
	for _, option := range options {
		if option != nil {
			option(s)
		}
	}
	switch {
	case s.timeout <= 0:
		return params("a time limit must be more than 0, not %s", s.timeout)
	case s.fallback == failedLocal && !(s.share > 0 && s.share <= 1):
		return params("FailLocal needs a share of more than 0 and at most 1, not %v", s.share)
	case s.units < 0 || s.units > maxUnits || s.hold < 0 || (s.units > 0) != (s.hold > 0):
		return params("a budget cannot be %d units for %s", s.units, s.hold)
	case !sendable(s.ttl) || s.longest < 0:
		return params("a Hold cannot lapse after %s, nor be renewed for %s", s.ttl, s.longest)
	}
	return nil
}

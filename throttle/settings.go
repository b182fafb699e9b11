package throttle

import (
	"cmp"
	"log/slog"
	"time"
)

// Option sets how a client and its limiters behave. New takes the client's options and those that all its limiters
// share. Each limiter may add its own: Timeout, FailOpen, FailClosed, FailLocal, Coalesce, DenyCache, Budget and AwaitServer.
type Option func(*options)

// options is what an Option sets.
type options struct {
	settings
	keyPrefix string
	observe   func(Event)
	logger    *slog.Logger
	now       func() time.Time
	script    bool
	ofClient  string // the name of an option that only New takes
	shape     shape
}

// shape is what options say of the windows of a limiter.
type shape struct {
	exact, aligned bool
	zone           *time.Location
}

// of returns bounds of this shape.
func (s *shape) of(b bounds, err error) (bounds, error) {
	switch {
	case err != nil:
		return b, err
	case s.exact && b.kind != windowKind:
		return b, params("Exact is an option of a Window")
	case s.aligned && b.kind != quotaKind:
		return b, params("In is an option of a Quota")
	}
	b.exact, b.aligned, b.zone = s.exact, s.aligned, s.zone
	if b.kind == quotaKind && b.period == Month {
		b.period, b.monthly, b.aligned = 31*24*time.Hour, true, true
	}
	return b, nil
}

// Exact makes a Window keep an entry for each microsecond with calls, whatever its limit.
func Exact() Option { return func(o *options) { o.shape.exact = true } }

// In makes the windows of a Quota end at multiples of the period since the Unix epoch, by the clocks of a time zone: UTC
// if it is nil. A 24-hour window is thus a day in that zone. Each call sends the zone's current UTC offset, but a running
// window keeps its end. So around a clock change, a window may end up to an hour early or late, and a short one follows:
// up to twice the limit is admitted on that day.
func In(zone *time.Location) Option {
	return func(o *options) { o.shape.aligned, o.shape.zone = true, zone }
}

// Month is the period of a Quota whose windows are calendar months: UTC's, or as In says. The month in which clocks change
// may end an hour early or late.
const Month time.Duration = -1

// settings are the options of a limiter. They are comparable: limiters of one name that have the same share what is known.
type settings struct {
	timeout  time.Duration
	fallback Source  // "" returns an error
	share    float64 // of FailLocal
	coalesce bool
	denies   bool
	awaits   bool
	units    int64
	hold     time.Duration
}

// KeyPrefix puts a prefix before all the client's keys. A Policy needs a prefix without a colon, because the part of
// the key before its first colon names the policy. Only New takes it.
func KeyPrefix(prefix string) Option {
	return func(o *options) { o.keyPrefix, o.ofClient = prefix, "KeyPrefix" }
}

// Observe calls f after every decision, in the caller's goroutine. f must not block. Lease renewals aren't decisions.
// Only New takes it.
func Observe(f func(Event)) Option { return func(o *options) { o.observe, o.ofClient = f, "Observe" } }

// Logger sets where log records go, by default slog.Default(). The client logs one after 5 failures in a row, one when
// the server is back, and one for each of the first 100 refused limiters. At most once a minute, it logs a missing
// module and, for each limiter and cause, calls that fail until somebody changes the set-up or the limit. With Script,
// Check logs one record for each server. Only New takes it. nil means slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) { o.logger, o.ofClient = cmp.Or(l, slog.Default()), "Logger" }
}

// Clock sets the clock for deny caches, budgets, time zones and pauses in an outage, by default time.Now. Tests may
// pass their own. Only New takes it.
func Clock(now func() time.Time) Option { return func(o *options) { o.now, o.ofClient = now, "Clock" } }

// Script is for servers without the module, such as most managed services. The client sends the commands as a Lua
// script, by EVALSHA, and by EVAL if a server doesn't know the script. Replies and keys are the same as the module's,
// so some servers, or some clients, may use the module and others the script. A Policy needs the module and is refused.
// A limit that takes more than 104 days to drain, and a few others, give an ErrParams that says to use the module:
// docs/managed.md lists them. Only New takes it.
func Script() Option { return func(o *options) { o.script, o.ofClient = true, "Script" } }

// Timeout bounds every call, from the verb to its return, by default to 50 ms. A call may end a sixteenth of that
// earlier, because calls share timers. If the caller's context has an earlier deadline, the call ends then, with the
// context's error. Cancelling the context ends a call that is waiting for other calls. Once go-redis has the call, it
// ends with its reply or at the time limit.
func Timeout(limit time.Duration) Option { return func(s *options) { s.timeout = limit } }

// FailOpen admits if the server does not decide: instead of an error that is Undecided, decisions return a Result with
// the Source FailedOpen and the Cause. Still returned are other errors, the error of a caller's context that has ended,
// and all errors of verbs that do not decide, such as Refund, Settle and Peek.
func FailOpen() Option { return func(s *options) { s.fallback, s.share = FailedOpen, 0 } }

// FailClosed denies if the server does not decide: instead of an Undecided error, decisions return a Result with the
// Source FailedClosed, the Cause and a RetryAfter of 1 s. FailOpen says which errors are still returned.
func FailClosed() Option { return func(s *options) { s.fallback, s.share = FailedClosed, 0 } }

// FailLocal lets this process decide by a share of the limit if the server does not: more than 0, at most 1. With 10
// processes, 0.1 admits about what the server would. Results have the Source FailedLocal and the Cause. The process
// decides exactly, from nothing in use, for the 100,000 keys used last. A share below one unit is one unit in a longer
// period. A Policy, whose limits only the server knows, returns its error. FailOpen says which errors are still returned.
func FailLocal(share float64) Option {
	return func(s *options) { s.fallback, s.share = FailedLocal, share }
}

// Coalesce sets whether concurrent Allow calls for one key become one command, whose units go first come, first served.
// By default they do. A caller may wait for the command under way and then for its own, so Timeout should be longer
// than two round trips. With a Budget, calls always coalesce. Those of a Policy or of a limit with a Lockout never do.
func Coalesce(on bool) Option { return func(s *options) { s.coalesce = on } }

// DenyCache makes Allow and AllowN repeat a denial in this process, for the same key and quantity, until its RetryAfter
// has passed (for a Policy, at most 1 s). It is exact, except that it notices late when another process refunds units
// or deletes a key, and when a policy changes. It remembers each key's last denial, in about 400 bytes, and drops
// expired denials about every 10 s.
func DenyCache(on bool) Option { return func(s *options) { s.denies = on } }

// AwaitServer makes Acquire wait while the server is unavailable, as during a restart or a failover, until the end of
// its context. With FailOpen, Acquire instead returns at once, with a Lease that holds nothing.
func AwaitServer() Option { return func(o *options) { o.awaits = true } }

// Budget makes Allow take more units than it needs, up to the number units, and spend them in this process within hold;
// 1 s is a good start. Units are taken from the server before they are spent, so a crash never admits too many. A crash
// or a lost reply loses at most that number. Budget(0, 0) takes none. It has no effect on a Policy, Slots or a limit
// with a Lockout.
//
// The client asks for more when the units left would last two round trips, so a steady load never waits. It holds at
// most units.
//
// For a unit from the budget, Result.Remaining and ResetAfter come from the last reply. In advance, a call takes at
// most an eighth of what remains, and less if the limit takes longer than hold to drain. If several limits share a key,
// only one at a time holds units of it.
//
// With C clients, a Rate admits at most burst + rate x t + excess units in any length of time t. C counts every client
// that was open within the last hold, so a restart counts twice. The excess is at most C x units and at most rate x hold. Close gives units back, and other clients may take them while still spending units
// they took before. So if clients close, the second bound is rate x hold + (C - 1) x units. A test explores all orders
// of events in small worlds and finds no larger excess. For a Window or a Quota, the excess around a window's end is at
// most C x units.
func Budget(units int64, hold time.Duration) Option {
	return func(s *options) { s.units, s.hold = units, hold }
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
	case s.fallback == FailedLocal && !(s.share > 0 && s.share <= 1):
		return params("FailLocal needs a share of more than 0 and at most 1, not %v", s.share)
	case s.units < 0 || s.units > maxUnits || s.hold < 0 || (s.units > 0) != (s.hold > 0):
		return params("a budget cannot be %d units for %s", s.units, s.hold)
	}
	return nil
}

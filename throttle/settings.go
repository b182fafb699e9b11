package throttle

import (
	"log/slog"
	"time"
)

// Option sets how a client and its limiters behave. New takes the options of the client, and those that all its limiters
// have. Each limiter may add its own: Timeout, FailOpen, FailClosed, Coalesce, DenyCache, Budget and AwaitServer.
type Option func(*options)

// options is what an Option sets.
type options struct {
	settings
	keyPrefix string
	observe   func(Event)
	logger    *slog.Logger
	now       func() time.Time
	loose     bool
	script    bool
	ofClient  string // the name of an option that only New takes
}

// settings are the options of a limiter. They are comparable: limiters of one name must have the same.
type settings struct {
	timeout  time.Duration
	fallback Source // "" returns an error
	coalesce bool
	denies   bool
	awaits   bool
	units    int64
	hold     time.Duration
}

// KeyPrefix comes before every key of the client. A Policy needs a prefix without a colon, because the part of the key before
// its first colon names the policy. Only New takes it.
func KeyPrefix(prefix string) Option {
	return func(o *options) { o.keyPrefix, o.ofClient = prefix, "KeyPrefix" }
}

// Observe has a function that is called after every decision, in the caller's goroutine. It must not block. The renewals
// of a Lease aren't decisions. Only New takes it.
func Observe(f func(Event)) Option { return func(o *options) { o.observe, o.ofClient = f, "Observe" } }

// Logger gets one record after 5 failures in a row, one when the server is back, and one for each of the first 100 limiters
// that are refused. At most once a minute for each limiter and cause it gets one about calls that fail until somebody changes
// the set-up or the limit, and at most once a minute one about a missing module. With
// Script, Check logs one for each server. Without a Logger slog.Default() gets them. Only New takes it.
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger, o.ofClient = l, "Logger" } }

// Clock is the clock of deny caches, budgets, time zones and pauses in an outage: time.Now without it. Tests may pass their
// own. Only New takes it.
func Clock(now func() time.Time) Option { return func(o *options) { o.now, o.ofClient = now, "Clock" } }

// LooseTimeout lets New take a client of go-redis that ignores time limits. A call may then last as long as go-redis waits
// for a reply and tries to connect, whatever Timeout and the caller's context say. Only New takes it.
func LooseTimeout() Option { return func(o *options) { o.loose, o.ofClient = true, "LooseTimeout" } }

// Script is for servers that have not loaded the module, such as most managed services. The client sends the commands as
// a Lua script, by EVALSHA, and by EVAL if a server doesn't know the script. Replies and keys are those of the module, so
// some servers, or some clients, may use the module and others the script. A Policy needs the module and is refused. A
// limit that takes more than 104 days to drain, and a few others, are an ErrParams that says use the module: docs/managed.md
// has them. Only New takes it.
func Script() Option { return func(o *options) { o.script, o.ofClient = true, "Script" } }

// Timeout bounds every call, from the verb to its return: 50 ms if not set. A call may end a sixteenth of that earlier,
// because calls share timers. An earlier deadline of the caller's context ends the call, too, with the context's error. A
// cancelled context ends a call that waits for other calls. Once go-redis has a call, it ends with its reply or at the
// time limit.
func Timeout(limit time.Duration) Option { return func(s *options) { s.timeout = limit } }

// FailOpen makes decisions return a Result that admits if the server does not decide, with the Source FailedOpen and the
// Cause, in place of an ErrUnavailable. Other errors are still returned, as are that of the caller's context if it has
// ended, and those of verbs that do not decide, such as Refund, Settle and Peek.
func FailOpen() Option { return func(s *options) { s.fallback = FailedOpen } }

// FailClosed makes decisions return a Result that denies if the server does not decide, with the Source FailedClosed, the
// Cause and a RetryAfter of 1 s, in place of an ErrUnavailable. FailOpen says which errors are still returned.
func FailClosed() Option { return func(s *options) { s.fallback = FailedClosed } }

// Coalesce says whether concurrent calls of Allow for one key become one command, whose units are granted first come,
// first served. By default they do. A caller may wait for the command under way and then for its own. So Timeout should
// be longer than two round trips. A Budget coalesces in any case. Calls of a Policy and of a limit with a Lockout never do.
func Coalesce(on bool) Option { return func(s *options) { s.coalesce = on } }

// DenyCache makes Allow and AllowN deny in this process until the RetryAfter of a denial has passed, for the same key and
// quantity, for a Policy at most 1 s. It is exact, except that these are noticed late: refunds and deleted keys of other
// processes, and a policy that is changed. The last denial of a key is remembered, and takes about 400 bytes. Denials that have passed are dropped about every 10 s.
func DenyCache(on bool) Option { return func(s *options) { s.denies = on } }

// AwaitServer makes Acquire wait while the server is unavailable, as during a restart or a failover, until the end of its
// context. With FailOpen it returns at once a Lease that holds nothing.
func AwaitServer() Option { return func(o *options) { o.awaits = true } }

// Budget makes Allow take up to units units more than it needs, and spend them in this process for the time hold: 1 s is a
// good start. Units are taken from the server before they are spent, so a crash admits no unit too many. A crash or a lost
// reply loses at most units. Budget(0, 0) takes none. It has no effect on a Policy, Slots, and a limit with a Lockout.
//
// More units are asked for when as many are left as two round trips spend, so a steady load waits for none. The units held are
// never more than units.
//
// Result.Remaining and ResetAfter of a unit of the budget are by the last reply. A call takes in advance at most an eighth of
// what remains, and less of a limit that takes longer than hold to drain. If several limits meet at a key, one at a time
// holds units of it.
//
// With C clients, in any length of time t, at most burst + rate x t + excess units are admitted of a rate. The excess is at
// most C x units and at most rate x hold. Close gives units back. Other clients may take these units while they still spend
// units that they took before. So if clients close, the second bound is rate x hold + (C - 1) x units. A test explores all
// orders of events in small worlds and finds no larger excess. Around the end of a window or a quota the excess is at most
// C x units.
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
	case s.units < 0 || s.units > maxUnits || s.hold < 0 || (s.units > 0) != (s.hold > 0):
		return params("a budget cannot be %d units for %s", s.units, s.hold)
	}
	return nil
}

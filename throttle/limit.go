package throttle

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Limit is how much is admitted: a rate, a number of units, everything or nothing. Limits are values, which can be
// compared and made for each call.
type Limit struct{ limit bounds }

// bounds is how much a limiter admits. It is comparable.
type bounds struct {
	kind    kind
	answer  answer
	exact   bool           // of a window
	aligned bool           // of a quota
	day     int8           // of a quota whose period is a calendar month: the day on which windows begin, else 0
	units   int64          // that fit together
	count   int64          // of a rate: units that drain per period
	period  time.Duration  // more than 0, in whole milliseconds
	lockout time.Duration  // of a rate; 0: none
	zone    *time.Location // of an aligned quota; nil: UTC
}

type kind uint32 // fills the place of padding: limits are compared at each call

const (
	noKind kind = iota // of limits that come from data
	rateKind
	windowKind
	quotaKind
	policyKind
	slotsKind
	unitsKind // of a Limit: any but a rate
)

// answer says who decides.
type answer uint8

const (
	asks    answer = iota // the server
	admits                // nobody: the limit is Unlimited
	refuses               // nobody: the limit is Suspended
)

// PerSecond is Per for a second.
func PerSecond(count int64) Limit { return Per(count, time.Second) }

// PerMinute is Per for a minute.
func PerMinute(count int64) Limit { return Per(count, time.Minute) }

// PerHour is Per for an hour.
func PerHour(count int64) Limit { return Per(count, time.Hour) }

// Per drains count units per period. As many fit together, unless Burst says otherwise. In any length of time t, at most
// burst + t x count / period units are admitted. Count is 1 to 10^12; the period is a whole number of milliseconds up
// to 100 years. A year is 365 days.
func Per(count int64, period time.Duration) Limit {
	return Limit{bounds{kind: rateKind, units: count, count: count, period: period}}
}

// Burst returns the rate with room for this many units together: 1 to 10^12, which must drain within 100 years. The
// max_burst sent to the server is one less.
func (l Limit) Burst(units int64) Limit {
	l.limit.units = units
	return l
}

// Lockout returns the rate with a lockout: a denial begins a pause of this length, during which nothing is admitted. It
// is a whole number of milliseconds, 1 ms to 100 years.
func (l Limit) Lockout(pause time.Duration) Limit {
	if l.limit.lockout = pause; pause == 0 {
		l.limit.lockout = -1 // refused, where 0 would mean none
	}
	return l
}

// Units is the limit of a Window, a Quota or Slots: n units in the limiter's own period, or n holders, 1 to 10^12.
func Units(n int64) Limit { return Limit{bounds{kind: unitsKind, units: n}} }

// Unlimited is a limit, for any kind of limiter, that admits all calls without asking the server. Limit and Remaining of
// its Results are 1<<63 - 1.
func Unlimited() Limit { return Limit{bounds{answer: admits}} }

// Suspended is a limit, for any kind of limiter, that denies all calls without asking the server. Nothing is given back.
// RetryAfter is Never.
func Suspended() Limit { return Limit{bounds{answer: refuses}} }

// with returns the bounds with another limit of their kind.
func (b bounds) with(limit Limit) bounds {
	switch l := &limit.limit; {
	case l.answer != asks:
		b.answer = l.answer
		return b
	case b.kind == rateKind && l.kind == rateKind:
		return *l
	case b.kind != rateKind && l.kind == unitsKind:
		b.units, b.answer = l.units, asks
		return b
	}
	return bounds{kind: noKind}
}

// merges reports whether calls can be merged: those of a Policy, of Slots and of a limit with a Lockout would get
// another reply.
func (b *bounds) merges() bool { return b.kind != policyKind && b.kind != slotsKind && b.lockout == 0 }

// drain returns how long a full limiter takes to drain, rounded up, at most the longest Duration.
func (b *bounds) drain() time.Duration {
	if b.kind != rateKind {
		return b.period
	}
	span := math.Ceil(float64(b.units) * float64(b.period) / float64(b.count))
	if span >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(span)
}

// Part returns how much of a full limiter drains within a time.
func (b bounds) Part(within time.Duration) float64 {
	count := b.units
	if b.kind == rateKind {
		count = b.count
	}
	return float64(count) * float64(within) / float64(b.period) / float64(b.units)
}

// fixed returns the Result of a limit that the server is not asked about.
func (b *bounds) fixed(n int64) Result {
	if b.answer == admits {
		return Result{Allowed: true, Limit: math.MaxInt64, Remaining: math.MaxInt64, Granted: n, Source: fromLimit}
	}
	return Result{RetryAfter: Never, Source: fromLimit}
}

// String returns the words of the limit's command: "GO.THROTTLE 14 30 60000".
func (b bounds) String() string {
	if b.kind == noKind || b.answer != asks {
		return "limits from data"
	}
	words := append(b.appendLimit([]any{b.kind.command(take)}), b.last()...)
	if b.zone != nil {
		words = append(words, b.zone)
	}
	if b.lockout != 0 {
		words = append(words, "LOCKOUT", b.lockout.Milliseconds())
	}
	return strings.TrimSuffix(fmt.Sprintln(words...), "\n")
}

// The bounds of the server: see docs/commands.md.
const (
	maxUnits  = 1e12
	maxWeight = 1000
	maxPeriod = 100 * 365 * 24 * time.Hour
)

// check returns why the limit cannot be sent, or nil.
func (b *bounds) check() error {
	switch {
	case b.kind == policyKind || b.kind != noKind && b.answer != asks:
		return nil
	case b.kind == noKind || b.kind == unitsKind:
		return params("a Rate needs a Limit of Per, PerSecond, PerMinute or PerHour, and other limiters one of Units")
	case b.units < 1 || b.units > maxUnits || b.kind == rateKind && (b.count < 1 || b.count > maxUnits):
		return params("units and counts must be between 1 and 10^12: %s", *b)
	case b.lockout != 0 && !sendable(b.lockout):
		return params("the lockout %s is not a whole number of milliseconds between 1ms and 100 years", b.lockout)
	case !sendable(b.period):
		return params("the period %s is not a whole number of milliseconds between 1ms and 100 years", b.period)
	case b.kind == rateKind && b.drainsTooLong():
		return params("a burst must drain within 100 years: %s", *b)
	}
	return nil
}

// drainsTooLong reports whether units x period / count is more than maxPeriod.
func (b *bounds) drainsTooLong() bool {
	high, low := bits.Mul64(uint64(b.units), uint64(b.period))
	mostHigh, mostLow := bits.Mul64(uint64(maxPeriod), uint64(b.count))
	return high > mostHigh || high == mostHigh && low > mostLow
}

// sendable reports whether the server takes a length of time.
func sendable(span time.Duration) bool {
	return span >= time.Millisecond && span <= maxPeriod && span%time.Millisecond == 0
}

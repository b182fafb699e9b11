package throttle

import (
	"fmt"
	"math/bits"
	"time"
)

// Limit says how much is admitted. Limits are values: they can be compared, copied, and kept in variables. The zero
// Limit is refused with ErrParams, and so is one whose numbers the server does not take.
type Limit struct {
	kind    kind
	exact   bool          // of a window
	aligned bool          // of a quota
	limit   int64         // units that fit at once
	count   int64         // of a rate: units that drain per period
	period  time.Duration // more than 0, in whole milliseconds
	offset  time.Duration // of an aligned quota
	lockout time.Duration // of a rate; 0: none
}

type kind uint8

const (
	noKind kind = iota
	rateKind
	windowKind
	quotaKind
	policyKind
	slotsKind
)

// PerSecond drains count units a second; count units fit at once, unless Burst says otherwise.
func PerSecond(count int64) Limit { return Per(count, time.Second) }

// PerMinute drains count units a minute; count units fit at once, unless Burst says otherwise.
func PerMinute(count int64) Limit { return Per(count, time.Minute) }

// PerHour drains count units an hour; count units fit at once, unless Burst says otherwise.
func PerHour(count int64) Limit { return Per(count, time.Hour) }

// Per drains count units per period, decided by GCRA (GO.THROTTLE). In any length of time t at most
// burst + t x count / period units are admitted. Count is 1 to 10^12, the period is a whole number of milliseconds up to
// 100 years. A year is 365 days.
func Per(count int64, period time.Duration) Limit {
	return Limit{kind: rateKind, limit: count, count: count, period: period}
}

// Window admits at most limit units in any span of one period (GO.WINDOW). All callers of one key must use the same
// period. Both have the ranges that Per has.
func Window(limit int64, period time.Duration) Limit {
	return Limit{kind: windowKind, limit: limit, period: period}
}

// Quota admits limit units per fixed window (GO.QUOTA). A window begins with its first unit, unless Align says
// otherwise. Up to twice the limit is admitted around the end of a window. Both have the ranges that Per has.
func Quota(limit int64, period time.Duration) Limit {
	return Limit{kind: quotaKind, limit: limit, period: period}
}

// Policy leaves the limits to the server's configuration (GO.POLICY). The key's part before the first colon names the
// policy; Options.KeyPrefix belongs to the key. The limits cannot be given back to, settled, reserved or combined by All.
func Policy() Limit { return Limit{kind: policyKind} }

// Slots are limit concurrent holders (GO.LEASE), for Lease and All. A slot that is not renewed lapses after ttl. Both have
// the ranges that Per has.
func Slots(limit int64, ttl time.Duration) Limit {
	return Limit{kind: slotsKind, limit: limit, period: ttl}
}

// Burst returns a rate of which units units fit at once, 1 to 10^12. They must drain within 100 years. On the wire
// max_burst is one less.
func (l Limit) Burst(units int64) Limit {
	l.must(rateKind)
	l.limit = units
	return l
}

// Lockout returns a rate with which a denial begins a pause of this length: nothing is admitted meanwhile. It is a
// whole number of milliseconds, 1 ms to 100 years.
func (l Limit) Lockout(pause time.Duration) Limit {
	l.must(rateKind)
	if l.lockout = pause; pause == 0 {
		l.lockout = -1 // refused, where 0 would mean none
	}
	return l
}

// Exact returns a window that keeps an entry for each microsecond with calls, whatever its limit. Otherwise a window
// with a limit above 120 shares entries, and may deny for up to 1/120 of its period longer.
func (l Limit) Exact() Limit {
	l.must(windowKind)
	l.exact = true
	return l
}

// Align returns a quota whose windows end at multiples of the period since the Unix epoch, plus this offset. The offset
// is minus the UTC offset: days in UTC+1 have Align(-time.Hour). It is a whole number of milliseconds, up to 100 years either
// way.
func (l Limit) Align(offset time.Duration) Limit {
	l.must(quotaKind)
	l.aligned, l.offset = true, offset
	return l
}

// must makes the limit one that every verb refuses, if it is of another kind.
func (l *Limit) must(k kind) {
	if l.kind != k {
		l.kind = noKind
	}
}

// Units returns how many units fit at once; 0 for a policy.
func (l Limit) Units() int64 { return l.limit }

// Period returns the time in which the units of a window or quota, or the count of a rate, are admitted; 0 for a policy.
func (l Limit) Period() time.Duration { return l.period }

// Span returns how long a full limiter takes to be empty, if nobody takes more: of a rate burst x period / count, rounded
// up to nanoseconds. 0 for a policy.
func (l Limit) Span() time.Duration {
	if l.kind != rateKind || l.check() != nil {
		return l.period
	}
	return drain(l.limit, l.period, l.count)
}

// NextUnit returns the longest time until a limiter in use has one more unit: of a rate period / count, of a window or
// quota the period. 0 for a policy and Slots.
func (l Limit) NextUnit() time.Duration {
	switch {
	case l.check() != nil || l.kind == policyKind || l.kind == slotsKind:
		return 0
	case l.kind == rateKind:
		return drain(1, l.period, l.count)
	}
	return l.period
}

// drain returns units x period / count, rounded up, at most the longest Duration.
func drain(units int64, period time.Duration, count int64) time.Duration {
	hi, lo := bits.Mul64(uint64(units), uint64(period))
	lo, carry := bits.Add64(lo, uint64(count-1), 0)
	if hi += carry; hi >= uint64(count) {
		return 1<<63 - 1
	}
	span, _ := bits.Div64(hi, lo, uint64(count))
	return time.Duration(min(span, 1<<63-1))
}

// String tells the limit as a person would: "30 per 1m0s, burst 15".
func (l Limit) String() string {
	switch l.kind {
	case rateKind:
		s := fmt.Sprintf("%d per %s, burst %d", l.count, l.period, l.limit)
		if l.lockout != 0 {
			s += fmt.Sprintf(", lockout %s", l.lockout)
		}
		return s
	case windowKind:
		return fmt.Sprintf("%d in any %s", l.limit, l.period)
	case quotaKind:
		if l.aligned {
			return fmt.Sprintf("%d per %s, aligned at %s", l.limit, l.period, l.offset)
		}
		return fmt.Sprintf("%d per %s", l.limit, l.period)
	case policyKind:
		return "the server's policy"
	case slotsKind:
		return fmt.Sprintf("%d slots of %s", l.limit, l.period)
	}
	return "no limit"
}

// The bounds of the server: see docs/commands.md.
const (
	maxUnits  = 1e12
	maxPeriod = 100 * 365 * 24 * time.Hour
)

// check returns why the limit cannot be sent, or nil.
func (l *Limit) check() error {
	switch {
	case l.kind == policyKind:
		return nil
	case l.kind == noKind:
		return params("a limit must be made by Per, Window, Quota, Policy or Slots, and Burst, Lockout, Exact and Align must fit its kind")
	case l.limit < 1 || l.limit > maxUnits:
		return params("a limit of %d units is not between 1 and 10^12", l.limit)
	case l.kind == rateKind && (l.count < 1 || l.count > maxUnits):
		return params("a count of %d units is not between 1 and 10^12", l.count)
	}
	if err := checkSpan("a period", l.period, time.Millisecond); err != nil {
		return err
	}
	if l.lockout != 0 {
		if err := checkSpan("a lockout", l.lockout, time.Millisecond); err != nil {
			return err
		}
	}
	if l.offset != 0 {
		return checkSpan("an offset", l.offset.Abs(), time.Millisecond)
	}
	return nil
}

// checkSpan refuses a time that is not a whole number of milliseconds, or not in [least, 100 years].
func checkSpan(what string, span, least time.Duration) error {
	if span < least || span > maxPeriod || span%time.Millisecond != 0 {
		return params("%s of %s is not a whole number of milliseconds between %s and 100 years", what, span, least)
	}
	return nil
}

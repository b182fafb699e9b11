package funnel

import (
	"math"
	"math/bits"
)

// Bounds of the parameters. Within these bounds no sum or product in this package overflows.
const (
	// MaxLimit bounds limit and count. A quantity is at most MaxLimit + 1 either way.
	MaxLimit = 1_000_000_000_000
	// MaxPeriod bounds a period and limit x period / count: 100 years of 365 days.
	MaxPeriod Nanos = 100 * 365 * 24 * 3600 * Second
	// MaxInUse bounds the units in use in a sliding or fixed window, which Force may take past its limit.
	MaxInUse = 1_000_000_000_000_000
)

// Rate is a sustained rate of Count units per Period. The interval, which is the time that one unit takes to drain, is
// the fraction Period/Count, so 7 per 60 s is as exact as 6 per 60 s. The zero value means that no rate is known.
type Rate struct {
	Period Nanos // 1 to MaxPeriod
	Count  int64 // 1 to MaxLimit
}

// equal reports whether both rates have the same interval. Neither rate need be in lowest
// terms. An unknown rate equals no rate.
func (r Rate) equal(o Rate) bool {
	h1, l1 := bits.Mul64(uint64(r.Period), uint64(o.Count))
	h2, l2 := bits.Mul64(uint64(o.Period), uint64(r.Count))
	return h1 == h2 && l1 == l2 && r.Count != 0
}

// Reduced returns the rate in lowest terms, the form in which it is stored.
func (r Rate) Reduced() Rate {
	a := gcd(int64(r.Period), r.Count)
	return Rate{r.Period / Nanos(a), r.Count / a}
}

// gcd returns the greatest common divisor of two positive numbers (Euclid's algorithm).
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Drain returns the time that units >= 0 take to drain, in ns, rounded up and saturating at 2^63-1.
func (r Rate) Drain(units int64) Nanos {
	return r.span(units).ceil()
}

// Drains reports whether units >= 0 drain within MaxPeriod.
func (r Rate) Drains(units int64) bool {
	h1, l1 := bits.Mul64(uint64(units), uint64(r.Period))
	h2, l2 := bits.Mul64(uint64(MaxPeriod), uint64(r.Count))
	return h1 < h2 || h1 == h2 && l1 <= l2
}

// span is a length of time: ns + frac/Count nanoseconds, 0 <= frac < Count. Count is that of a
// rate. Two spans are combined only if both belong to the same rate.
type span struct {
	ns, frac uint64
}

// maxSpan is the longest span that [Rate.span] returns, in ns. The sum of two such spans fits in a uint64.
const maxSpan = math.MaxInt64

// maxConverted is the longest span that convert returns, in ns. maxConverted - 2 x MaxPeriod
// does not fit in an int64, so a wait that is computed from such a span saturates.
const maxConverted = 15 << 60

// span returns the time that units take to drain, saturating at maxSpan.
func (r Rate) span(units int64) span {
	hi, lo := bits.Mul64(uint64(units), uint64(r.Period))
	count := uint64(r.Count)
	if hi == 0 {
		if count == 1 {
			return span{min(lo, maxSpan), 0}
		}
		if q := lo / count; q < maxSpan {
			return span{q, lo - q*count}
		}
		return span{maxSpan, 0}
	}
	if hi >= count {
		return span{maxSpan, 0}
	}
	q, rem := bits.Div64(hi, lo, count)
	if q >= maxSpan {
		return span{maxSpan, 0}
	}
	return span{q, rem}
}

// units returns how many whole units drain in s, and the rest of s in 1/Count ns. The number
// saturates at 2^63-1; the rest is then 0.
func (r Rate) units(s span) (whole int64, rest uint64) {
	hi, lo := r.parts(s)
	period := uint64(r.Period)
	if hi == 0 {
		q := lo / period
		return int64(min(q, math.MaxInt64)), lo - q*period
	}
	if hi >= period {
		return math.MaxInt64, 0
	}
	q, rem := bits.Div64(hi, lo, period)
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), rem
}

// unitsUp returns how many units drain in s, rounded up, saturating at 2^63-1.
func (r Rate) unitsUp(s span) int64 {
	whole, rest := r.units(s)
	if rest > 0 && whole < math.MaxInt64 {
		whole++
	}
	return whole
}

// plus returns s + t. Neither may exceed maxSpan.
func (r Rate) plus(s, t span) span {
	s.ns += t.ns
	s.frac += t.frac
	if s.frac >= uint64(r.Count) {
		s.frac -= uint64(r.Count)
		s.ns++
	}
	return s
}

// minus returns s - t, or zero if t is longer.
func (r Rate) minus(s, t span) span {
	if s.shorter(t) {
		return span{}
	}
	s.ns -= t.ns
	if s.frac < t.frac {
		s.frac += uint64(r.Count)
		s.ns--
	}
	s.frac -= t.frac
	return s
}

func (s span) shorter(t span) bool {
	return s.ns < t.ns || s.ns == t.ns && s.frac < t.frac
}

// ceil returns s in whole nanoseconds, rounded up, saturating at 2^63-1.
func (s span) ceil() Nanos {
	if s.frac > 0 {
		s.ns++
	}
	return Nanos(min(s.ns, math.MaxInt64))
}

// convert returns how long usage takes to drain at the rate to, if the same units take s at the
// rate from. The result is rounded up by less than 1/to.Count ns, so rounding never makes room.
// The result is exact if s is a whole number of units. It saturates at maxConverted.
func convert(s span, from, to Rate) span {
	hi, lo := from.parts(s)
	hi, lo = mulDivUp(hi, lo, uint64(to.Period), uint64(from.Period))
	if hi >= uint64(to.Count) {
		return span{maxConverted, 0}
	}
	ns, frac := bits.Div64(hi, lo, uint64(to.Count))
	if ns >= maxConverted {
		return span{maxConverted, 0}
	}
	return span{ns, frac}
}

// parts returns s in 1/Count ns, as a number of 128 bits.
func (r Rate) parts(s span) (hi, lo uint64) {
	hi, lo = bits.Mul64(s.ns, uint64(r.Count))
	lo, carry := bits.Add64(lo, s.frac, 0)
	return hi + carry, lo
}

// mulDivUp returns n x m / d for a number n of 128 bits, rounded up. The upper half of the result saturates.
func mulDivUp(hi, lo, m, d uint64) (uint64, uint64) {
	top, middle := bits.Mul64(hi, m)
	over, bottom := bits.Mul64(lo, m)
	middle, carry := bits.Add64(middle, over, 0)
	if top += carry; top >= d {
		return math.MaxUint64, 0
	}
	hi, rest := bits.Div64(top, middle, d)
	lo, rest = bits.Div64(rest, bottom, d)
	if rest > 0 {
		lo, carry = bits.Add64(lo, 1, 0)
		hi = max(hi, hi+carry)
	}
	return hi, lo
}

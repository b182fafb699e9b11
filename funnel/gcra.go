package funnel

// ThrottleState is what a GCRA limiter remembers: the theoretical arrival time (TAT), which
// is the instant at which nothing will be in use, the rate that the TAT was computed with, and
// the end of a lockout. The zero value is a limiter with nothing in use.
type ThrottleState struct {
	TAT    Nanos // whole ns since the Unix epoch, >= 0
	Frac   int64 // and Frac/Rate.Count ns more, 0 <= Frac < Rate.Count
	Rate   Rate  // in lowest terms; zero if unknown (an adopted redis-cell key): then TAT is taken as it is
	Locked Nanos // the end of the lockout, since the Unix epoch; 0 if there is none
}

// ThrottleParams are the parameters of one call. UpTo, Force, Reserve and Lockout exclude each
// other.
type ThrottleParams struct {
	Limit    int64 // 1 to MaxLimit; Rate.Fits(Limit)
	Rate     Rate  // Count 1 to MaxLimit, Period 1 to MaxPeriod
	Quantity int64 // at most MaxLimit + 1 either way; 0 peeks, a negative quantity refunds
	UpTo     bool  // take what is left if that is less than Quantity
	Force    bool  // charge Quantity, past the limit if need be
	Reserve  bool  // take a slot in the future, at most MaxWait from now
	MaxWait  Nanos // 0 to MaxPeriod; only with Reserve
	Lockout  Nanos // how long nothing is admitted after a denial, up to MaxPeriod; 0: no lockout
}

// Void reports whether nothing is in use at now and no lockout stands.
func (s ThrottleState) Void(now Nanos) bool { return s.empty(now) && s.Locked <= now }

// empty reports whether nothing is in use at now.
func (s *ThrottleState) empty(now Nanos) bool {
	return s.TAT < now || s.TAT == now && s.Frac == 0
}

// left returns how long it takes from now until nothing is in use. Something must be in use.
func (s *ThrottleState) left(now Nanos) span {
	return span{uint64(s.TAT - now), uint64(s.Frac)}
}

// Throttle decides one call by GCRA (ITU-T I.371, Annex A).
//
// At most Limit units fit, and they drain at Rate. A call is admitted if its quantity fits.
// Quantity 0 is a peek: it changes nothing, and it is limited only while more than Limit is in
// use, or while a lockout stands. A negative quantity gives back up to what is in use and is
// always admitted; if nothing is in use it changes nothing. In any length of time t at most Limit + t x Rate units are admitted.
//
// With UpTo a call takes min(Quantity, what is left) and is limited only if nothing is left.
// If less than Quantity was granted, RetryAfter is the wait for one more unit.
//
// With Force every call is admitted, a peek too. Usage above Limit is debt, which drains at
// Rate. The verdict is TooMuch if usage would then take longer than MaxPeriod to drain.
//
// With Reserve a call is admitted if it will fit within MaxWait. Its units are taken now, and
// Wait tells when the caller may act. The verdict is TooMuch if usage would drain only after
// the year 2262. Without refunds, calls that act at their slots take at most Limit + t x Rate
// units in any length of time t.
//
// With Lockout a denial of 1 to Limit units begins a lockout, unless one stands. Until its end
// no call that asks for units is admitted, except with Force. Usage drains meanwhile.
// Nothing moves the end of a lockout.
//
// If Rate is not the state's own rate, what is in use carries over in units. The changed
// state is stored even if the call is denied: otherwise usage would go on draining at the old
// rate and RetryAfter would be too short. Usage that would drain only after the year 2262
// at the new rate cannot be stored. Then the state keeps its own rate: a denied call changes
// nothing but the lockout, and a refund takes units off at the old rate. A changed limit needs
// nothing stored; usage above the limit drains at the rate.
//
// now is an instant since the Unix epoch, before 2162.
func Throttle(now Nanos, s ThrottleState, p *ThrottleParams) (next ThrottleState, v Verdict) {
	used, rate, carry := s.inUse(now, p.Rate)
	locked := max(s.Locked-now, 0)
	if carry == tooLong && p.Quantity < 0 {
		return s.refundAtOwnRate(now, rate, locked, p)
	}
	capacity := rate.span(p.Limit)
	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		quantity = rate.upTo(quantity, used, capacity, locked)
	}
	after := used
	switch {
	case quantity < 0:
		after = rate.minus(used, rate.span(-quantity))
		v.Granted = rate.refund(used, -quantity)
		v.Change = refunded(v.Granted, after == (span{}) && locked == 0)
	case p.Force:
		if quantity > 0 {
			if after = rate.charge(used, quantity); after.ceil() > MaxPeriod {
				return s, Verdict{TooMuch: true}
			}
			v.Granted, v.Change = quantity, Store
		}
	case quantity > p.Limit:
		v.Limited, v.RetryAfter = true, Never
	default:
		asked := rate.span(quantity)
		fits := rate.minus(capacity, asked) // the call fits if no more is in use
		if p.Reserve && quantity > 0 {
			fits.ns += uint64(p.MaxWait)
		}
		if locked > 0 || fits.less(used) {
			v.Limited = true
			if quantity > 0 {
				if carry == carried {
					v.Change = Store
				}
				if p.Lockout > 0 && locked == 0 {
					locked, v.Change = p.Lockout, Store
				}
			}
			v.RetryAfter = max(rate.minus(used, fits).ceil(), locked)
		} else if quantity > 0 {
			after = rate.plus(used, asked)
			v.Granted, v.Change = quantity, Store
			if quantity < p.Quantity {
				v.RetryAfter = rate.minus(rate.plus(after, rate.span(1)), capacity).ceil()
			}
			if p.Reserve {
				if v.Wait = rate.minus(after, capacity).ceil(); after.ceil() > maxNanos-now {
					return s, Verdict{TooMuch: true}
				}
			}
		}
	}
	v.ResetAfter = after.ceil()
	if locked > 0 {
		v.ResetAfter = max(v.ResetAfter, locked)
	} else {
		v.Remaining, _ = rate.units(rate.minus(capacity, after))
	}
	if carry == tooLong && v.Granted == 0 { // nothing but the lockout may have changed
		next = s
	} else {
		next.set(now, after, rate)
	}
	next.lock(now, locked)
	return next, v
}

// upTo returns the quantity that a call with UpTo asks for: what is left if that is less than
// quantity, but at least 1. While a lockout stands nothing is left.
func (r Rate) upTo(quantity int64, used, capacity span, locked Nanos) int64 {
	if locked > 0 {
		return 1
	}
	left, _ := r.units(r.minus(capacity, used))
	return grantUpTo(quantity, left)
}

// charge returns what is in use after units more, however many. It is longer than MaxPeriod, and
// not exact, if used or the units alone are.
func (r Rate) charge(used span, units int64) span {
	if used.ns > uint64(MaxPeriod) {
		return used
	}
	return r.plus(used, r.span(units))
}

// refund returns how many units a refund gives back when s is in use and units are offered. The
// result is negative or 0. A unit that has partly drained counts as one.
func (r Rate) refund(s span, units int64) int64 {
	return -min(units, r.unitsUp(s))
}

// set makes used be in use at now.
func (s *ThrottleState) set(now Nanos, used span, rate Rate) {
	s.TAT, s.Frac, s.Rate = now+Nanos(min(used.ns, uint64(maxNanos-now))), int64(used.frac), rate
}

// lock sets a lockout of this length from now on; 0: none.
func (s *ThrottleState) lock(now, locked Nanos) {
	s.Locked = 0
	if locked > 0 {
		s.Locked = now + min(locked, maxNanos-now)
	}
}

// refundAtOwnRate gives units back to a state whose usage cannot be stored at the call's
// rate, which is rate in lowest terms. The state keeps its own rate. The verdict's Remaining
// and ResetAfter are those at the call's rate. locked is the rest of the lockout.
func (s *ThrottleState) refundAtOwnRate(now Nanos, rate Rate, locked Nanos, p *ThrottleParams) (next ThrottleState, v Verdict) {
	own, used := s.Rate, s.left(now)
	after := own.minus(used, own.span(-p.Quantity))
	v.Granted = own.refund(used, -p.Quantity)
	v.Change = refunded(v.Granted, after == (span{}) && locked == 0)
	told := convert(after, own, rate)
	v.ResetAfter = max(told.ceil(), locked)
	if locked == 0 {
		v.Remaining, _ = rate.units(rate.minus(rate.span(p.Limit), told))
	}
	next.set(now, after, own)
	next.lock(now, locked)
	return next, v
}

// carry says whether usage was converted from the state's rate to another one.
type carry int8

const (
	ownRate carry = iota // no: nothing is in use, or the rate is the state's own
	carried              // yes
	tooLong              // yes, and the TAT at the new rate would lie after 2262
)

// inUse returns what is in use at now, as the time it takes to drain, and the rate of that
// time in lowest terms.
func (s *ThrottleState) inUse(now Nanos, rate Rate) (used span, r Rate, c carry) {
	same := s.Rate.equal(rate)
	if same {
		rate = s.Rate
	} else {
		rate = rate.Reduced()
	}
	if s.empty(now) {
		return span{}, rate, ownRate
	}
	used = s.left(now)
	if same || s.Rate.Count == 0 {
		return used, rate, ownRate
	}
	used = convert(used, s.Rate, rate)
	if used.ns >= uint64(maxNanos-now) {
		return used, rate, tooLong
	}
	return used, rate, carried
}

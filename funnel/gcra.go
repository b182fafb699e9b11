package funnel

// ThrottleState is what a GCRA limiter remembers: the theoretical arrival time (TAT), which
// is the instant at which nothing will be in use, and the rate that the TAT was computed
// with. The zero value is a limiter with nothing in use.
type ThrottleState struct {
	TAT  Nanos // whole ns since the Unix epoch, >= 0
	Frac int64 // and Frac/Rate.Count ns more, 0 <= Frac < Rate.Count
	Rate Rate  // in lowest terms; zero if unknown (an adopted redis-cell key): then TAT is taken as it is
}

// ThrottleParams are the parameters of one call.
type ThrottleParams struct {
	Limit    int64 // 1 to MaxLimit; Rate.Fits(Limit)
	Rate     Rate  // Count 1 to MaxLimit, Period 1 to MaxPeriod
	Quantity int64 // at most MaxLimit + 1 either way; 0 peeks, a negative quantity refunds
	UpTo     bool  // take what is left if that is less than Quantity
}

// Void reports whether nothing is in use at now.
func (s ThrottleState) Void(now Nanos) bool {
	return s.TAT < now || s.TAT == now && s.Frac == 0
}

// Throttle decides one call by GCRA (ITU-T I.371, Annex A).
//
// At most Limit units fit, and they drain at Rate. A call is admitted if its quantity fits.
// Quantity 0 is a peek: it changes nothing, and it is limited only while more than Limit is in
// use. A negative quantity gives back up to what is in use and is always admitted. In any
// length of time t at most Limit + t x Rate units are admitted.
//
// With UpTo a call takes min(Quantity, what is left) and is limited only if nothing is left.
// If less than Quantity was granted, RetryAfter is the wait for one more unit.
//
// If Rate is not the state's own rate, what is in use carries over in units. The changed
// state is stored even if the call is denied: otherwise usage would go on draining at the old
// rate and RetryAfter would be too short. Usage that would drain only after the year 2262
// at the new rate cannot be stored. Then the state keeps its own rate: a denied call changes
// nothing, and a refund takes units off at the old rate. A changed limit needs nothing stored;
// usage above the limit drains at the rate.
//
// now is an instant since the Unix epoch, before 2162.
func Throttle(now Nanos, s ThrottleState, p ThrottleParams) (next ThrottleState, v Verdict) {
	used, rate, carry := s.inUse(now, p.Rate)
	if carry == tooLong && p.Quantity < 0 {
		return s.refundAtOwnRate(now, rate, p)
	}
	capacity := rate.span(p.Limit)
	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		left, _ := rate.units(rate.minus(capacity, used))
		quantity = grantUpTo(quantity, left)
	}
	after := used
	switch {
	case quantity < 0:
		after = rate.minus(used, rate.span(-quantity))
		v.Granted, v.Change = rate.refund(used, -quantity), Store
		if after == (span{}) {
			v.Change = Forget
		}
	case quantity > p.Limit:
		v.Limited, v.RetryAfter = true, Never
	default:
		wanted := rate.plus(used, rate.span(quantity))
		if capacity.less(wanted) {
			v.Limited = true
			v.RetryAfter = rate.minus(wanted, capacity).ceil()
			if carry == carried && quantity > 0 {
				v.Change = Store
			}
		} else if quantity > 0 {
			after = wanted
			v.Granted, v.Change = quantity, Store
			if quantity < p.Quantity {
				v.RetryAfter = rate.minus(rate.plus(after, rate.span(1)), capacity).ceil()
			}
		}
	}
	v.Remaining, _ = rate.units(rate.minus(capacity, after))
	v.ResetAfter = after.ceil()
	return stateAfter(now, after, rate), v
}

// refund returns how many units a refund gives back when s is in use and units are offered. The
// result is negative or 0. A unit that has partly drained counts as one.
func (r Rate) refund(s span, units int64) int64 {
	whole, rest := r.units(s)
	if rest > 0 && whole < units {
		whole++
	}
	return -min(units, whole)
}

// stateAfter returns the state in which used is in use at now.
func stateAfter(now Nanos, used span, rate Rate) ThrottleState {
	return ThrottleState{TAT: now + Nanos(min(used.ns, uint64(maxNanos-now))), Frac: int64(used.frac), Rate: rate}
}

// refundAtOwnRate gives units back to a state whose usage cannot be stored at the call's
// rate, which is rate in lowest terms. The state keeps its own rate. The verdict's Remaining
// and ResetAfter are those at the call's rate.
func (s ThrottleState) refundAtOwnRate(now Nanos, rate Rate, p ThrottleParams) (next ThrottleState, v Verdict) {
	own, used := s.Rate, span{uint64(s.TAT - now), uint64(s.Frac)}
	after := own.minus(used, own.span(-p.Quantity))
	v.Granted, v.Change = own.refund(used, -p.Quantity), Store
	if after == (span{}) {
		v.Change = Forget
	}
	told := convert(after, own, rate)
	v.Remaining, _ = rate.units(rate.minus(rate.span(p.Limit), told))
	v.ResetAfter = told.ceil()
	return stateAfter(now, after, own), v
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
func (s ThrottleState) inUse(now Nanos, rate Rate) (used span, r Rate, c carry) {
	same := s.Rate.equal(rate)
	if same {
		rate = s.Rate
	} else {
		rate = rate.Reduced()
	}
	if s.Void(now) {
		return span{}, rate, ownRate
	}
	used = span{uint64(s.TAT - now), uint64(s.Frac)}
	if same || s.Rate.Count == 0 {
		return used, rate, ownRate
	}
	used = convert(used, s.Rate, rate)
	if used.ns >= uint64(maxNanos-now) {
		return used, rate, tooLong
	}
	return used, rate, carried
}

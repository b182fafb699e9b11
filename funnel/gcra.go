package funnel

import "math"

// State is what a GCRA limiter remembers: the theoretical arrival time (TAT), the
// instant at which nothing will be in use, and the rate that it was computed with.
// The zero value is a limiter with nothing in use.
type State struct {
	TAT  int64 // whole ns since the Unix epoch, >= 0
	Frac int64 // and Frac/Rate.Count ns more, 0 <= Frac < Rate.Count
	Rate Rate  // in lowest terms; zero if unknown (an adopted redis-cell key): then TAT is taken as it is
}

// Void reports whether nothing is in use at now.
func (s State) Void(now int64) bool {
	return s.TAT < now || s.TAT == now && s.Frac == 0
}

// Change says what a call did to the state.
type Change int8

const (
	Keep   Change = iota // nothing: the state stays as it was, or stays absent
	Store                // the returned state replaces the old one
	Forget               // nothing is in use any more: no state is needed
)

// Verdict is the answer to one call.
type Verdict struct {
	Limited    bool
	Remaining  int64 // whole units left after the call, 0 to limit
	RetryAfter int64 // ns, rounded up; -1 if admitted or if never to be admitted
	ResetAfter int64 // ns, rounded up; 0 if nothing is in use
	Granted    int64 // units taken; negative: given back
	Change     Change
}

// Never is the RetryAfter of a call that was admitted, or that cannot ever be.
const Never = -1

// Throttle decides one call by GCRA.
//
// At most limit units fit, and they drain at rate. A call is admitted if its
// quantity fits; quantity 0 is a peek, which changes nothing and is limited only
// while more than limit is in use; a negative quantity gives back up to what is in
// use and is always admitted. In any length of time t no more than
// limit + t x rate units are admitted.
//
// If rate is not the state's own, what is in use carries over in units, and the
// changed state is stored even if the call is denied: else usage would go on
// draining at the old rate and RetryAfter would be too short. A limit that changed
// needs nothing stored; usage above it drains at the rate. Usage that would drain only
// after the year 2262, which takes very different rates on one key, is cut there.
//
// now is in ns since the Unix epoch; limit, rate.Count: 1 to MaxLimit; rate.Period:
// 1 to MaxPeriod; rate.Fits(limit); |quantity| <= MaxLimit + 1.
func Throttle(now int64, s State, limit int64, rate Rate, quantity int64) (next State, v Verdict) {
	used, rate, carried := s.inUse(now, rate)
	capacity := rate.span(limit)
	v.RetryAfter = Never
	after := used
	switch {
	case quantity < 0:
		after = rate.minus(used, rate.span(-quantity))
		whole, rest := rate.units(used)
		if rest > 0 && whole < -quantity {
			whole++
		}
		v.Granted = -min(-quantity, whole)
		v.Change = Store
		if after == (span{}) {
			v.Change = Forget
		}
	case quantity > limit:
		v.Limited = true
	default:
		wanted := rate.plus(used, rate.span(quantity))
		if capacity.less(wanted) {
			v.Limited = true
			v.RetryAfter = rate.minus(wanted, capacity).ceil()
			if carried && quantity > 0 {
				v.Change = Store
			}
		} else if quantity > 0 {
			after = wanted
			v.Granted = quantity
			v.Change = Store
		}
	}
	v.Remaining, _ = rate.units(rate.minus(capacity, after))
	v.ResetAfter = after.ceil()
	next.TAT = now + min(int64(after.ns), math.MaxInt64-now)
	next.Frac, next.Rate = int64(after.frac), rate
	return next, v
}

// inUse returns what is in use at now as the time it takes to drain, the rate (in
// lowest terms) to go on with, and whether usage was carried over from another rate.
func (s State) inUse(now int64, rate Rate) (used span, r Rate, carried bool) {
	same := s.Rate.equal(rate)
	if same {
		rate = s.Rate
	} else {
		rate = rate.Reduced()
	}
	if s.Void(now) {
		return span{}, rate, false
	}
	used = span{uint64(s.TAT - now), uint64(s.Frac)}
	if same || s.Rate.Count == 0 {
		return used, rate, false
	}
	used = convert(used, s.Rate, rate)
	// The TAT must stay representable: usage past the year 2262 is cut there.
	if room := uint64(math.MaxInt64 - now); used.ns >= room {
		used = span{room, 0}
	}
	return used, rate, true
}

package oracle

import (
	"cmp"
	"fmt"
	"math"
	"math/big"

	"gothrottle/funnel"
)

// lastInstant is the last instant that funnel.Nanos can hold, in the year 2262.
const lastInstant funnel.Nanos = math.MaxInt64

// Throttle models a GCRA limiter as a leaky bucket. The bucket holds an exact number of
// units, which drain at a rate. A lockout is an instant beside the bucket.
type Throttle struct {
	at     *big.Rat     // an instant, in ns since the Unix epoch; nil: nothing is in use
	units  *big.Rat     // the units in use at that instant
	rate   *big.Rat     // the units that drain in one ns; nil if unknown
	locked funnel.Nanos // when the lockout ends, in ns since the Unix epoch; 0: there is none
}

// String writes all that the bucket holds: buckets with one text reply to any calls alike.
func (o *Throttle) String() string { return fmt.Sprint(o.at, o.units, o.rate, o.locked) }

// NewThrottle returns a bucket that drains at rate and is empty at the instant empty, in ns since the Unix epoch. The
// zero rate means unknown, as for an adopted redis-cell key: each call then sees the usage that its own rate would
// drain until that instant. A lockout ends at the instant end, in ns since the Unix epoch; 0 means that there is none.
func NewThrottle(empty *big.Rat, rate funnel.Rate, end funnel.Nanos) *Throttle {
	o := &Throttle{at: empty, units: new(big.Rat), locked: end}
	if rate.Count != 0 {
		o.rate = perNano(rate)
	}
	return o
}

// Locked returns when the lockout ends, in ns since the Unix epoch, or 0 if there is none. A
// lockout that has ended stays until a call changes the state.
func (o *Throttle) Locked() funnel.Nanos { return o.locked }

// State returns the instant at which the bucket is empty, in ns since the Unix epoch, and
// its rate in lowest terms. The zero rate means that the rate is unknown.
func (o *Throttle) State() (empty *big.Rat, rate funnel.Rate) {
	if o.at == nil {
		return new(big.Rat), rate
	}
	if o.rate == nil {
		return o.at, rate
	}
	rate = funnel.Rate{Period: funnel.Nanos(o.rate.Denom().Int64()), Count: o.rate.Num().Int64()}
	return add(o.at, quo(o.units, o.rate)), rate
}

// Clone returns a copy.
func (o *Throttle) Clone() *Throttle {
	c := *o // no method changes a number in place
	return &c
}

// Void reports whether nothing is in use at now and no lockout is in force.
func (o *Throttle) Void(now funnel.Nanos) bool {
	empty, _ := o.State()
	return empty.Cmp(whole(now)) <= 0 && o.locked <= now
}

// Call decides and applies one call. A call with TooMuch gets no other answer.
//
// Usage whose rate changes is rounded up to what drains in whole 1/Count ns, because
// [funnel.ThrottleState] cannot hold more digits. Usage that would drain only at
// 2^63-1 ns since the Unix epoch, in the year 2262, or later keeps its old rate.
func (o *Throttle) Call(now funnel.Nanos, p funnel.ThrottleParams) (v funnel.Verdict) {
	rate, limit := perNano(p.Rate), whole(p.Limit)
	next, changed := o.advanced(now, rate)
	rest := max(next.locked-now, 0) // of the lockout
	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		quantity = min(quantity, max(saturated(floor(sub(limit, next.units))), 1))
	}
	missing := sub(add(next.units, whole(quantity)), limit)
	early := quo(missing, rate) // by how long the call comes too early; negative if it does not
	if p.Reserve && quantity > 0 {
		early = sub(early, whole(p.MaxWait))
	}
	wait := max(funnel.Nanos(saturated(ceil(early))), rest)
	switch {
	case p.Raise:
		missing := sub(whole(quantity), next.units)
		if missing.Sign() <= 0 {
			break
		}
		next.units, next.rate = whole(quantity), rate
		if next.tooMuch(now, p) {
			return funnel.Verdict{TooMuch: true}
		}
		v.Granted, v.Change = saturated(ceil(missing)), funnel.Store
	case quantity < 0:
		v.Granted = next.giveBack(-quantity)
		switch {
		case v.Granted == 0:
		case next.Void(now):
			v.Change = funnel.Forget
		default:
			v.Change = funnel.Store
		}
	case p.Settle && changed: // as if it had denied
		v.Change, v.Limited, v.RetryAfter = funnel.Store, wait > 0, max(wait, 0)
	case quantity == 0 && (wait <= 0 || p.Force): // a peek that is not limited
	case quantity == 0: // nothing is stored, so the bucket drains on as it is
		v.Limited, v.RetryAfter = true, rest
		if o.rate != nil {
			rate = o.rate
		}
		if over := sub(o.inUse(now, rate), limit); over.Sign() > 0 {
			v.RetryAfter = max(drain(over, rate), rest)
		}
		rate = perNano(p.Rate)
	case p.Force || quantity <= p.Limit && wait <= 0:
		next.units, next.rate = add(next.units, whole(quantity)), rate
		if next.tooMuch(now, p) {
			return funnel.Verdict{TooMuch: true}
		}
		v.Granted, v.Change = quantity, funnel.Store
		if quantity < p.Quantity {
			v.RetryAfter = drain(add(missing, whole(int64(1))), rate)
		}
		if p.Reserve {
			v.Wait = max(drain(missing, rate), 0)
		}
	case quantity > p.Limit:
		v.Limited, v.RetryAfter = true, funnel.Never
	default:
		if p.Lockout > 0 && rest == 0 {
			next.locked, rest = now+min(p.Lockout, lastInstant-now), p.Lockout
			changed, wait = true, max(wait, rest)
		}
		if o.rate != nil && o.rate.Cmp(rate) != 0 && next.rate == o.rate { // what is in use drains on as it is
			fits := add(sub(limit, whole(quantity)), mul(whole(p.MaxWait), rate))
			over := sub(next.units, new(big.Rat).SetInt(floor(fits)))
			wait = max(drain(over, o.rate), rest)
		}
		v.Limited, v.RetryAfter = true, wait
		if changed {
			v.Change = funnel.Store
		}
	}
	v.Remaining = max(saturated(floor(sub(limit, next.units))), 0)
	if v.Change == funnel.Keep { // so it drains on as it is
		next.units, next.rate = o.inUse(now, rate), cmp.Or(o.rate, rate)
	}
	v.ResetAfter = drain(next.units, next.rate)
	if rest > 0 {
		v.Remaining, v.ResetAfter = 0, max(v.ResetAfter, rest)
	}
	switch v.Change {
	case funnel.Store:
		*o = next
	case funnel.Forget:
		*o = Throttle{}
	}
	return v
}

// advanced returns the bucket as a call at now and at rate would store it if the call took nothing. A lockout that has
// ended is left out. changed reports whether what is in use has got another rate.
func (o *Throttle) advanced(now funnel.Nanos, rate *big.Rat) (next Throttle, changed bool) {
	next = Throttle{at: whole(now), units: o.inUse(now, rate), rate: rate}
	if o.locked > now {
		next.locked = o.locked
	}
	if next.units.Sign() == 0 || o.rate == nil || o.rate.Cmp(rate) == 0 {
		return next, false
	}
	rounded := roundUp(next.units, rate)
	if add(whole(now), quo(rounded, rate)).Cmp(whole(lastInstant)) >= 0 {
		next.rate = o.rate
		return next, false
	}
	next.units = rounded
	return next, true
}

// giveBack takes up to units out of the bucket. It returns how many it took, as a negative number.
func (o *Throttle) giveBack(units int64) (granted int64) {
	granted = -min(units, saturated(ceil(o.units)))
	if o.units = sub(o.units, whole(units)); o.units.Sign() < 0 {
		o.units = new(big.Rat)
	}
	return granted
}

// tooMuch reports whether a call with FORCE or RESERVE must not leave the bucket as it is at now.
// After FORCE and RAISE all must drain within 100 years, after RESERVE by the last instant.
func (o *Throttle) tooMuch(now funnel.Nanos, p funnel.ThrottleParams) bool {
	empties := quo(o.units, o.rate)
	return (p.Force || p.Raise) && empties.Cmp(whole(funnel.MaxPeriod)) > 0 ||
		p.Reserve && empties.Cmp(whole(lastInstant-now)) > 0
}

// inUse returns the units in use at now, for a call at rate.
func (o *Throttle) inUse(now funnel.Nanos, rate *big.Rat) *big.Rat {
	if o.at == nil {
		return new(big.Rat)
	}
	if o.rate != nil {
		rate = o.rate
	}
	units := sub(o.units, mul(sub(whole(now), o.at), rate))
	if units.Sign() < 0 {
		return new(big.Rat)
	}
	return units
}

// roundUp returns the smallest number of units, not less than units, that drains in a
// multiple of 1/count ns, where count is the rate's in lowest terms.
func roundUp(units, rate *big.Rat) *big.Rat {
	count := new(big.Rat).SetInt(rate.Num())
	grains := new(big.Rat).SetInt(ceil(mul(quo(units, rate), count)))
	return mul(quo(grains, count), rate)
}

// drain returns the time that units take to drain, rounded up.
func drain(units, rate *big.Rat) funnel.Nanos {
	return funnel.Nanos(saturated(ceil(quo(units, rate))))
}

func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

func whole[N ~int64](n N) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }
func add(x, y *big.Rat) *big.Rat   { return new(big.Rat).Add(x, y) }
func sub(x, y *big.Rat) *big.Rat   { return new(big.Rat).Sub(x, y) }
func mul(x, y *big.Rat) *big.Rat   { return new(big.Rat).Mul(x, y) }
func quo(x, y *big.Rat) *big.Rat   { return new(big.Rat).Quo(x, y) }
func floor(x *big.Rat) *big.Int    { return new(big.Int).Div(x.Num(), x.Denom()) } // Euclidean
func ceil(x *big.Rat) *big.Int     { n := floor(new(big.Rat).Neg(x)); return n.Neg(n) }

// saturated returns n, or the nearest number that an int64 can hold.
func saturated(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	if n.Sign() < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

package oracle

import (
	"math"
	"math/big"

	"gothrottle/funnel"
)

// lastInstant is the last instant that funnel.Nanos can hold, in the year 2262.
const lastInstant funnel.Nanos = math.MaxInt64

// Throttle models a GCRA limiter as a leaky bucket. The bucket holds an exact number of
// units, which drain at a rate.
type Throttle struct {
	at    *big.Rat // an instant, in ns since the Unix epoch; nil: nothing is in use
	units *big.Rat // the units in use at that instant
	rate  *big.Rat // the units that drain in one ns; nil if unknown
}

// NewThrottle returns a bucket that drains at rate and is empty at the instant empty, in ns
// since the Unix epoch. The zero rate means unknown, as for an adopted redis-cell key: each
// call then sees the usage that its own rate would drain until that instant.
func NewThrottle(empty *big.Rat, rate funnel.Rate) *Throttle {
	o := &Throttle{at: empty, units: new(big.Rat)}
	if rate.Count != 0 {
		o.rate = perNano(rate)
	}
	return o
}

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

// Void reports whether nothing is in use at now.
func (o *Throttle) Void(now funnel.Nanos) bool {
	empty, _ := o.State()
	return empty.Cmp(whole(now)) <= 0
}

// Call decides and applies one call.
//
// Usage whose rate changes is rounded up to what drains in whole 1/Count ns, because
// [funnel.ThrottleState] cannot hold more digits. Usage that would drain only at
// 2^63-1 ns since the Unix epoch, in the year 2262, or later keeps its old rate.
func (o *Throttle) Call(now funnel.Nanos, p funnel.ThrottleParams) (v funnel.Verdict) {
	rate, limit := perNano(p.Rate), whole(p.Limit)
	units := o.inUse(now, rate)
	next := Throttle{at: whole(now), rate: rate}
	changed := units.Sign() > 0 && o.rate != nil && o.rate.Cmp(rate) != 0
	tooLong := false
	if changed {
		rounded := roundUp(units, rate)
		if tooLong = add(whole(now), quo(rounded, rate)).Cmp(whole(lastInstant)) >= 0; tooLong {
			next.rate = o.rate
		} else {
			units = rounded
		}
	}

	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		quantity = min(quantity, max(saturated(floor(sub(limit, units))), 1))
	}
	missing := sub(add(units, whole(quantity)), limit)
	switch {
	case quantity < 0:
		v.Granted, v.Change = -min(-quantity, saturated(ceil(units))), funnel.Store
		if units = add(units, whole(quantity)); units.Sign() <= 0 {
			units, v.Change = new(big.Rat), funnel.Forget
		}
	case quantity > p.Limit:
		v.Limited, v.RetryAfter = true, funnel.Never
	case missing.Sign() > 0:
		v.Limited, v.RetryAfter = true, drain(missing, rate)
		if changed && !tooLong && quantity > 0 {
			v.Change = funnel.Store
		}
	case quantity > 0:
		units, next.rate = add(units, whole(quantity)), rate
		v.Granted, v.Change = quantity, funnel.Store
		if quantity < p.Quantity {
			v.RetryAfter = drain(add(missing, whole(int64(1))), rate)
		}
	}
	v.Remaining = max(saturated(floor(sub(limit, units))), 0)
	v.ResetAfter = drain(units, rate)
	switch next.units = units; v.Change {
	case funnel.Store:
		*o = next
	case funnel.Forget:
		*o = Throttle{}
	}
	return v
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

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

// ThrottleParams are the parameters of one call. UpTo, Force, Reserve, Raise and Lockout exclude each other.
type ThrottleParams struct {
	Limit    int64 // 1 to MaxLimit; so many units drain within MaxPeriod
	Rate     Rate  // Count 1 to MaxLimit, Period 1 to MaxPeriod
	Quantity int64 // at most MaxLimit + 1 either way; 0 peeks, a negative quantity refunds
	UpTo     bool  // take what is left if that is less than Quantity
	Force    bool  // charge Quantity, past the limit if need be
	Reserve  bool  // take a slot in the future, at most MaxWait from now
	MaxWait  Nanos // 0 to MaxPeriod; only with Reserve
	Lockout  Nanos // how long nothing is admitted after a denial, up to MaxPeriod; 0: no lockout
	Raise    bool  // usage becomes at least Quantity, which is not negative
	Settle   bool  // a peek, because a share denies the call: it stores a changed rate as a denial does
}

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
// At most Limit units fit, and they drain at Rate. A call is admitted if its quantity fits. Quantity 0 is a peek: it
// changes nothing, and it is limited only while more than Limit is in use, or during a lockout. A negative quantity
// gives back up to what is in use and is always admitted; if nothing is in use it changes nothing. In any length of
// time t at most Limit + t x Rate units are admitted.
//
// With UpTo a call takes min(Quantity, what is left) and is limited only if nothing is left.
// If less than Quantity was granted, RetryAfter is the wait for one more unit.
//
// With Force every call is admitted, a peek too. Usage above Limit is debt, which drains at
// Rate. The verdict is TooMuch if usage would then take longer than MaxPeriod to drain.
//
// With Raise every call is admitted, and it takes as many units as are missing to Quantity. A part of a unit counts as one
// in Granted. The verdict is TooMuch as with Force.
//
// With Reserve a call is admitted if it will fit within MaxWait. Its units are taken now, and Wait says when the caller
// may act. The verdict is TooMuch if usage would drain only after the year 2262. Without refunds, calls that act at
// their slots take at most Limit + t x Rate units in any length of time t.
//
// With Lockout a denial of 1 to Limit units begins a lockout, unless there is one. Until its end no call that asks for
// units is admitted, except with Force. Usage drains meanwhile. Nothing moves the end of a lockout.
//
// If Rate is not the state's own rate, what is in use carries over in units. The changed state is stored even if the
// call is denied: otherwise usage would go on draining at the old rate and RetryAfter would be too short. Usage that
// would drain only after the year 2262 at the new rate cannot be stored. Then the state keeps its own rate: a denied
// call changes nothing but the lockout, and a refund takes units off at the old rate. A peek and a call for more than
// Limit store nothing either. Where nothing is stored, ResetAfter and RetryAfter are at the state's own rate. A changed
// limit needs nothing stored; usage above the limit drains at the rate.
//
// now is an instant since the Unix epoch, before 2162.
func Throttle(now Nanos, s ThrottleState, p *ThrottleParams) (next ThrottleState, v Verdict) {
	p.Throttle(now, &s, &next, &v)
	return next, v
}

// Throttle is the function Throttle without copies: it sets next and v. next is not s.
func (p *ThrottleParams) Throttle(now Nanos, s, next *ThrottleState, v *Verdict) {
	*v = Verdict{}
	var c throttling // a literal would be made twice: once to be copied
	c.ThrottleParams = p
	c.use(now, s)
	c.capacity, c.after = c.rate.span(p.Limit), c.used
	c.locked = max(s.Locked-now, 0)
	if p.Quantity < 0 || p.Force || p.UpTo || p.Reserve || p.Raise || p.Settle {
		if c.byMode(now, s, next, v) {
			return
		}
	} else {
		c.take(v, p.Quantity, 0)
	}
	v.ResetAfter = max(c.after.ceil(), c.locked)
	if c.carry != ownRate && (v.Change == Keep || c.carry == tooLong && v.Granted == 0) {
		c.timesAtOwnRate(now, s, v)
	}
	if c.locked == 0 {
		v.Remaining, _ = c.rate.units(c.rate.minus(c.capacity, c.after))
	}
	if c.carry == tooLong && v.Granted == 0 { // nothing but the lockout may have changed
		*next = *s
	} else {
		next.set(now, c.after, c.rate)
	}
	next.lock(now, c.locked)
}

// byMode decides a refund or a call with a mode. It reports whether all is set. It is not inlined, as timesAtOwnRate: a call
// without them is as short as it can be.
//
//go:noinline
func (c *throttling) byMode(now Nanos, s, next *ThrottleState, v *Verdict) (done bool) {
	p := c.ThrottleParams
	switch {
	case p.Quantity < 0 && c.carry == tooLong:
		c.refundAtOwnRate(now, s, next, v)
		return true
	case p.Quantity < 0:
		c.refund(v)
	case p.Force:
		c.charge(v)
	case p.Raise:
		c.raise(now, s, v)
	case p.UpTo:
		c.takeUpTo(v)
	case p.Reserve && p.Quantity > 0:
		c.reserve(v, now)
	default:
		c.take(v, p.Quantity, 0)
		if p.Settle && c.carry == carried {
			v.Change = Store
		}
	}
	if v.TooMuch {
		*next, *v = *s, Verdict{TooMuch: true}
	}
	return v.TooMuch
}

// timesAtOwnRate sets the times of a call after which usage drains at the state's own rate: a peek, or a denial that stores
// no rate.
//
//go:noinline
func (c *throttling) timesAtOwnRate(now Nanos, s *ThrottleState, v *Verdict) {
	v.ResetAfter = max(s.left(now).ceil(), c.locked)
	if v.Limited && v.RetryAfter != Never {
		units, _ := c.rate.units(c.fits)
		v.RetryAfter = max(s.Rate.minus(s.left(now), s.Rate.span(units)).ceil(), c.locked)
	}
}

// throttling is one call while it is decided: one method for each mode.
type throttling struct {
	*ThrottleParams
	rate     Rate  // that of the call, in lowest terms; all spans are at this rate
	capacity span  // the time that Limit units take to drain
	used     span  // what is in use before the call
	after    span  // and after it
	fits     span  // of a denied call: how much may be in use for it to fit
	locked   Nanos // the rest of the lockout; 0 if there is none
	carry    carry
}

// take admits quantity >= 0 units if they fit within wait.
func (c *throttling) take(v *Verdict, quantity int64, wait Nanos) {
	if quantity > c.Limit {
		v.Limited, v.RetryAfter = true, Never
		return
	}
	asked := c.rate.span(quantity)
	fits := c.rate.minus(c.capacity, asked) // the call fits if no more is in use
	fits.ns += uint64(wait)
	if c.locked > 0 || fits.shorter(c.used) {
		c.deny(v, quantity, fits)
	} else if quantity > 0 {
		c.after = c.rate.plus(c.used, asked)
		v.Granted, v.Change = quantity, Store
	}
}

// deny denies quantity units, which fit if no more than fits is in use and there is no lockout. It may begin a lockout.
func (c *throttling) deny(v *Verdict, quantity int64, fits span) {
	v.Limited, c.fits = true, fits
	if quantity > 0 {
		if c.carry == carried {
			v.Change = Store
		}
		if c.Lockout > 0 && c.locked == 0 {
			c.locked, v.Change = c.Lockout, Store
		}
	}
	v.RetryAfter = max(c.rate.minus(c.used, fits).ceil(), c.locked)
}

// takeUpTo takes what is left, if that is less than Quantity. During a lockout nothing is left.
func (c *throttling) takeUpTo(v *Verdict) {
	left := int64(0)
	if c.locked == 0 {
		left, _ = c.rate.units(c.rate.minus(c.capacity, c.used))
	}
	quantity := grantUpTo(c.Quantity, left)
	c.take(v, quantity, 0)
	if v.Granted > 0 && quantity < c.Quantity {
		v.RetryAfter = c.rate.minus(c.rate.plus(c.after, c.rate.span(1)), c.capacity).ceil()
	}
}

// reserve takes units that may fit only later, at most MaxWait from now.
func (c *throttling) reserve(v *Verdict, now Nanos) {
	c.take(v, c.Quantity, c.MaxWait)
	if v.Granted > 0 {
		v.Wait = c.rate.minus(c.after, c.capacity).ceil()
		v.TooMuch = c.after.ceil() > maxNanos-now
	}
}

// charge takes units, past the limit if need be.
func (c *throttling) charge(v *Verdict) {
	if c.Quantity == 0 {
		return
	}
	// Only spans of up to MaxPeriod may be added. A longer one is too much by itself.
	if c.used.ns <= uint64(MaxPeriod) {
		c.after = c.rate.plus(c.used, c.rate.span(c.Quantity))
	}
	v.TooMuch = c.after.ceil() > MaxPeriod
	v.Granted, v.Change = c.Quantity, Store
}

// raise takes the units that are missing to Quantity.
func (c *throttling) raise(now Nanos, s *ThrottleState, v *Verdict) {
	least := c.rate.span(c.Quantity)
	below := c.used.shorter(least)
	if c.carry == tooLong { // then both spans may be cut
		below = s.left(now).shorter(s.Rate.span(c.Quantity))
	}
	if below {
		c.after, v.TooMuch = least, least.ceil() > MaxPeriod
		v.Granted, v.Change = c.rate.unitsUp(c.rate.minus(least, c.used)), Store
	}
}

// refund gives units back.
func (c *throttling) refund(v *Verdict) {
	c.after = c.rate.minus(c.used, c.rate.span(-c.Quantity))
	v.Granted = c.rate.refund(c.used, -c.Quantity)
	v.Change = refunded(v.Granted, c.after == (span{}) && c.locked == 0)
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

// refundAtOwnRate gives units back to a state whose usage cannot be stored at the call's rate. The state keeps its own
// rate. The verdict's Remaining is that at the call's rate.
func (c *throttling) refundAtOwnRate(now Nanos, s, next *ThrottleState, v *Verdict) {
	own, used := s.Rate, s.left(now)
	after := own.minus(used, own.span(-c.Quantity))
	v.Granted = own.refund(used, -c.Quantity)
	v.Change = refunded(v.Granted, after == (span{}) && c.locked == 0)
	converted := convert(after, own, c.rate)
	v.ResetAfter = max(after.ceil(), c.locked)
	if c.locked == 0 {
		v.Remaining, _ = c.rate.units(c.rate.minus(c.capacity, converted))
	}
	next.set(now, after, own)
	next.lock(now, c.locked)
}

// carry says whether usage was converted from the state's rate to another one.
type carry int8

const (
	ownRate carry = iota // no: nothing is in use, or the rate is the state's own
	carried              // yes
	tooLong              // yes, and the TAT at the new rate would lie after 2262
)

// use sets what is in use at now, as the time it takes to drain, and the rate of that time in lowest terms.
func (c *throttling) use(now Nanos, s *ThrottleState) {
	c.rate = s.Rate
	if !s.empty(now) {
		c.used = s.left(now)
	}
	if !s.Rate.equal(c.Rate) {
		c.changeRate(now, s)
	}
}

// changeRate converts what is in use to the rate of the call.
//
//go:noinline
func (c *throttling) changeRate(now Nanos, s *ThrottleState) {
	c.rate = c.Rate.Reduced()
	if s.Rate.Count == 0 || s.empty(now) {
		return
	}
	c.used, c.carry = convert(c.used, s.Rate, c.rate), carried
	if c.used.ns >= uint64(maxNanos-now) {
		c.carry = tooLong
	}
}

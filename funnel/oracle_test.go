package funnel

import (
	"math"
	"math/big"
	"testing"
)

// bucket is the slow oracle: a leaky bucket that holds an exact number of units
// and leaks. It knows nothing of arrival times, spans or remainders. The zero
// value is empty.
type bucket struct {
	at    int64    // the instant at which it was last written to, ns
	units *big.Rat // in use at that instant
	rate  *big.Rat // units per ns that leak; nil if unknown
	empty int64    // if the rate is unknown: when nothing will be in use
}

// bucketOf reads a state as its fields document it.
func bucketOf(s State) bucket {
	if s.Rate.Count == 0 {
		return bucket{empty: s.TAT}
	}
	rate := big.NewRat(s.Rate.Count, s.Rate.Period)
	return bucket{at: s.TAT, units: mul(big.NewRat(s.Frac, s.Rate.Count), rate), rate: rate}
}

// state is the reverse; fits is false if the instant lies past the last one that a
// state can hold.
func (b bucket) state() (s State, fits bool) {
	if b.rate == nil {
		return State{TAT: b.empty}, true
	}
	count := b.rate.Num()
	tat := add(whole(b.at), quo(b.units, b.rate))
	ns := floor(tat)
	frac := floor(mul(sub(tat, new(big.Rat).SetInt(ns)), new(big.Rat).SetInt(count)))
	rate := Rate{Period: b.rate.Denom().Int64(), Count: count.Int64()}
	return State{TAT: ns.Int64(), Frac: frac.Int64(), Rate: rate}, ns.IsInt64()
}

// inUse returns how much is in use at now for a caller with this rate, and whether
// it was carried over.
func (b bucket) inUse(now int64, rate *big.Rat) (units *big.Rat, carried bool) {
	if b.rate == nil {
		return mul(whole(max(b.empty-now, 0)), rate), false
	}
	leaked := mul(sub(whole(now), whole(b.at)), b.rate)
	units = sub(b.units, leaked)
	if units.Sign() <= 0 {
		return new(big.Rat), false
	}
	if b.rate.Cmp(rate) == 0 {
		return units, false
	}
	// As documented at units and convert: saturated, and rounded up to whole 1/count ns.
	grain := new(big.Rat).SetFrac(big.NewInt(1), rate.Num())
	drain := mul(new(big.Rat).SetInt(ceil(quo(quo(units, rate), grain))), grain)
	if last := whole(math.MaxInt64 - now); drain.Cmp(last) > 0 {
		drain = last
	}
	return mul(drain, rate), true
}

// throttle decides as the specification says, by units alone.
func (b *bucket) throttle(now, limit int64, r Rate, quantity int64) Verdict {
	rate := big.NewRat(r.Count, r.Period)
	units, carried := b.inUse(now, rate)
	missing := sub(add(units, whole(quantity)), whole(limit))
	v := Verdict{RetryAfter: -1}
	switch {
	case quantity < 0:
		v.Granted = -min(-quantity, saturated(ceil(units)))
		v.Change = Forget
		if units = add(units, whole(quantity)); units.Sign() > 0 {
			v.Change = Store
		} else {
			units = new(big.Rat)
		}
	case quantity > limit:
		v.Limited = true
	case missing.Sign() > 0:
		v.Limited, v.RetryAfter = true, saturated(ceil(quo(missing, rate)))
		if carried && quantity > 0 {
			v.Change = Store
		}
	case quantity > 0:
		units = add(units, whole(quantity))
		v.Granted, v.Change = quantity, Store
	}
	if free := floor(sub(whole(limit), units)); free.Sign() > 0 {
		v.Remaining = free.Int64()
	}
	v.ResetAfter = saturated(ceil(quo(units, rate)))
	switch v.Change {
	case Store:
		*b = bucket{at: now, units: units, rate: rate}
	case Forget:
		*b = bucket{}
	}
	return v
}

// limiter is a state and its oracle, which must agree after every call.
type limiter struct {
	state  State
	oracle bucket
}

func (l *limiter) call(t testing.TB, now, limit int64, rate Rate, quantity int64) Verdict {
	t.Helper()
	before := l.state
	next, v := Throttle(now, before, limit, rate, quantity)
	l.state = apply(before, next, v)
	want := l.oracle.throttle(now, limit, rate, quantity)
	stored, fits := l.oracle.state()
	if v != want {
		t.Fatalf("Throttle(%d, %+v, %d, %v, %d) =\n%+v, want\n%+v",
			now, before, limit, rate, quantity, v, want)
	}
	if !fits && l.state.TAT == math.MaxInt64 {
		l.oracle = bucketOf(l.state)
	} else if l.state != stored {
		t.Fatalf("Throttle(%d, %+v, %d, %v, %d) stored\n%+v, want\n%+v",
			now, before, limit, rate, quantity, l.state, stored)
	}
	return v
}

func TestThrottle_agreesWithOracle(t *testing.T) {
	eachSeed(t, 400, func(t *testing.T, w *walk) {
		var l limiter
		if w.IntN(8) == 0 {
			l.state = State{TAT: w.now + w.logUniform(1<<60)}
			l.oracle = bucketOf(l.state)
		}
		for range 60 {
			w.change(30)
			w.wait()
			if w.IntN(50) == 0 {
				w.now -= w.logUniform(1 << 40)
			}
			quantity := w.quantity()
			w.last = l.call(t, w.now, w.limit, w.rate, quantity)
		}
	})
}

// The corners of every parameter: nothing wraps where a sum or a product is largest.
func TestThrottle_saturates(t *testing.T) {
	rates := []Rate{
		{1, 1}, {1, MaxLimit}, {MaxPeriod, 1}, {MaxPeriod, MaxLimit}, {MaxPeriod - 1, MaxLimit - 1}, {60e9, 7},
	}
	limits := []int64{1, 2, MaxLimit - 1, MaxLimit}
	quantities := []int64{-MaxLimit - 1, -1, 0, 1, MaxLimit, MaxLimit + 1}
	for _, now := range []int64{1, origin, math.MaxInt64 - MaxPeriod, math.MaxInt64 - 1, math.MaxInt64} {
		for _, tat := range []int64{0, now, now/2 + math.MaxInt64/2, math.MaxInt64 - 1, math.MaxInt64} {
			for _, old := range append(rates, Rate{}) {
				old = reducedOrZero(old)
				for _, frac := range []int64{0, max(old.Count-1, 0)} {
					s := State{TAT: tat, Frac: frac, Rate: old}
					for _, rate := range rates {
						for _, limit := range limits {
							if !rate.Fits(limit) {
								continue
							}
							for _, quantity := range quantities {
								l := limiter{s, bucketOf(s)}
								inRange(t, limit, l.call(t, now, limit, rate, quantity), l.state)
							}
						}
					}
				}
			}
		}
	}
}

// Calls at the seams of the arithmetic, which chance does not find.
func TestThrottle_seams(t *testing.T) {
	const hour = int64(3600e9)
	for _, c := range []struct {
		seam  string
		now   int64
		state State
		limit int64
		rate  Rate
	}{
		{"The fraction carries into the high word of the units' product",
			origin, State{origin + 18446744, MaxLimit - 1, Rate{1_000_000_007, MaxLimit}},
			MaxLimit, Rate{1_000_000_009, MaxLimit}},
		{"Units' product just below and just above one word",
			origin, State{origin + 18446744, 0, Rate{1_000_000_007, MaxLimit}},
			MaxLimit, Rate{1_000_000_009, MaxLimit}},
		{"More than 2^63 units in use",
			origin, State{origin + 27670116, 0, Rate{2, MaxLimit - 1}}, MaxLimit, Rate{1, MaxLimit}},
		{"More than 2^63 units in use, and their product is one word",
			origin, State{origin + 5e18, 0, Rate{1, 2}}, MaxLimit, Rate{1, 4}},
		{"2^63 - 1 units and a half in use",
			origin, State{origin + 6148914691236517205, 0, Rate{2, 3}}, 1, Rate{2, 3}},
		{"Rates of which the products differ by 2^64",
			origin, State{origin + 60e9, 0, Rate{60e9, 7}}, 16, Rate{12327206912, 307445736}},
		{"Nearly six units at one in 100 years are nearly 2^64 ns and a part",
			origin, State{origin + 6*hour - 1, 0, Rate{hour, 1}}, 1, Rate{MaxPeriod, 1}},
		{"Nearly twelve units at two in 100 years, by way of the 128-bit quotient",
			origin, State{origin + 12*hour - 1, 0, Rate{hour, 1}}, 1, Rate{MaxPeriod - 1, 2}},
		{"2^63 - 1 ns and a fraction, rounded up",
			0, State{math.MaxInt64, 6, Rate{60e9, 7}}, 1, Rate{60e9, 7}},
	} {
		t.Run(c.seam, func(t *testing.T) {
			for _, quantity := range []int64{0, 1, -1} {
				l := limiter{c.state, bucketOf(c.state)}
				inRange(t, c.limit, l.call(t, c.now, c.limit, c.rate, quantity), l.state)
			}
		})
	}
}

func reducedOrZero(r Rate) Rate {
	if r.Count == 0 {
		return r
	}
	return r.Reduced()
}

// inRange checks what holds for every reply and every stored state.
func inRange(t testing.TB, limit int64, v Verdict, s State) {
	t.Helper()
	if v.Remaining < 0 || v.Remaining > limit || v.ResetAfter < 0 || v.RetryAfter < -1 || v.RetryAfter == 0 {
		t.Fatalf("out of range with limit %d: %+v", limit, v)
	}
	if s.TAT < 0 || s.Frac < 0 || s.Frac > 0 && s.Frac >= s.Rate.Count || s.Rate != reducedOrZero(s.Rate) {
		t.Fatalf("malformed state: %+v", s)
	}
}

func TestRate_Drain(t *testing.T) {
	eachSeed(t, 400, func(t *testing.T, w *walk) {
		for range 10 {
			r, units := Rate{w.logUniform(MaxPeriod), w.logUniform(MaxLimit)}, w.logUniform(math.MaxInt64)
			exact := mul(whole(units), big.NewRat(r.Period, r.Count))
			if got, want := r.Drain(units), saturated(ceil(exact)); got != want {
				t.Fatalf("%v.Drain(%d) = %d, want %d", r, units, got, want)
			}
			limit := min(units, MaxLimit)
			exact = mul(whole(limit), big.NewRat(r.Period, r.Count))
			if got, want := r.Fits(limit), exact.Cmp(whole(MaxPeriod)) <= 0; got != want {
				t.Fatalf("%v.Fits(%d) = %v", r, limit, got)
			}
		}
	})
	for _, c := range []struct {
		rate  Rate
		limit int64
		want  bool
	}{
		{Rate{MaxPeriod, 1}, 1, true},
		{Rate{MaxPeriod, 1}, 2, false},
		{Rate{MaxPeriod, MaxLimit}, MaxLimit, true},
		{Rate{MaxPeriod, MaxLimit - 1}, MaxLimit, false},
		{Rate{MaxPeriod - 1, 3}, 3, true},
		{Rate{MaxPeriod - 1, 3}, 4, false},
		{Rate{1_351_542_857_142_857_143, 3}, 7, false}, // a third of 1 ns too long
		{Rate{3, 2}, MaxLimit, true},
	} {
		if got := c.rate.Fits(c.limit); got != c.want {
			t.Errorf("%v.Fits(%d) = %v", c.rate, c.limit, got)
		}
	}
}

func TestRate_Reduced(t *testing.T) {
	for _, c := range []struct{ rate, want Rate }{
		{Rate{1, 1}, Rate{1, 1}},
		{Rate{60e9, 30}, Rate{2e9, 1}},
		{Rate{60e9, 7}, Rate{60e9, 7}},
		{Rate{6, 60e9}, Rate{1, 10e9}},
		{Rate{MaxPeriod, MaxLimit}, Rate{3153600, 1}},
	} {
		if got := c.rate.Reduced(); got != c.want {
			t.Errorf("%v.Reduced() = %v, want %v", c.rate, got, c.want)
		}
	}
}

func whole(n int64) *big.Rat     { return new(big.Rat).SetInt64(n) }
func add(x, y *big.Rat) *big.Rat { return new(big.Rat).Add(x, y) }
func sub(x, y *big.Rat) *big.Rat { return new(big.Rat).Sub(x, y) }
func mul(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) }
func quo(x, y *big.Rat) *big.Rat { return new(big.Rat).Quo(x, y) }
func floor(x *big.Rat) *big.Int  { return new(big.Int).Div(x.Num(), x.Denom()) } // Euclidean
func ceil(x *big.Rat) *big.Int   { n := floor(new(big.Rat).Neg(x)); return n.Neg(n) }
func saturated(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return math.MaxInt64
}

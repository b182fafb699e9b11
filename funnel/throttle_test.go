package funnel_test

// A server has no state and no clock at these bounds of numbers, so no transcript has them. An exact model is the judge.

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// The corners of every parameter: nothing wraps where a sum or a product is largest. Some instants lie after 2162.
func TestThrottle_saturates(t *testing.T) {
	const most = funnel.MaxPeriod
	rates := []funnel.Rate{
		{1, 1}, {1, funnel.MaxLimit}, {most, 1}, {most, funnel.MaxLimit}, {most - 1, funnel.MaxLimit - 1}, {60e9, 7},
	}
	var calls []funnel.ThrottleParams
	for _, rate := range rates {
		for _, limit := range []int64{1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				if rate.Drains(limit) {
					calls = append(calls, options(funnel.ThrottleParams{Limit: limit, Rate: rate, Quantity: quantity}, most)...)
				}
			}
		}
	}
	for _, now := range []funnel.Nanos{1, origin, lastNow, math.MaxInt64 - 1, math.MaxInt64} {
		for _, tat := range []funnel.Nanos{0, now, now/2 + math.MaxInt64/2, math.MaxInt64 - 1, math.MaxInt64} {
			for _, old := range append(rates, funnel.Rate{}) {
				old = reducedOrZero(old)
				for _, frac := range slices.Compact([]int64{0, max(old.Count-1, 0)}) {
					for _, p := range calls {
						limiterOf(funnel.ThrottleState{TAT: tat, Frac: frac, Rate: old}).call(t, now, p)
					}
				}
			}
		}
	}
}

// seam is a state and a call at an edge of the words that the arithmetic computes with. Random calls do not find them.
type seam struct {
	name  string
	now   funnel.Nanos
	state funnel.ThrottleState
	limit int64
	rate  funnel.Rate
}

const hour = 3600 * funnel.Second

var seams = []seam{
	{"The fraction carries into the high word of the units' product",
		origin, funnel.ThrottleState{TAT: origin + 18446744, Frac: funnel.MaxLimit - 1, Rate: funnel.Rate{1_000_000_007, funnel.MaxLimit}},
		funnel.MaxLimit, funnel.Rate{1_000_000_009, funnel.MaxLimit}},
	{"Units' product just below and just above one word",
		origin, funnel.ThrottleState{TAT: origin + 18446744, Rate: funnel.Rate{1_000_000_007, funnel.MaxLimit}},
		funnel.MaxLimit, funnel.Rate{1_000_000_009, funnel.MaxLimit}},
	{"More than 2^63 units in use",
		origin, funnel.ThrottleState{TAT: origin + 27670116, Rate: funnel.Rate{2, funnel.MaxLimit - 1}}, funnel.MaxLimit, funnel.Rate{1, funnel.MaxLimit}},
	{"More than 2^63 units in use, and their product is one word",
		origin, funnel.ThrottleState{TAT: origin + 5e18, Rate: funnel.Rate{1, 2}}, funnel.MaxLimit, funnel.Rate{1, 4}},
	{"2^63 - 1 units and a half in use",
		origin, funnel.ThrottleState{TAT: origin + 6148914691236517205, Rate: funnel.Rate{2, 3}}, 1, funnel.Rate{2, 3}},
	{"Rates of which the products differ by 2^64",
		origin, funnel.ThrottleState{TAT: origin + 60e9, Rate: funnel.Rate{60e9, 7}}, 16, funnel.Rate{12327206912, 307445736}},
	{"Nearly six units at one in 100 years are nearly 2^64 ns and a part",
		origin, funnel.ThrottleState{TAT: origin + 6*hour - 1, Rate: funnel.Rate{hour, 1}}, 1, funnel.Rate{funnel.MaxPeriod, 1}},
	{"Nearly twelve units at two in 100 years, by way of the 128-bit quotient",
		origin, funnel.ThrottleState{TAT: origin + 12*hour - 1, Rate: funnel.Rate{hour, 1}}, 1, funnel.Rate{funnel.MaxPeriod - 1, 2}},
	{"Rounding up carries out of a quotient of 2^128 - 1",
		origin, funnel.ThrottleState{TAT: origin + 454039755230539, Frac: 102350745290, Rate: funnel.Rate{4, funnel.MaxLimit - 1}},
		1, funnel.Rate{2997820019073, 1}},
	{"Rounding up carries out of a low word of 2^64 - 1",
		origin, funnel.ThrottleState{TAT: origin + 145440584142, Frac: 253, Rate: funnel.Rate{2, 999}},
		1_000_003, funnel.Rate{253921, 1_000_003}},
	{"The middle words of the 192-bit product add up to more than one word",
		origin, funnel.ThrottleState{TAT: origin + 1400756654617924230, Rate: funnel.Rate{funnel.MaxPeriod - 1, funnel.MaxLimit - 1}},
		funnel.MaxLimit - 11, funnel.Rate{funnel.MaxPeriod - 7, funnel.MaxLimit - 11}},
	{"A charge of five units at one in 100 years is nearly 2^64 ns, and more with what is in use",
		origin, funnel.ThrottleState{TAT: origin + funnel.MaxPeriod, Rate: funnel.Rate{funnel.MaxPeriod, 1}}, 1, funnel.Rate{funnel.MaxPeriod, 1}},
	{"Two units drain in exactly 100 years", origin, funnel.ThrottleState{}, 1, funnel.Rate{funnel.MaxPeriod / 2, 1}},
	{"2^63 - 1 ns and a fraction, rounded up",
		0, funnel.ThrottleState{TAT: math.MaxInt64, Frac: 6, Rate: funnel.Rate{60e9, 7}}, 1, funnel.Rate{60e9, 7}},
}

func init() {
	for d := range funnel.Nanos(3) {
		now := math.MaxInt64 - 2*hour - 1 + d
		seams = append(seams,
			seam{"Usage at a new rate drains about the last instant", now,
				funnel.ThrottleState{TAT: now + 2e9, Rate: funnel.Rate{1e9, 1}}, 1, funnel.Rate{hour, 1}},
			seam{"The largest debt, in thirds of a nanosecond", origin,
				funnel.ThrottleState{TAT: origin + funnel.MaxPeriod - 1, Frac: int64(d), Rate: funnel.Rate{2, 3}}, 1, funnel.Rate{2, 3}})
		for frac := range int64(2) { // two units take 3 s - 1 ns
			seams = append(seams, seam{"A slot after which all drains about the last instant", math.MaxInt64 - funnel.MaxPeriod,
				funnel.ThrottleState{TAT: math.MaxInt64 - 3e9 + d, Frac: frac, Rate: funnel.Rate{3e9 - 1, 2}}, 3, funnel.Rate{3e9 - 1, 2}})
		}
	}
}

func TestThrottle_seams(t *testing.T) {
	for _, c := range seams {
		t.Run(c.name, func(t *testing.T) {
			p := funnel.ThrottleParams{Limit: c.limit, Rate: c.rate}
			for _, units := range []int64{1, c.limit, c.limit + 1} {
				limiterOf(c.state).waits(t, c.now, p, units, false)
				limiterOf(c.state).waits(t, c.now, p, units, true)
			}
			for _, p.Quantity = range []int64{0, 1, -1, 2, 5} {
				calls := options(p, funnel.MaxPeriod)
				if other := p; p.Quantity >= 0 {
					other.Raise, other.Settle = p.Quantity > 0, p.Quantity == 0
					calls = append(calls, other)
				}
				for _, p := range calls {
					limiterOf(c.state).call(t, c.now, p)
				}
			}
		})
	}
}

// ceil rounds up, saturating at 2^63-1.
func ceil(x *big.Rat) int64 {
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// perNano returns how many units drain in one ns.
func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

// options returns a call without an option and with each of them, but for Raise and Settle.
func options(p funnel.ThrottleParams, length funnel.Nanos) []funnel.ThrottleParams {
	all := []funnel.ThrottleParams{p, p, p, p, p}
	all[1].UpTo, all[2].Force, all[3].Reserve, all[3].MaxWait, all[4].Lockout = true, true, true, length, length
	return all
}

// lastNow is the last now at which every admitted unit drains before the last instant of Nanos.
const lastNow = math.MaxInt64 - funnel.MaxPeriod - 1

// limiter is a state and its oracle, which must agree after every call.
type limiter struct {
	state  funnel.ThrottleState
	oracle *oracle.Throttle
}

// limiterOf returns a limiter in any state.
func limiterOf(s funnel.ThrottleState) *limiter {
	empty := whole(s.TAT)
	if s.Frac > 0 {
		empty.Add(empty, big.NewRat(s.Frac, s.Rate.Count))
	}
	return &limiter{s, oracle.NewThrottle(empty, s.Rate, s.Locked)}
}

// stored returns the oracle's state as a ThrottleState. fits is false if no ThrottleState can hold it.
func (l *limiter) stored() (s funnel.ThrottleState, fits bool) {
	empty, rate := l.oracle.State()
	ns, rest := new(big.Int).DivMod(empty.Num(), empty.Denom(), new(big.Int))
	frac := new(big.Rat).SetFrac(rest, empty.Denom())
	frac.Mul(frac, whole(rate.Count))
	s = funnel.ThrottleState{
		TAT: funnel.Nanos(ns.Int64()), Frac: frac.Num().Int64(), Rate: rate, Locked: l.oracle.Locked(),
	}
	return s, ns.IsInt64() && frac.IsInt()
}

// call makes a call on both and compares the verdicts and what is stored.
func (l *limiter) call(t testing.TB, now funnel.Nanos, p funnel.ThrottleParams) funnel.Verdict {
	t.Helper()
	l.usage(t, now)
	before := l.state
	next, v := funnel.Throttle(now, before, &p)
	switch v.Change {
	case funnel.Store:
		l.state = next
	case funnel.Forget:
		l.state = funnel.ThrottleState{}
	}
	if want := l.oracle.Call(now, p); !agree(v, want) {
		t.Fatalf("Throttle(%d, %+v, %+v) =\n%+v, want\n%+v", now, before, p, v, want)
	}
	asked := p.Quantity
	if p.Raise {
		asked = v.Granted
	}
	inRange(t, p.Limit, asked, p.UpTo || p.Force || p.Raise, v)
	asks, held := asked > 0 && !p.Force && !p.Raise, before.Locked > now
	if p.Force && v.Limited || v.Wait != 0 && (!p.Reserve || v.Granted <= 0 || v.Wait < 0 || v.Wait > p.MaxWait) ||
		held && (asks && !v.Limited || l.state.Locked != before.Locked) {
		t.Fatalf("Throttle(%d, %+v, %+v) = %+v", now, before, p, v)
	}
	wellFormed(t, next) // even if next is not stored
	stored, fits := l.stored()
	if !fits && l.state.TAT == math.MaxInt64 && now > lastNow {
		*l = *limiterOf(l.state) // a state saturates there
	} else if l.state != stored || !fits {
		t.Fatalf("Throttle(%d, %+v, %+v) stored\n%+v, want\n%+v", now, before, p, l.state, stored)
	}
	l.retried(t, now, p, v)
	if empty := now + v.ResetAfter; !v.TooMuch && empty >= now && empty < math.MaxInt64 && // what every reply says comes true
		(!l.oracle.Void(empty) || empty > now && l.oracle.Void(empty-1)) {
		t.Fatalf("Throttle(%d, %+v, %+v) = %+v: the limiter isn't empty just then", now, before, p, v)
	}
	return v
}

// waits checks Wait: what a peek has left, at once or after a call that settles a rate, are the units just then and no sooner.
func (l *limiter) waits(t testing.TB, now funnel.Nanos, p funnel.ThrottleParams, units int64, stored bool) {
	t.Helper()
	o, wait := l.oracle.Clone(), p.Wait(now, &l.state, units, stored)
	p = funnel.ThrottleParams{Limit: p.Limit, Rate: p.Rate, Settle: !stored}
	if o.Call(now, p); wait < 0 || wait >= lastNow-now {
		return
	}
	p.Settle = false
	if o.Clone().Call(now+wait, p).Remaining < units || wait > 0 && o.Call(now+wait-1, p).Remaining >= units {
		t.Fatalf("Wait(%d, %+v, %d, %v) of %+v = %d", now, l.state, units, stored, p, wait)
	}
}

// usage checks Drain and InUse, which GO.INFO shows.
func (l *limiter) usage(t testing.TB, now funnel.Nanos) {
	t.Helper()
	empty, rate := l.oracle.State()
	left := new(big.Rat).Sub(empty, whole(now))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	if got, want := l.state.Drain(now), ceil(left); int64(got) != want {
		t.Fatalf("%+v: drains in %d ns from %d on, want %d", l.state, got, now, want)
	}
	if rate.Count == 0 {
		return
	}
	if got, want := l.state.InUse(now), ceil(left.Mul(left, perNano(rate))); got != want {
		t.Fatalf("%+v: %d units in use at %d, want %d", l.state, got, now, want)
	}
}

// wellFormed checks what holds for every state that Throttle returns.
func wellFormed(t testing.TB, s funnel.ThrottleState) {
	t.Helper()
	if s.TAT < 0 || s.Frac < 0 || s.Frac > 0 && s.Frac >= s.Rate.Count || s.Rate != reducedOrZero(s.Rate) {
		t.Fatalf("malformed state: %+v", s)
	}
}

func reducedOrZero(r funnel.Rate) funnel.Rate {
	if r.Count == 0 {
		return r
	}
	return r.Reduced()
}

// retried checks that the call p, which has got v, is admitted after RetryAfter and not 1 ns sooner.
func (l *limiter) retried(t testing.TB, now funnel.Nanos, p funnel.ThrottleParams, v funnel.Verdict) {
	t.Helper()
	// A denied call that stores nothing at its rate makes no promise that is tight.
	settled := l.state.Rate.Count == 0 || l.state.Rate == p.Rate.Reduced()
	cut := l.state.TAT == math.MaxInt64 // by the last instant
	if v.RetryAfter <= 0 || !settled || cut || v.RetryAfter > math.MaxInt64-now {
		return
	}
	at := now + v.RetryAfter
	if _, v := funnel.Throttle(at, l.state, &p); v.Limited || v.TooMuch && at <= lastNow-funnel.MaxPeriod {
		t.Fatalf("Throttle(%d, %+v, %+v): waited, and %+v", at, l.state, p, v)
	}
	if _, v := funnel.Throttle(at-1, l.state, &p); !v.Limited {
		t.Fatalf("Throttle(%d, %+v, %+v): 1 ns early, and %+v", at-1, l.state, p, v)
	}
}

func whole[N ~int64](n N) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

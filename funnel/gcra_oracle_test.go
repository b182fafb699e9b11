package funnel_test

import (
	"math"
	"math/big"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

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
	return &limiter{s, oracle.NewLockedThrottle(empty, s.Rate, s.Locked)}
}

// stored returns the oracle's state as a ThrottleState. fits is false if no ThrottleState can
// hold it.
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
	before := l.state
	next, v := funnel.Throttle(now, before, &p)
	l.state = apply(before, next, v)
	if want := l.oracle.Call(now, p); !agree(v, want) {
		t.Fatalf("Throttle(%d, %+v, %+v) =\n%+v, want\n%+v", now, before, p, v, want)
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v)
	if p.Force && v.Limited || v.Wait != 0 && (!p.Reserve || v.Granted <= 0 || v.Wait < 0 || v.Wait > p.MaxWait) {
		t.Fatalf("Throttle(%d, %+v, %+v) = %+v", now, before, p, v)
	}
	wellFormed(t, next) // also if next is not stored
	stored, fits := l.stored()
	if !fits && l.state.TAT == math.MaxInt64 && now > lastNow {
		*l = *limiterOf(l.state) // a state saturates there
	} else if l.state != stored || !fits {
		t.Fatalf("Throttle(%d, %+v, %+v) stored\n%+v, want\n%+v", now, before, p, l.state, stored)
	}
	return v
}

// lastNow is the last now at which every admitted unit drains before the last instant of Nanos.
const lastNow = math.MaxInt64 - funnel.MaxPeriod - 1

// wellFormed checks what holds for every state that Throttle returns.
func wellFormed(t testing.TB, s funnel.ThrottleState) {
	t.Helper()
	if s.TAT < 0 || s.Frac < 0 || s.Frac > 0 && s.Frac >= s.Rate.Count || s.Rate != reducedOrZero(s.Rate) {
		t.Fatalf("malformed state: %+v", s)
	}
}

// agree reports whether a verdict is what the oracle wants. Of a call with TooMuch only
// that it changes nothing is compared.
func agree(v, want funnel.Verdict) bool {
	if v.TooMuch && want.TooMuch {
		return v.Change == funnel.Keep && v.Granted == 0 && !v.Limited
	}
	return v == want
}

func reducedOrZero(r funnel.Rate) funnel.Rate {
	if r.Count == 0 {
		return r
	}
	return r.Reduced()
}

// tooLong reports whether what is in use cannot be stored at a rate.
func tooLong(now funnel.Nanos, s funnel.ThrottleState, rate funnel.Rate) bool {
	o := limiterOf(s).oracle
	v := o.Call(now, funnel.ThrottleParams{Limit: 1, Rate: rate})
	return s.Rate.Count != 0 && s.Rate != rate.Reduced() && v.ResetAfter >= math.MaxInt64-now
}

func TestThrottle_agreesWithOracle(t *testing.T) {
	adopted, tooLongs, partials := 0, 0, 0
	var seen optionCount
	eachWalk(t, 800, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		if w.IntN(8) == 0 {
			l = limiterOf(funnel.ThrottleState{TAT: w.now + logUniform[funnel.Nanos](w.Rand, 1<<60)})
			adopted++
		}
		if w.IntN(4) == 0 {
			w.now = edges[w.IntN(len(edges))]
		}
		for range 60 {
			w.change(30)
			w.wait()
			if w.IntN(50) == 0 {
				w.now = max(w.now-logUniform[funnel.Nanos](w.Rand, 1<<40), 1)
			}
			p := w.anyCall()
			if !l.state.Void(w.now) && tooLong(w.now, l.state, p.Rate) {
				tooLongs++
			}
			w.last = l.call(t, w.now, p)
			if partial(p.Quantity, w.last) {
				partials++
			}
			seen.count(w.now, l.state, p, w.last)
		}
	})
	if !t.Failed() && (adopted < 50 || tooLongs < 200 || partials < 500) {
		t.Errorf("%d adopted states, %d too long and %d partial grants prove nothing", adopted, tooLongs, partials)
	}
	if !t.Failed() && min(seen.forced, seen.tooMuch, seen.waits, seen.noSlot, seen.locks, seen.locked) < 200 {
		t.Errorf("%+v proves nothing", seen)
	}
}

// edges are first instants of walks: the epoch, the last instant at which no admitted unit is
// cut off, 2^53 us, and a year before the last instant.
var edges = []funnel.Nanos{
	1, lastNow - 24*3600e9, lastNow, 1 << 53 * funnel.Microsecond, math.MaxInt64 - 365*24*3600e9,
}

// optionCount says how often the options mattered.
type optionCount struct {
	forced  int // calls with FORCE that left more than the limit in use
	tooMuch int
	waits   int // calls with RESERVE that must wait for their slots
	noSlot  int // calls with RESERVE that got no slot
	locks   int // lockouts that began
	locked  int // calls that a lockout alone denied
}

// count counts one call that left the state s.
func (o *optionCount) count(now funnel.Nanos, s funnel.ThrottleState, p funnel.ThrottleParams, v funnel.Verdict) {
	began := p.Lockout > 0 && v.Change == funnel.Store && v.Limited && s.Locked == now+p.Lockout
	for _, c := range []struct {
		n     *int
		count bool
	}{
		{&o.forced, p.Force && v.Granted > 0 && v.ResetAfter > p.Rate.Drain(p.Limit)},
		{&o.tooMuch, v.TooMuch},
		{&o.waits, v.Wait > 0},
		{&o.noSlot, p.Reserve && v.Limited && p.Quantity > 0 && v.RetryAfter > 0},
		{&o.locks, began},
		{&o.locked, !began && v.Limited && v.RetryAfter == s.Locked-now},
	} {
		if c.count {
			*c.n++
		}
	}
}

// The corners of every parameter: nothing wraps where a sum or a product is largest. Some
// instants lie after 2162.
func TestThrottle_saturates(t *testing.T) {
	const most = funnel.MaxPeriod
	rates := []funnel.Rate{
		{1, 1}, {1, funnel.MaxLimit}, {most, 1}, {most, funnel.MaxLimit}, {most - 1, funnel.MaxLimit - 1}, {60e9, 7},
	}
	var calls []funnel.ThrottleParams
	for _, rate := range rates {
		for _, limit := range []int64{1, 2, funnel.MaxLimit - 1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				if rate.Fits(limit) {
					p := funnel.ThrottleParams{Limit: limit, Rate: rate, Quantity: quantity}
					upTo := p
					upTo.UpTo = true
					calls = append(calls, p, upTo)
				}
			}
		}
	}
	for _, now := range []funnel.Nanos{1, origin, lastNow, math.MaxInt64 - 1, math.MaxInt64} {
		for _, tat := range []funnel.Nanos{0, now, now/2 + math.MaxInt64/2, math.MaxInt64 - 1, math.MaxInt64} {
			for _, old := range append(rates, funnel.Rate{}) {
				old = reducedOrZero(old)
				for _, frac := range []int64{0, max(old.Count-1, 0)} {
					for _, p := range calls {
						limiterOf(funnel.ThrottleState{TAT: tat, Frac: frac, Rate: old}).call(t, now, p)
					}
				}
			}
		}
	}
}

// Calls at the edges of the words that the arithmetic computes with. Random calls do not find
// them.
func TestThrottle_seams(t *testing.T) {
	const hour = 3600 * funnel.Second
	for _, c := range []struct {
		seam  string
		now   funnel.Nanos
		state funnel.ThrottleState
		limit int64
		rate  funnel.Rate
	}{
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
		{"2^63 - 1 ns and a fraction, rounded up",
			0, funnel.ThrottleState{TAT: math.MaxInt64, Frac: 6, Rate: funnel.Rate{60e9, 7}}, 1, funnel.Rate{60e9, 7}},
	} {
		t.Run(c.seam, func(t *testing.T) {
			for _, quantity := range []int64{0, 1, -1, 2} {
				p := funnel.ThrottleParams{Limit: c.limit, Rate: c.rate, Quantity: quantity, UpTo: quantity == 2}
				limiterOf(c.state).call(t, c.now, p)
			}
		})
	}
}

// The first instant at which usage at a changed rate cannot be stored, and the one before.
func TestThrottle_lastInstant(t *testing.T) {
	for _, c := range []struct {
		now  funnel.Nanos
		want funnel.Change
	}{
		{math.MaxInt64 - 2*3600e9 - 1, funnel.Store}, // all would have drained at 2^63-2
		{math.MaxInt64 - 2*3600e9, funnel.Keep},      // at 2^63-1
		{math.MaxInt64 - 2*3600e9 + 1, funnel.Keep},
	} {
		s := funnel.ThrottleState{TAT: c.now + 2e9, Rate: funnel.Rate{Period: 1e9, Count: 1}}
		p := funnel.ThrottleParams{Limit: 1, Rate: funnel.Rate{Period: 3600e9, Count: 1}, Quantity: 1}
		if v := limiterOf(s).call(t, c.now, p); v.Change != c.want || !v.Limited {
			t.Errorf("at %d: %+v", c.now, v)
		}
	}
}

// within returns n if n is in [low, high], else a number in these bounds that depends on n.
func within[N ~int64](n, low, high N) N {
	if n >= low && n <= high {
		return n
	}
	return low + N((uint64(n)-uint64(low))%(uint64(high)-uint64(low)+1))
}

// FuzzThrottle makes a call on any state, and the same call a while later.
func FuzzThrottle(f *testing.F) {
	seed := func(now, tat, frac, oldPeriod, oldCount, limit, period, count, quantity, wait int64) {
		for option := range uint8(5) {
			f.Add(now, tat, frac, oldPeriod, oldCount, now+wait/2, limit, period, count, quantity, option, wait, wait)
		}
	}
	const start = int64(origin)
	seed(start, 0, 0, 0, 0, 16, 60e9, 7, 1, 0)
	seed(start, start+8e9, 3, 60e9, 7, 16, 60e9, 7, -2, 9e9)
	seed(start, start+36e12, 0, 3600e9, 1, 10, 1e9, 1, 1, 1e9)
	seed(start, start+36e11, 0, 36e6, 1, 1, 86400e9, 1, -40, 1e9)
	seed(start, start+90e9, 0, 0, 0, 5, 10e9, 1, 0, 40e9)
	seed(start, start+90e9, 2, 10e9, 3, 5, 10e9, 3, 4, 90e9)
	seed(math.MaxInt64-1, math.MaxInt64, 0, 1, 1, 1, int64(funnel.MaxPeriod), 1, 1, 1)
	f.Fuzz(func(
		t *testing.T, now, tat, frac, oldPeriod, oldCount, locked, limit, period, count, quantity int64,
		option uint8, length, wait int64,
	) {
		const last = funnel.Nanos(math.MaxInt64)
		at := within(funnel.Nanos(now), 1, last)
		p := funnel.ThrottleParams{
			Limit:    within(limit, 1, funnel.MaxLimit),
			Rate:     funnel.Rate{within(funnel.Nanos(period), 1, funnel.MaxPeriod), within(count, 1, funnel.MaxLimit)},
			Quantity: within(quantity, -funnel.MaxLimit-1, funnel.MaxLimit+1),
		}
		switch option % 5 {
		case 1:
			p.UpTo = true
		case 2:
			p.Force = true
		case 3:
			p.Reserve, p.MaxWait = true, within(funnel.Nanos(length), 0, funnel.MaxPeriod)
		case 4:
			p.Lockout = shortened(within(funnel.Nanos(length), funnel.Millisecond, funnel.MaxPeriod), at)
		}
		if !p.Rate.Fits(p.Limit) {
			t.Skip()
		}
		s := funnel.ThrottleState{TAT: within(funnel.Nanos(tat), 0, last), Locked: within(funnel.Nanos(locked), 0, last)}
		if oldCount != 0 {
			rate := funnel.Rate{within(funnel.Nanos(oldPeriod), 1, funnel.MaxPeriod), within(oldCount, 1, funnel.MaxLimit)}
			s.Rate = rate.Reduced()
			s.Frac = within(frac, 0, s.Rate.Count-1)
		}
		l := limiterOf(s)
		l.retried(t, at, p, l.call(t, at, p))
		at += within(funnel.Nanos(wait), 0, last-at)
		p.Lockout = shortened(p.Lockout, at)
		l.call(t, at, p)
	})
}

// retried checks that the call p, which has got v, is admitted after RetryAfter and not 1 ns
// sooner. It reports whether there was something to check.
func (l *limiter) retried(t testing.TB, now funnel.Nanos, p funnel.ThrottleParams, v funnel.Verdict) bool {
	t.Helper()
	// A denied call that stores nothing at its rate makes no promise that is tight.
	settled := l.state.Rate.Count == 0 || l.state.Rate == p.Rate.Reduced()
	cut := l.state.TAT == math.MaxInt64 // by the last instant
	if v.RetryAfter <= 0 || !settled || cut || v.RetryAfter > math.MaxInt64-now {
		return false
	}
	at := now + v.RetryAfter
	if _, v := funnel.Throttle(at, l.state, &p); v.Limited || v.TooMuch && at <= lastNow-funnel.MaxPeriod {
		t.Fatalf("Throttle(%d, %+v, %+v): waited, and %+v", at, l.state, p, v)
	}
	if _, v := funnel.Throttle(at-1, l.state, &p); !v.Limited {
		t.Fatalf("Throttle(%d, %+v, %+v): 1 ns early, and %+v", at-1, l.state, p, v)
	}
	return true
}

func whole[N ~int64](n N) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

package funnel_test

// No transcript holds what is true of random calls in any order, or of instants between two microseconds. This file makes such
// calls of GCRA limiters, and compares them with an exact model.

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// edges are first instants of walks: the epoch, the last instant at which no admitted unit is
// cut off, 2^53 us, and a year before the last instant.
var edges = []funnel.Nanos{
	1, lastNow - 24*3600e9, lastNow, 1 << 53 * funnel.Microsecond, math.MaxInt64 - 365*24*3600e9,
}

// Whatever the calls, their order and the state before them, every verdict and every state is the exact model's.
func TestThrottle_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachWalk(t, 1000, func(t *testing.T, w *walk) {
		l := limiterOf(funnel.ThrottleState{})
		if w.IntN(8) == 0 {
			l = limiterOf(funnel.ThrottleState{TAT: w.now + logUniform[funnel.Nanos](w.Rand, 1<<60)})
			seen["adopted"]++
		}
		if w.IntN(4) == 0 {
			w.now = edges[w.IntN(len(edges))]
		}
		for range 80 {
			w.change(25)
			w.wait()
			if w.IntN(50) == 0 { // the clock is set back
				w.now = max(w.now-logUniform[funnel.Nanos](w.Rand, 1<<40), 1)
			}
			p, before := w.anyCall(), l.state
			l.waits(t, w.now, p, 1+w.Int64N(p.Limit+1), w.IntN(2) == 0)
			v := l.call(t, w.now, p)
			w.last = v
			changed := before.Drain(w.now) > 0 && before.Rate.Count != 0 && before.Rate != p.Rate.Reduced()
			seen.count("partial grant", partial(p.Quantity, v))
			seen.count("debt", p.Force && v.Granted > 0 && v.ResetAfter > p.Rate.Drain(p.Limit))
			seen.count("debt that is too much", p.Force && v.TooMuch)
			seen.count("slot to wait for", v.Wait > 0)
			seen.count("no slot", p.Reserve && v.Limited && v.RetryAfter > 0)
			seen.count("lockout that begins", p.Lockout > 0 && before.Locked <= w.now && l.state.Locked > w.now)
			seen.count("raised", p.Raise && v.Granted > 0)
			seen.count("carried by a peek", changed && p.Settle && v.Change == funnel.Store)
			seen.count("call in a lockout", v.Limited && before.Locked > w.now)
			seen.count("carried by a denial", changed && v.Limited && v.Change == funnel.Store)
			seen.count("too long to carry", changed && v.Limited && v.Change == funnel.Keep && p.Quantity > 0)
			seen.count("refund", v.Granted < 0)
			seen.count("wait", v.RetryAfter > 0)
		}
	})
	seen.atLeast(t, 50, "adopted", "debt that is too much", "carried by a peek")
	seen.atLeast(t, 200, "raised", "partial grant", "debt", "slot to wait for", "no slot", "lockout that begins",
		"call in a lockout", "carried by a denial", "too long to carry")
	seen.atLeast(t, 2000, "refund", "wait")
}

// perNano returns how many units drain in one ns.
func perNano(r funnel.Rate) *big.Rat { return big.NewRat(r.Count, int64(r.Period)) }

// options returns a call without an option and with each of them.
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

// walk makes up calls of GCRA limiters: instants, parameters and quantities.
type walk struct {
	*rand.Rand
	now  funnel.Nanos
	p    funnel.ThrottleParams
	last funnel.Verdict // of the last call; the test sets it
}

// eachWalk runs f on a sample of n reproducible walks.
func eachWalk(t *testing.T, n int, f func(*testing.T, *walk)) {
	eachSeed(t, n, func(t *testing.T, r *rand.Rand) {
		w := &walk{Rand: r, now: origin}
		w.newRate()
		f(t, w)
	})
}

// change makes a new rate or a new limit, each about once in this many calls of change.
func (w *walk) change(once int) {
	switch w.IntN(once) {
	case 0:
		w.newRate()
	case 1:
		w.newLimit()
	}
}

func (w *walk) newRate() {
	old := w.p.Rate
	rate := funnel.Rate{Period: logUniform(w.Rand, funnel.MaxPeriod), Count: logUniform[int64](w.Rand, funnel.MaxLimit)}
	switch w.IntN(4) {
	case 0: // as people write them
		periods := []funnel.Nanos{1e6, 1e9, 60e9, 3600e9, 86400e9, funnel.MaxPeriod}
		rate = funnel.Rate{Period: periods[w.IntN(len(periods))], Count: 1 + w.Int64N(100)}
	case 1: // a little off the old one, or the same in other terms
		period, count := int64(old.Period), old.Count
		near := [][2]int64{{0, 1}, {1, 0}, {period, count}, {period, 0}, {0, 9 * count}}[w.IntN(5)]
		rate.Period = max(min(old.Period+funnel.Nanos(near[0]), funnel.MaxPeriod), 1)
		rate.Count = max(min(count+near[1], funnel.MaxLimit), 1)
	}
	w.p.Rate = rate
	if !fits(rate, max(w.p.Limit, 1)) || w.p.Limit == 0 {
		w.newLimit()
	}
}

// fits reports whether a call may have this rate and limit.
func fits(r funnel.Rate, limit int64) bool { return r.Drain(limit) <= funnel.MaxPeriod }

func (w *walk) newLimit() {
	top := int64(funnel.MaxLimit)
	if w.IntN(2) == 0 {
		top = 30
	}
	w.p.Limit = logUniform(w.Rand, top)
	for w.p.Limit > 1 && !fits(w.p.Rate, w.p.Limit) {
		w.p.Limit = (w.p.Limit + 1) / 2
	}
}

// wait lets time pass, by the last verdict or at random; never past the last instant.
func (w *walk) wait() {
	var d funnel.Nanos
	switch w.IntN(10) {
	case 0, 1:
		d = w.last.RetryAfter
	case 2:
		d = w.last.RetryAfter - 1
	case 3:
		d = 1
	case 4, 5:
		d = funnel.Nanos(w.Int64N(max(int64(w.p.Rate.Drain(logUniform(w.Rand, w.p.Limit))), 1)))
	case 6:
		d = w.last.ResetAfter - funnel.Nanos(w.IntN(2))
	case 7:
		if w.IntN(4) == 0 {
			d = logUniform[funnel.Nanos](w.Rand, 1<<58)
		}
	}
	if d > 0 && d < math.MaxInt64-w.now {
		w.now += d
	}
}

// call returns the parameters of the next call: a new quantity, at times with UPTO.
func (w *walk) call() funnel.ThrottleParams {
	w.p.Quantity, w.p.UpTo = randomQuantity(w.Rand, w.p.Limit, w.last), w.IntN(5) == 0
	return w.p
}

// anyCall returns the parameters of the next call, at times with an option.
func (w *walk) anyCall() funnel.ThrottleParams {
	p := w.call()
	if p.UpTo {
		return p
	}
	switch w.IntN(10) {
	case 0, 1:
		p.Force = true
	case 2, 3:
		p.Reserve, p.MaxWait = true, w.length()
	case 4:
		p.Lockout = max(w.length(), funnel.Millisecond)
	case 5:
		p.Raise, p.Quantity = p.Quantity >= 0, max(p.Quantity, -p.Quantity)
	default:
		p.Settle = p.Quantity == 0
	}
	return p
}

// length returns a length of time: what units take to drain, about the last wait, or at random.
func (w *walk) length() funnel.Nanos {
	lengths := []funnel.Nanos{
		0, w.p.Rate.Drain(1), w.p.Rate.Drain(w.p.Limit), w.p.Rate.Drain(logUniform(w.Rand, 3*w.p.Limit)),
		w.last.RetryAfter, w.last.RetryAfter - 1, w.last.ResetAfter, logUniform(w.Rand, funnel.MaxPeriod),
	}
	if w.IntN(20) == 0 {
		return funnel.MaxPeriod
	}
	return min(max(lengths[w.IntN(len(lengths))], 0), funnel.MaxPeriod)
}

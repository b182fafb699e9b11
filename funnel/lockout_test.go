package funnel_test

import (
	"testing"

	"gothrottle/funnel"
)

// lockouts compares a limiter with a twin. The twin gets the same calls without LOCKOUT, but
// none of those that the lockout denies.
type lockouts struct {
	limiter
	twin limiter

	began, held, forced, refunds, carried, after int // how many calls were so
}

// call makes a call on both and checks all that a lockout promises.
func (l *lockouts) call(t *testing.T, now funnel.Nanos, p funnel.ThrottleParams) (v funnel.Verdict) {
	t.Helper()
	before := l.state
	stood := before.Locked > now
	asks := p.Quantity > 0 && !p.Force
	v = l.limiter.call(t, now, p)
	plain := p
	plain.Lockout = 0
	switch {
	case stood && l.state.Locked != before.Locked:
		t.Fatalf("%+v moves the end of the lockout of %+v to %d", p, before, l.state.Locked)
	case stood:
		l.standing(t, now, before, p, v)
		if asks {
			l.carry(t, now, p)
			break
		}
		if w := l.twin.call(t, now, plain); w.Granted != v.Granted {
			t.Fatalf("%+v on %+v: %+v, and %+v without a lockout", p, before, v, w)
		}
	default:
		w := l.twin.call(t, now, plain)
		if starts := p.Lockout > 0 && w.Limited && p.Quantity > 0 && p.Quantity <= p.Limit; starts {
			l.began++
			w.RetryAfter, w.ResetAfter = max(w.RetryAfter, p.Lockout), max(w.ResetAfter, p.Lockout)
			w.Remaining, w.Change = 0, funnel.Store
			if l.state.Locked != now+p.Lockout {
				t.Fatalf("%+v on %+v locks until %d", p, before, l.state.Locked)
			}
		} else if l.state.Locked > now {
			t.Fatalf("%+v on %+v begins a lockout: %+v", p, before, v)
		}
		if l.after++; v != w && !(v.TooMuch && w.TooMuch) {
			t.Fatalf("%+v on %+v: %+v, and %+v without a lockout", p, before, v, w)
		}
	}
	if a, b := l.state, l.twin.state; a.TAT > now || b.TAT > now || a.Frac != b.Frac && a.TAT == now {
		if a.Locked = 0; a != b {
			t.Fatalf("%+v on %+v leaves %+v, and %+v without a lockout", p, before, a, b)
		}
	}
	return v
}

// standing checks the verdict of a call while a lockout stands.
func (l *lockouts) standing(t *testing.T, now funnel.Nanos, before funnel.ThrottleState, p funnel.ThrottleParams, v funnel.Verdict) {
	t.Helper()
	rest := before.Locked - now
	changed := before.Rate != p.Rate.Reduced() && before.TAT >= now
	bad := v.ResetAfter < rest || v.Remaining != 0
	switch {
	case v.TooMuch:
		return
	case p.Force:
		l.forced++
		bad = bad || v.Limited || v.Granted != p.Quantity && p.Quantity >= 0
	case p.Quantity < 0:
		l.refunds++
		bad = bad || v.Limited || v.Change != funnel.Store
	default:
		l.held++
		bad = bad || !v.Limited || v.Granted != 0 || v.RetryAfter != funnel.Never && v.RetryAfter < rest ||
			v.Change != funnel.Keep && (!changed || p.Quantity == 0)
	}
	if bad {
		t.Fatalf("Throttle(%d, %+v, %+v), locked for %d: %+v", now, before, p, rest, v)
	}
}

// carry makes the twin carry its usage over to another rate as a denied call does.
func (l *lockouts) carry(t *testing.T, now funnel.Nanos, p funnel.ThrottleParams) {
	t.Helper()
	if p.Quantity > p.Limit && !p.UpTo {
		return // such a call writes nothing
	}
	if s := l.twin.state; !s.Void(now) && s.Rate != p.Rate.Reduced() {
		l.carried++
	}
	one := funnel.ThrottleParams{Limit: p.Limit, Rate: p.Rate, Quantity: 1}
	if v := l.twin.call(t, now, one); !v.Limited {
		one.Quantity = -1
		l.twin.call(t, now, one)
	}
}

// From the denial on nothing that asks for units without FORCE is admitted, whatever its
// limit, its rate and its options, until the end. Nothing moves the end, and a denied call writes
// nothing more. Apart from the units that were not admitted, the limiter then is what it would
// have been.
func TestThrottle_lockout(t *testing.T) {
	t.Run("one rate", func(t *testing.T) { eachLockouts(t, 0) })
	t.Run("changing", func(t *testing.T) { eachLockouts(t, 10) })
}

func eachLockouts(t *testing.T, changes int) {
	var sum lockouts
	eachWalk(t, 300, func(t *testing.T, w *walk) {
		for w.p.Rate.Drain(w.p.Limit) > funnel.MaxPeriod/100 {
			w.newRate()
		}
		l := lockouts{*limiterOf(funnel.ThrottleState{}), *limiterOf(funnel.ThrottleState{}), 0, 0, 0, 0, 0, 0}
		for range 100 {
			if changes > 0 {
				w.change(changes)
			}
			w.wait()
			if w.now > lastNow {
				break
			}
			p := w.anyCall()
			if p.Lockout == 0 && !p.UpTo && !p.Force && !p.Reserve && w.IntN(2) == 0 {
				p.Lockout = funnel.Millisecond + min(p.Rate.Drain(logUniform(w.Rand, 2*p.Limit)), funnel.MaxPeriod/1000)
			}
			p.Lockout = min(p.Lockout, funnel.MaxPeriod/10)
			w.last = l.call(t, w.now, p)
		}
		sum.began += l.began
		sum.held += l.held
		sum.forced += l.forced
		sum.refunds += l.refunds
		sum.carried += l.carried
		sum.after += l.after
	})
	if !t.Failed() && (min(sum.began, sum.forced, sum.refunds) < 200 || min(sum.held, sum.after) < 1500 || changes > 0 && sum.carried < 100) {
		sum.limiter, sum.twin = limiter{}, limiter{}
		t.Errorf("%+v proves nothing", sum)
	}
}

// The instants around a lockout: it begins with the denial, it stands 1 ns before its end and
// not at its end.
func TestThrottle_lockoutEnds(t *testing.T) {
	l := limiterOf(funnel.ThrottleState{})
	rate := funnel.Rate{Period: 1e9, Count: 1}
	const sec = funnel.Second
	for _, c := range []struct {
		name  string
		at    funnel.Nanos
		p     funnel.ThrottleParams
		want  funnel.Verdict
		state funnel.ThrottleState
	}{
		{"all that fits", 0, funnel.ThrottleParams{Limit: 5, Quantity: 5, Lockout: 60 * sec},
			funnel.Verdict{ResetAfter: 5 * sec, Granted: 5, Change: funnel.Store}, funnel.ThrottleState{origin + 5e9, 0, rate, 0}},
		{"a peek of a limiter in debt begins none", 0, funnel.ThrottleParams{Limit: 1, Quantity: 0, Lockout: 60 * sec},
			funnel.Verdict{Limited: true, RetryAfter: 4 * sec, ResetAfter: 5 * sec}, funnel.ThrottleState{origin + 5e9, 0, rate, 0}},
		{"more than the limit begins none", 0, funnel.ThrottleParams{Limit: 5, Quantity: 6, Lockout: 60 * sec},
			funnel.Verdict{Limited: true, RetryAfter: funnel.Never, ResetAfter: 5 * sec}, funnel.ThrottleState{origin + 5e9, 0, rate, 0}},
		{"the denial begins one", 2 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 3, Lockout: 60 * sec},
			funnel.Verdict{Limited: true, RetryAfter: 60 * sec, ResetAfter: 60 * sec, Change: funnel.Store}, funnel.ThrottleState{origin + 5e9, 0, rate, origin + 62e9}},
		{"a plain call that would fit", 30 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 1},
			funnel.Verdict{Limited: true, RetryAfter: 32 * sec, ResetAfter: 32 * sec}, funnel.ThrottleState{origin + 5e9, 0, rate, origin + 62e9}},
		{"a debt of 100 s", 31 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 100, Force: true},
			funnel.Verdict{ResetAfter: 100 * sec, Granted: 100, Change: funnel.Store}, funnel.ThrottleState{origin + 131e9, 0, rate, origin + 62e9}},
		{"a call with a longer wait of its own", 32 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 5, Lockout: 3600 * sec},
			funnel.Verdict{Limited: true, RetryAfter: 99 * sec, ResetAfter: 99 * sec}, funnel.ThrottleState{origin + 131e9, 0, rate, origin + 62e9}},
		{"a refund of all", 33 * sec, funnel.ThrottleParams{Limit: 5, Quantity: -100},
			funnel.Verdict{ResetAfter: 29 * sec, Granted: -98, Change: funnel.Store}, funnel.ThrottleState{origin + 33e9, 0, rate, origin + 62e9}},
		{"1 ns before the end", 62*sec - 1, funnel.ThrottleParams{Limit: 1000, Quantity: 1},
			funnel.Verdict{Limited: true, RetryAfter: 1, ResetAfter: 1}, funnel.ThrottleState{origin + 33e9, 0, rate, origin + 62e9}},
		{"a peek at the end", 62 * sec, funnel.ThrottleParams{Limit: 5},
			funnel.Verdict{Remaining: 5}, funnel.ThrottleState{origin + 33e9, 0, rate, origin + 62e9}},
		{"a call at the end", 62 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 4},
			funnel.Verdict{Remaining: 1, ResetAfter: 4 * sec, Granted: 4, Change: funnel.Store}, funnel.ThrottleState{origin + 66e9, 0, rate, 0}},
		{"another denial begins another", 62 * sec, funnel.ThrottleParams{Limit: 5, Quantity: 2, Lockout: 1},
			funnel.Verdict{Limited: true, RetryAfter: 1 * sec, ResetAfter: 4 * sec, Change: funnel.Store}, funnel.ThrottleState{origin + 66e9, 0, rate, origin + 62e9 + 1}},
		{"a refund of all after the end", 63 * sec, funnel.ThrottleParams{Limit: 5, Quantity: -5},
			funnel.Verdict{Remaining: 5, Granted: -3, Change: funnel.Forget}, funnel.ThrottleState{}},
	} {
		c.p.Rate = rate
		if v := l.call(t, origin+c.at, c.p); v != c.want || l.state != c.state {
			t.Errorf("%s:\n%+v, want\n%+v, left\n%+v, want\n%+v", c.name, v, c.want, l.state, c.state)
		}
	}
}

// A lockout begins on an adopted key, which gets the call's rate, and where usage cannot be
// carried over, which keeps its own rate.
func TestThrottle_lockoutWritesTheRate(t *testing.T) {
	p := funnel.ThrottleParams{Limit: 1, Rate: funnel.Rate{Period: 3600e9, Count: 1}, Quantity: 1, Lockout: 60e9}
	for _, c := range []struct {
		name string
		s    funnel.ThrottleState
		want funnel.Rate
	}{
		{"adopted", funnel.ThrottleState{TAT: origin + 1e9}, p.Rate},
		{"too long", funnel.ThrottleState{TAT: origin + 1e18, Rate: funnel.Rate{Period: 1e9, Count: 1}}, funnel.Rate{Period: 1e9, Count: 1}},
	} {
		l := limiterOf(c.s)
		l.call(t, origin, p)
		if want := (funnel.ThrottleState{c.s.TAT, 0, c.want, origin + 60e9}); l.state != want {
			t.Errorf("%s: %+v, want %+v", c.name, l.state, want)
		}
		before := l.state
		if v := l.call(t, origin+1, p); v.Change != funnel.Keep || l.state != before {
			t.Errorf("%s, a second denial: %+v leaves %+v", c.name, v, l.state)
		}
	}
}

// The end of a lockout never wraps, not even where now is later than it may be.
func TestThrottle_lockoutNeverWraps(t *testing.T) {
	for _, now := range []funnel.Nanos{lastNow, lastNow + 1, lastNow + 2, 1<<63 - 2} {
		s := funnel.ThrottleState{TAT: 1<<63 - 1, Rate: funnel.Rate{1, 1}}
		p := funnel.ThrottleParams{Limit: 1, Rate: funnel.Rate{funnel.MaxPeriod, 1}, Quantity: 1, Lockout: funnel.MaxPeriod}
		if next, _ := funnel.Throttle(now, s, &p); next.Locked != now+shortened(funnel.MaxPeriod, now) {
			t.Errorf("at %d: locked until %d", now, next.Locked)
		}
	}
}

// A state is void only if no lockout stands.
func TestThrottleState_VoidLocked(t *testing.T) {
	for _, c := range []struct {
		tat, locked funnel.Nanos
		want        bool
	}{{0, 9, true}, {0, 10, true}, {0, 11, false}, {11, 9, false}, {10, 10, true}} {
		s := funnel.ThrottleState{TAT: c.tat, Rate: funnel.Rate{1, 1}, Locked: c.locked}
		if got := s.Void(10); got != c.want {
			t.Errorf("%+v.Void(10) = %v", s, got)
		}
		if got := limiterOf(s).oracle.Void(10); got != c.want {
			t.Errorf("oracle of %+v: Void(10) = %v", s, got)
		}
	}
}

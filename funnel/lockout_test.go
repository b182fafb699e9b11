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
		bad = bad || v.Limited || (v.Change == funnel.Store) != (v.Granted < 0) || v.Change == funnel.Forget
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

// A property over random calls: from the denial on nothing that asks for units without FORCE is admitted, whatever its
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

// No server has such times: the end of a lockout never wraps, not even where now is later than it may be.
func TestThrottle_lockoutNeverWraps(t *testing.T) {
	for _, now := range []funnel.Nanos{lastNow, lastNow + 1, lastNow + 2, 1<<63 - 2} {
		s := funnel.ThrottleState{TAT: 1<<63 - 1, Rate: funnel.Rate{1, 1}}
		p := funnel.ThrottleParams{Limit: 1, Rate: funnel.Rate{funnel.MaxPeriod, 1}, Quantity: 1, Lockout: funnel.MaxPeriod}
		if next, _ := funnel.Throttle(now, s, &p); next.Locked != now+shortened(funnel.MaxPeriod, now) {
			t.Errorf("at %d: locked until %d", now, next.Locked)
		}
	}
}

// An exact model agrees to the ns: a state is void only if no lockout stands.
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

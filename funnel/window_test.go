package funnel_test

// No transcript holds the bounds of numbers.

import (
	"testing"

	"gothrottle/funnel"
)

const (
	originMicros    = funnel.Micros(origin / funnel.Microsecond)
	maxPeriodMicros = funnel.Micros(funnel.MaxPeriod / funnel.Microsecond)
	// lastMicros is the last instant of a call for which a double holds every time that it stores.
	lastMicros = 1<<53 - maxPeriodMicros
)

type params = funnel.WindowParams

// The corners: nothing wraps, whatever entries a log may hold.
func TestWindow_saturates(t *testing.T) {
	units := []int64{1, 2, funnel.WindowParts, funnel.MaxLimit, 1 << 62}
	var calls []params
	for _, period := range []funnel.Micros{1000, 60e6, maxPeriodMicros} {
		for _, limit := range []int64{1, funnel.WindowParts + 1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				p := params{Limit: limit, Period: period, Quantity: quantity}
				upTo, force := p, p
				upTo.UpTo, force.Force = true, true
				calls = append(calls, p, upTo, force)
			}
		}
	}
	for _, now := range []funnel.Micros{0, originMicros, lastMicros} {
		for _, newest := range []funnel.Micros{0, now, lastMicros} {
			for _, weight := range units {
				for _, most := range append(units, 0, -1) { // -1: no cap
					e := funnel.WindowEntry{Time: newest, Total: 1<<62 + 5, Weight: weight, Cap: max(most, 0), Capped: most >= 0}
					for _, p := range calls {
						s := funnel.WindowState{Newest: e}
						if newest > now-p.Period {
							s.Oldest = funnel.WindowEntry{Time: max(now-p.Period+1, 0), Total: 6, Weight: weight}
						}
						next, v := funnel.Window(now, s, p)
						windowInRange(t, p, next, v)
					}
				}
			}
		}
	}
}

// windowInRange checks what holds for every verdict and every stored entry. The wait is not known here.
func windowInRange(t testing.TB, p params, next funnel.WindowEntry, v funnel.WindowVerdict) {
	t.Helper()
	if v.Await && v.RetryAfter != 0 {
		t.Fatalf("two waits: %+v", v)
	}
	if v.Await {
		v.RetryAfter = 1
	}
	inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v.Verdict)
	if v.Change == funnel.Store && (next.Time < 0 || next.Weight < 1 || next.Cap < 0 || next.Cap > 0 && !next.Capped) ||
		v.Granted > 0 && !p.Force && (next.Weight > p.Limit || next.Capped && next.Cap > p.Limit) ||
		v.Granted > 0 && (next.Weight > funnel.MaxInUse || next.Capped && next.Cap > funnel.MaxInUse) {
		t.Fatalf("malformed entry for %+v: %+v", p, next)
	}
}

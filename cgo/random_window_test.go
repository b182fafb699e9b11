package cgo_test

import (
	"fmt"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// windowPeriods has a period for each key: a shorter one would forget what a longer one counts.
var windowPeriods = map[string]funnel.Micros{"a": 60 * second, "b": 60 * second, "c": second, "d": 10 * second, "e": 777_000}

// Random calls of GO.WINDOW give the replies of the exact model: with small and large limits, EXACT,
// UPTO, refunds, and a clock that is set forward and back.
func TestRandom_window(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d", "e")
	models := map[string]*oracle.Window{}
	for _, key := range w.keys {
		models[key] = new(oracle.Window)
	}
	for range rounds(25_000) {
		w.pass(pick[int64](w.Rand, 2*second, 2*second, 40*second))
		key := pick(w.Rand, w.keys...)
		unit, options := w.unitOf()
		if key == "e" {
			unit, options = funnel.Millisecond, []string{"MS"}
		}
		limit := map[string]int64{"a": 10, "b": 1000, "c": 121, "d": 3, "e": 200}[key]
		limit = pick(w.Rand, limit, limit, limit, limit, limit*2, limit/2+1, 1000+w.Int64N(1e6))
		p := funnel.WindowParams{
			Limit:    limit,
			Period:   windowPeriods[key],
			Quantity: pick(w.Rand, 1, 1, 1, 1, 0, 2, limit/3+1, limit/2, limit, limit+1, -1, -w.Int64N(limit+1)),
			Exact:    w.IntN(6) == 0,
		}
		options = append(options, w.upToOrForce(&p.UpTo, &p.Force, &p.Quantity)...)
		if p.Exact {
			options = append(options, "EXACT")
		}
		v := models[key].Call(w.now, p)
		if p.Force && v.Granted > 0 && models[key].InUse(w.now, p.Period) > limit {
			w.reply["debt"]++
		}
		period := fmt.Sprint(int64(p.Period.Nanos() / unit))
		words := []string{"GO.WINDOW", key, fmt.Sprint(limit), period, fmt.Sprint(p.Quantity)}
		w.call(windowReply(&v, limit, p.UpTo, unit), v.Change != funnel.Keep, append(words, options...)...)
		w.outcome(&v)
		w.wantWindow(key, models[key], &v)
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed", "debt")
}

// wantWindow checks the key of a sliding window after a call. A window that is full again has no
// key, unless it has many entries.
func (w *walk) wantWindow(key string, o *oracle.Window, v *funnel.Verdict) {
	w.t.Helper()
	entries := w.h.ZsetOf(key)
	switch {
	case v.Change == funnel.Forget && len(entries) > 0 && len(entries) < 2:
		w.t.Fatalf("seed %d, call %d: %s is left: %v", w.seed, w.calls, key, entries)
	case v.Change == funnel.Store:
		newest := funnel.Micros(-entries[0].Score)
		w.wantExpiry(key, newest+windowPeriods[key], windowPeriods[key]/4)
	}
}

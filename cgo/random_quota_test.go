package cgo_test

import (
	"fmt"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// Random calls of GO.QUOTA give the replies of the exact model, and the strings hold its state.
func TestRandom_quota(t *testing.T) {
	w := newWalk(t, "a", "b", "c")
	models := map[string]*oracle.Quota{"a": new(oracle.Quota), "b": new(oracle.Quota), "c": new(oracle.Quota)}
	for range rounds(25_000) {
		w.pass(20 * second)
		key := pick(w.Rand, w.keys...)
		unit, options := w.unitOf()
		period := pick[int64](w.Rand, 60, 60, 3600, 1)
		if unit == funnel.Millisecond {
			period = pick[int64](w.Rand, 60_000, 777)
		}
		limit, offset := pick(w.Rand, 10, 10, 10, 5, 1+w.Int64N(1e6)), w.Int64N(2*period)-period
		p := funnel.QuotaParams{
			Limit:    limit,
			Period:   (funnel.Nanos(period) * unit).Micros(),
			Quantity: pick(w.Rand, 1, 1, 1, 1, 0, 2, limit/2, limit, limit+1, -1, -w.Int64N(limit+1)),
			UpTo:     w.IntN(6) == 0,
			Align:    w.IntN(4) == 0,
		}
		if p.UpTo {
			options = append(options, "UPTO")
		}
		if p.Align {
			p.Offset = (funnel.Nanos(offset) * unit).Micros()
			options = append(options, "ALIGN", fmt.Sprint(offset))
		}
		v := models[key].Call(w.now, p)
		want := told(&v, limit, unit)
		if p.UpTo {
			want = append(want, v.Granted)
		}
		words := []string{"GO.QUOTA", key, fmt.Sprint(limit), fmt.Sprint(period), fmt.Sprint(p.Quantity)}
		w.call(integers(want...), v.Change != funnel.Keep, append(words, options...)...)
		w.outcome(&v)
		w.wantQuota(key, models[key], v.Change, p.Period)
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed")
}

// wantQuota checks the string of a fixed window after a call.
func (w *walk) wantQuota(key string, o *oracle.Quota, change funnel.Change, period funnel.Micros) {
	w.t.Helper()
	switch change {
	case funnel.Forget:
		if w.h.TypeOf(key) != "none" {
			w.t.Fatalf("seed %d, call %d: %s is left", w.seed, w.calls, key)
		}
	case funnel.Store:
		used, end := o.State()
		if got, want := w.h.StringOf(key), fmt.Sprintf("%d@%019d", used, end.Nanos()); got != want {
			w.t.Fatalf("seed %d, call %d: %s holds %q, want %q", w.seed, w.calls, key, got, want)
		}
		w.wantExpiry(key, end, period/4)
	}
}

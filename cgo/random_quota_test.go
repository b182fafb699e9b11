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
			Align:    w.IntN(4) == 0,
		}
		options = append(options, w.upToOrForce(&p.UpTo, &p.Force, &p.Quantity)...)
		if p.Align {
			p.Offset = (funnel.Nanos(offset) * unit).Micros()
			options = append(options, "ALIGN", fmt.Sprint(offset))
		}
		if w.IntN(60) == 0 {
			models[key] = w.nearlyTooMuch(key)
		}
		v := models[key].Call(w.now, p)
		if used, _ := models[key].State(); p.Force && v.Granted > 0 && used > limit {
			w.reply["debt"]++
		}
		words := []string{"GO.QUOTA", key, fmt.Sprint(limit), fmt.Sprint(period), fmt.Sprint(p.Quantity)}
		w.call(windowReply(&v, limit, p.UpTo, unit), v.Change != funnel.Keep, append(words, options...)...)
		w.outcome(&v)
		w.wantQuota(key, models[key], v.Change, p.Period)
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed", "debt")
	w.wantOutcomes(20, "too much")
}

// nearlyTooMuch replaces a key with a quota that has nearly as many units in use as there can be.
func (w *walk) nearlyTooMuch(key string) *oracle.Quota {
	used, end := funnel.MaxInUse-w.Int64N(10), w.now+funnel.Micros(1+w.Int64N(60*second))
	text, at := fmt.Sprintf("%d@%019d", used, end.Nanos()), int64(end/1000)+1
	w.h.PutString(key, text)
	w.h.Expire(key, at)
	w.other[key] = &replicaKey{text: text, expire: at}
	return oracle.NewQuota(used, end)
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

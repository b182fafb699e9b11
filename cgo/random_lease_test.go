package cgo_test

import (
	"fmt"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// Random calls of GO.LEASE and GO.RELEASE give the replies of the exact model, and the sorted sets
// hold its slots.
func TestRandom_lease(t *testing.T) {
	w := newWalk(t, "a", "b", "c")
	models := map[string]*oracle.Lease{"a": {}, "b": {}, "c": {}}
	for range rounds(25_000) {
		w.pass(10 * second)
		key := pick(w.Rand, w.keys...)
		o := models[key]
		if w.IntN(3) == 0 {
			w.release(key, o)
		} else {
			w.lease(key, o)
		}
		w.wantSlots(key, o)
	}
	w.wantOutcomes(50, "admitted", "limited", "renewed", "released 0", "released 1", "released 2")
}

// release makes a random GO.RELEASE of one to three ids.
func (w *walk) release(key string, o *oracle.Lease) {
	words, n := []string{"GO.RELEASE", key}, 0
	for range 1 + w.IntN(3) {
		id := fmt.Sprint(w.IntN(30))
		if o.Release(w.now, id) {
			n++
		}
		words = append(words, id)
	}
	w.call(fmt.Sprint(n), true, words...)
	w.reply["released "+fmt.Sprint(n)]++
}

// lease makes a random GO.LEASE. A denied one may remove lapsed slots.
func (w *walk) lease(key string, o *oracle.Lease) {
	unit, options := w.unitOf()
	ttl := pick[int64](w.Rand, 1, 10, 60, 600)
	if unit == funnel.Millisecond {
		ttl = 1 + w.Int64N(60_000)
	}
	limit, id := pick[int64](w.Rand, 1, 5, 5, 10, 100), fmt.Sprint(w.IntN(20))
	p := funnel.LeaseParams{Limit: limit, TTL: (funnel.Nanos(ttl) * unit).Micros()}
	v := o.Call(w.now, id, p)
	want := append(told(&v.Verdict, limit, unit), 0)
	if v.Renewed {
		want[5] = 1
		w.reply["renewed"]++
	} else {
		w.outcome(&v.Verdict)
	}
	lapsed := false
	for _, m := range w.h.ZsetOf(key) {
		lapsed = lapsed || funnel.Micros(-m.Score) <= w.now
	}
	words := []string{"GO.LEASE", key, fmt.Sprint(limit), fmt.Sprint(ttl), id}
	w.call(integers(want...), !v.Limited || lapsed, append(words, options...)...)
	if v.Limited {
		return
	}
	end := funnel.Micros(0)
	for _, lapse := range o.Held(w.now) {
		end = max(end, lapse)
	}
	w.wantExpiry(key, end, p.TTL/4)
}

// wantSlots checks that a sorted set holds the model's slots, and that it expires after the last
// one lapses. It may also hold slots that have lapsed.
func (w *walk) wantSlots(key string, o *oracle.Lease) {
	w.t.Helper()
	live, held := map[string]funnel.Micros{}, o.Held(w.now)
	for _, m := range w.h.ZsetOf(key) {
		if at := funnel.Micros(-m.Score); at > w.now {
			live[m.Text[1:]] = at
		}
	}
	if fmt.Sprint(live) != fmt.Sprint(held) {
		w.t.Fatalf("seed %d, call %d: %s: held %v, want %v", w.seed, w.calls, key, live, held)
	}
	for id, at := range live {
		if w.h.ExpireOf(key) < int64(roundUp(at, 1000)) {
			w.t.Fatalf("seed %d, call %d: %s expires before the slot of %s lapses", w.seed, w.calls, key, id)
		}
	}
}

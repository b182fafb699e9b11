package cgo_test

import (
	"fmt"
	"slices"
	"testing"
)

// Random calls of GO.LEASE and GO.RELEASE give the same replies as a map of slots.
func TestRandom_lease(t *testing.T) {
	w := newWalk(t, "a", "b", "c")
	slots := map[string]map[string]int64{"a": {}, "b": {}, "c": {}}
	for range rounds(25_000) {
		w.pass(10 * second)
		key := pick(w.Rand, w.keys...)
		held := slots[key]
		var lapses []int64
		for id, at := range held {
			if at <= w.now {
				delete(held, id)
			} else {
				lapses = append(lapses, at)
			}
		}
		slices.Sort(lapses)
		id := fmt.Sprint(w.IntN(20))
		if w.IntN(3) == 0 {
			words, n := []string{"GO.RELEASE", key}, 0
			for range 1 + w.IntN(3) {
				id := fmt.Sprint(w.IntN(30))
				if held[id] > 0 {
					n++
				}
				delete(held, id)
				words = append(words, id)
			}
			w.call(fmt.Sprint(n), true, words...)
			w.reply["released "+fmt.Sprint(n)]++
		} else {
			limit := pick[int64](w.Rand, 1, 5, 5, 10, 100)
			ttl, unit, options := pick[int64](w.Rand, 1, 10, 60, 600), int64(second), []string{}
			if w.IntN(4) == 0 {
				ttl, unit, options = 1+w.Int64N(60_000), 1000, []string{"ms"}
			}
			want, admitted := []int64{1, limit, 0, 0, -1}, true
			used := int64(len(lapses))
			switch {
			case held[id] > 0:
				w.reply["renewed"]++
				want = []int64{0, limit, max(0, limit-used), -1, ttl}
			case used < limit:
				w.reply["admitted"]++
				want = []int64{0, limit, limit - used - 1, -1, ttl}
			default:
				admitted = false
				w.reply["limited"]++
				want[3] = roundUp(lapses[used-limit]-w.now, unit)
			}
			if admitted {
				held[id] = w.now + ttl*unit
			}
			w.call(integers(want...), admitted, append([]string{"GO.LEASE", key, fmt.Sprint(limit), fmt.Sprint(ttl), id}, options...)...)
			if admitted {
				end := int64(0)
				for _, at := range held {
					end = max(end, at)
				}
				w.wantExpiry(key, end, ttl*unit/4)
			}
		}
		live := map[string]int64{}
		for _, m := range w.h.ZsetOf(key) {
			if int64(-m.Score) > w.now {
				live[m.Text[1:]] = int64(-m.Score)
			}
		}
		if fmt.Sprint(live) != fmt.Sprint(held) {
			t.Fatalf("seed %d, call %d: held %v, want %v", w.seed, w.calls, live, held)
		}
		for id, at := range live {
			if w.h.ExpireOf(key) < roundUp(at, 1000) {
				t.Fatalf("seed %d, call %d: %s expires before the slot of %s lapses", w.seed, w.calls, key, id)
			}
		}
	}
	w.wantOutcomes(50, "admitted", "limited", "renewed", "released 0", "released 1", "released 2")
}

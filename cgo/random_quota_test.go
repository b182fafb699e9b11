package cgo_test

import (
	"fmt"
	"testing"
)

// Random calls of GO.QUOTA give the same replies as a counter.
func TestRandom_quota(t *testing.T) {
	w := newWalk(t, "a", "b", "c")
	type counter struct{ used, end int64 }
	counters := map[string]*counter{}
	for range rounds(25_000) {
		w.pass(20 * second)
		key := pick(w.Rand, w.keys...)
		limit := pick(w.Rand, 10, 10, 10, 5, 1+w.Int64N(1e6))
		period, unit, options := pick[int64](w.Rand, 60, 60, 3600, 1), int64(second), []string{}
		if w.IntN(4) == 0 {
			period, unit, options = pick[int64](w.Rand, 60_000, 777), 1000, []string{"MS"}
		}
		micros := period * unit
		upTo, align := w.IntN(6) == 0, w.IntN(4) == 0
		if upTo {
			options = append(options, "UPTO")
		}
		offset := w.Int64N(2*period) - period
		if align {
			options = append(options, "ALIGN", fmt.Sprint(offset))
		}
		quantity := pick(w.Rand, 1, 1, 1, 1, 0, 2, limit/2, limit, limit+1, -1, -w.Int64N(limit+1))

		c := counters[key]
		if c == nil || w.now >= c.end {
			c = &counter{}
			counters[key] = c
		}
		take := quantity
		if upTo {
			take = min(quantity, max(limit-c.used, 1))
		}
		limited, retry, granted, changes, removed := int64(0), int64(-1), take, false, false
		switch {
		case take < 0:
			granted = -min(-take, c.used)
			c.used += granted
			changes, removed = true, c.used == 0
		case take > limit:
			limited, granted = 1, 0
		case c.used+take > limit:
			limited, granted, retry = 1, 0, roundUp(c.end-w.now, unit)
		case take > 0:
			if c.used == 0 {
				c.end = w.now + micros
				if align { // the first boundary from here
					c.end = w.now - w.now%micros + offset*unit%micros - micros
					for c.end <= w.now {
						c.end += micros
					}
				}
			}
			c.used += take
			changes = true
		}
		reset := int64(0)
		if c.used > 0 {
			reset = roundUp(c.end-w.now, unit)
		} else {
			delete(counters, key)
		}
		want := []int64{limited, limit, max(0, limit-c.used), retry, reset}
		if upTo {
			want = append(want, granted)
		}
		words := append([]string{"GO.QUOTA", key, fmt.Sprint(limit), fmt.Sprint(period), fmt.Sprint(quantity)}, options...)
		w.call(integers(want...), changes, words...)
		w.reply[[]string{"admitted", "limited"}[limited]]++
		if removed {
			w.reply["removed"]++
			if w.h.TypeOf(key) != "none" {
				t.Fatalf("seed %d: %s is left", w.seed, key)
			}
		} else if changes {
			if got, want := w.h.StringOf(key), fmt.Sprintf("%d@%d", c.used, c.end); got != want {
				t.Fatalf("seed %d, call %d: %q, want %q", w.seed, w.calls, got, want)
			}
			w.wantExpiry(key, c.end, micros/4)
		}
	}
	w.wantOutcomes(500, "admitted", "limited", "removed")
}

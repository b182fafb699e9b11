package cgo_test

import (
	"fmt"
	"testing"
)

// log is a simple model of a sliding window: the units that are left of each entry.
type log struct {
	period  int64 // µs
	entries []struct{ time, units int64 }
}

func (l *log) used(now int64) (n int64) {
	for _, e := range l.entries {
		if e.time > now-l.period {
			n += e.units
		}
	}
	return n
}

// wait returns the µs until at most most units are in use.
func (l *log) wait(now, most int64) int64 {
	for _, e := range l.entries {
		if at := e.time + l.period; at > now && l.used(at) <= most {
			return at - now
		}
	}
	return 0
}

func (l *log) add(now, units int64, own bool) {
	if n := len(l.entries); n > 0 {
		last := &l.entries[n-1]
		now = max(now, last.time)
		if now == last.time || !own && now*120/l.period == last.time*120/l.period {
			last.time, last.units = now, last.units+units
			return
		}
	}
	l.entries = append(l.entries, struct{ time, units int64 }{now, units})
}

func (l *log) giveBack(now, units int64) {
	for i := range l.entries {
		if e := &l.entries[i]; e.time > now-l.period {
			back := min(e.units, units)
			e.units -= back
			units -= back
		}
	}
}

// Random calls of GO.WINDOW give the same replies as the simple model: with small and large limits,
// EXACT, UPTO, refunds, and a clock that is set forward and back.
func TestRandom_window(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d", "e")
	logs := map[string]*log{}
	for range rounds(25_000) {
		w.pass(pick[int64](w.Rand, 2*second, 2*second, 40*second))
		key := pick(w.Rand, w.keys...)
		period := map[string]int64{"a": 60, "b": 60, "c": 1, "d": 10, "e": 0}[key] * second
		unit, options := int64(second), []string{}
		if period == 0 {
			period = 777_000
		}
		if key == "e" || w.IntN(4) == 0 {
			unit = 1000
			options = append(options, "MS")
		}
		limit := map[string]int64{"a": 10, "b": 1000, "c": 121, "d": 3, "e": 200}[key]
		limit = pick(w.Rand, limit, limit, limit, limit, limit*2, limit/2+1, 1000+w.Int64N(1e6))
		upTo, exact := w.IntN(6) == 0, w.IntN(6) == 0
		if upTo {
			options = append(options, "UPTO")
		}
		if exact {
			options = append(options, "EXACT")
		}
		quantity := pick(w.Rand, 1, 1, 1, 1, 0, 2, limit/3+1, limit/2, limit, limit+1, -1, -w.Int64N(limit+1))

		l := logs[key]
		if l == nil || w.gone(key) {
			l = &log{period: period}
			logs[key] = l
		}
		used, take := l.used(w.now), quantity
		if upTo {
			take = min(quantity, max(limit-used, 1))
		}
		limited, retry, granted, changes := int64(0), int64(-1), take, false
		switch {
		case take < 0:
			granted = -min(-take, used)
			l.giveBack(w.now, -granted)
			changes = true
		case take > limit:
			limited, granted = 1, 0
		case used+take > limit:
			limited, granted = 1, 0
			retry = roundUp(l.wait(w.now, limit-take), unit)
		case take > 0:
			l.add(w.now, take, exact || limit <= 120)
			changes = true
		}
		used, reset := l.used(w.now), int64(0)
		if used > 0 {
			reset = roundUp(l.entries[len(l.entries)-1].time+period-w.now, unit)
		}
		want := []int64{limited, limit, max(0, limit-used), retry, reset}
		if upTo {
			want = append(want, granted)
		}
		words := append([]string{"GO.WINDOW", key, fmt.Sprint(limit), fmt.Sprint(period / unit), fmt.Sprint(quantity)}, options...)
		w.call(integers(want...), changes, words...)

		w.reply[[]string{"admitted", "limited"}[limited]]++
		switch {
		case granted < 0 && used > 0:
			w.reply["given back"]++
		case granted < 0:
			w.reply["removed"]++
		}
		if take < 0 && used == 0 {
			logs[key] = nil
			if w.h.TypeOf(key) != "none" {
				t.Fatalf("seed %d: %s is left", w.seed, key)
			}
		} else if changes {
			w.wantExpiry(key, l.entries[len(l.entries)-1].time+period, period/4)
		}
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed")
}

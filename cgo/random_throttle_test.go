package cgo_test

import (
	"fmt"
	"maps"
	"math/big"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// No transcript has the replies of the exact model to random calls, on keys that users change in between. What a call
// stores is the model's state, and a replica that hears the effects holds the same keys.
func TestRandom_throttle(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d", "e", "f")
	models := map[string]*oracle.Throttle{}
	for range rounds(30_000) {
		w.pass(20 * second)
		key := pick(w.Rand, w.keys...)
		w.meddle(key, models)
		m := models[key]
		if m == nil || w.gone(key) {
			m = new(oracle.Throttle)
		}
		stood := m.Locked() > w.now.Nanos()
		words, p, unit := w.throttle(key)
		v := m.Call(w.now.Nanos(), p)
		w.call(throttleReply(&v, &p, unit), v.Change != funnel.Keep, words...)
		switch v.Change {
		case funnel.Store:
			if got, want := w.h.HashOf(key), m.Fields(0); !maps.Equal(got, want) {
				t.Fatalf("seed %d, call %d: %s holds %v, want %v", w.seed, w.calls, key, got, want)
			}
			w.wantExpiry(key, funnel.Micros(endOf(m)*1000), min(p.Rate.Drain(p.Limit), p.Rate.Period).Micros()/4)
		case funnel.Forget:
			m = nil
			if kind := w.h.TypeOf(key); kind != "none" {
				t.Fatalf("seed %d, call %d: %s is left, a %s", w.seed, w.calls, key, kind)
			}
		}
		models[key] = m
		w.outcome(&v)
		w.reply[fmt.Sprint(append(words, "")[6], " ", v.Limited)]++
		if stood {
			w.reply[fmt.Sprint("locked ", v.Limited)]++
		}
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed")
	w.wantOutcomes(200, "UPTO true", "FORCE false", "RESERVE true", "RESERVE false", "LOCKOUT true", "locked true", "locked false")
	w.wantOutcomes(40, "too much")
}

// throttle returns the words of a random call and what they say.
func (w *walk) throttle(key string) (words []string, p funnel.ThrottleParams, unit funnel.Nanos) {
	unit, inMillis := w.unitOf()
	period, length := pick[int64](w.Rand, 1, 60, 60, 60, 3600), pick(w.Rand, 1, 2, 10, 1+w.Int64N(60))
	if unit == funnel.Millisecond {
		period, length = pick[int64](w.Rand, 1, 1000, 60_000), pick(w.Rand, 1, 1000, 1+w.Int64N(60_000))
	}
	p.Limit = pick(w.Rand, 1, 2, 3, 16, 1+w.Int64N(1000))
	p.Rate = funnel.Rate{Count: pick(w.Rand, 1, 7, 30, 30, 30, 60, 1+w.Int64N(1000)), Period: funnel.Nanos(period) * unit}
	p.Quantity = pick(w.Rand, 1, 1, 1, 1, 0, 2, 5, p.Limit, p.Limit+1, -1, -2, -w.Int64N(1000))
	var mode []string
	switch w.IntN(12) {
	case 0, 1:
		p.UpTo = true
		mode = []string{"UPTO"}
	case 2, 7:
		p.Force = true
		if w.IntN(30) == 0 {
			p.Quantity = funnel.MaxLimit
		}
		mode = []string{"FORCE"}
	case 3, 4:
		p.Reserve, p.MaxWait = true, funnel.Nanos(length-1)*unit
		mode = []string{"RESERVE", fmt.Sprint(length - 1)}
	case 5, 6:
		p.Lockout = funnel.Nanos(5*length) * unit
		mode = []string{"LOCKOUT", fmt.Sprint(5 * length)}
	}
	words = []string{"GO.THROTTLE", key, fmt.Sprint(p.Limit - 1), fmt.Sprint(p.Rate.Count), fmt.Sprint(period), fmt.Sprint(p.Quantity)}
	return append(append(words, mode...), inMillis...), p, unit
}

// throttleReply returns the reply of GO.THROTTLE.
func throttleReply(v *funnel.Verdict, p *funnel.ThrottleParams, unit funnel.Nanos) string {
	if v.TooMuch {
		return commands.ErrDebtTooLong.Text()
	}
	want := told(v, p.Limit, unit)
	switch {
	case p.UpTo:
		want = append(want, v.Granted)
	case p.Reserve && v.Limited:
		want = append(want, -1)
	case p.Reserve:
		want = append(want, int64(roundUp(v.Wait, unit)))
	}
	return integers(want...)
}

// meddle changes a key as a user might between two calls.
func (w *walk) meddle(key string, models map[string]*oracle.Throttle) {
	switch w.IntN(40) {
	case 0:
		at := w.h.Now()*1000 + w.Int64N(40_000_000_000)
		models[key] = oracle.NewThrottle(big.NewRat(at, 1), funnel.Rate{})
		w.h.PutString(key, strconv.FormatInt(at, 10))
		w.other[key] = &replicaKey{text: strconv.FormatInt(at, 10), expire: fakehost.NoExpiry}
	case 1:
		w.h.Delete(key)
		delete(models, key)
		delete(w.other, key)
	case 2, 3:
		if r := w.other[key]; r != nil && !w.gone(key) {
			r.expire = pick(w.Rand, fakehost.NoExpiry, w.h.Now()/1000+w.Int64N(20_000))
			w.h.Expire(key, r.expire)
		}
	}
}

// endOf returns when nothing is in use and no lockout stands, in ms since the Unix epoch, rounded up.
func endOf(o *oracle.Throttle) int64 {
	empty, _ := o.State()
	millis := new(big.Rat).Quo(empty, big.NewRat(int64(funnel.Millisecond), 1))
	end, rest := new(big.Int).QuoRem(millis.Num(), millis.Denom(), new(big.Int))
	return max(end.Int64()+int64(rest.Sign()), int64(roundUp(o.Locked(), funnel.Millisecond)))
}

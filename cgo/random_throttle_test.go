package cgo_test

import (
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// modelKey is what a key must hold: a limiter and an expiry.
type modelKey struct {
	*oracle.Throttle
	expire  int64 // ms; NoExpiry after a user's PERSIST
	adopted bool  // the key is still redis-cell's string
}

// Random calls of GO.THROTTLE on a few keys, through all of the module, give the replies and the
// hashes of the exact model. A replica that hears the effects holds the same keys.
func TestRandom_throttle(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d", "e", "f")
	models := map[string]*modelKey{}
	for range rounds(30_000) {
		w.pass(20 * second)
		key := pick(w.Rand, w.keys...)
		w.meddle(key, models)
		if w.gone(key) {
			delete(models, key)
		}
		unit, options := w.unitOf()
		period := pick[int64](w.Rand, 1, 60, 60, 60, 3600)
		if unit == funnel.Millisecond {
			period = pick[int64](w.Rand, 1, 1000, 60_000)
		}
		limit := pick(w.Rand, 1, 2, 3, 16, 1+w.Int64N(1000))
		p := funnel.ThrottleParams{
			Limit:    limit,
			Rate:     funnel.Rate{Count: pick(w.Rand, 1, 7, 30, 30, 30, 60, 1+w.Int64N(1000)), Period: funnel.Nanos(period) * unit},
			Quantity: pick(w.Rand, 1, 1, 1, 1, 0, 2, 5, limit, limit+1, -1, -2, -w.Int64N(1000)),
		}
		options = append(options, w.mode(&p, unit)...)
		m := models[key]
		if m == nil {
			m = &modelKey{Throttle: new(oracle.Throttle), expire: fakehost.NoExpiry}
		}
		stood := m.Locked() > w.now.Nanos()
		v := m.Call(w.now.Nanos(), p)
		w.countMode(&p, &v, stood, m.Locked() > w.now.Nanos())
		switch v.Change {
		case funnel.Forget:
			delete(models, key)
		case funnel.Store:
			if m.adopted {
				m.adopted, m.expire = false, fakehost.NoExpiry
			}
			m.settle(p)
			models[key] = m
		}
		words := []string{"GO.THROTTLE", key, fmt.Sprint(limit - 1), fmt.Sprint(p.Rate.Count), fmt.Sprint(period), fmt.Sprint(p.Quantity)}
		w.call(throttleReply(&v, &p, unit), v.Change != funnel.Keep, append(words, options...)...)
		w.outcome(&v)
		for _, key := range w.keys {
			if got, want := contentOf(w.h, key), models[key].dump(); got != want {
				t.Fatalf("seed %d, call %d: %s holds %s, want %s", w.seed, w.calls, key, got, want)
			}
		}
	}
	w.wantOutcomes(500, "admitted", "limited", "given back", "removed")
	w.wantOutcomes(200, "debt", "a slot", "no slot", "locked", "limited while locked", "given back while locked")
	w.wantOutcomes(40, "forced while locked", "too much")
}

// mode gives a call one of the options that exclude each other, or none, and returns its words.
func (w *walk) mode(p *funnel.ThrottleParams, unit funnel.Nanos) []string {
	length := pick(w.Rand, 1, 2, 10, 1+w.Int64N(60))
	if unit == funnel.Millisecond {
		length = pick(w.Rand, 1, 1000, 1+w.Int64N(60_000))
	}
	switch w.IntN(12) {
	case 0, 1:
		p.UpTo = true
		return []string{"UPTO"}
	case 2, 7:
		p.Force = true
		if w.IntN(30) == 0 {
			p.Quantity = funnel.MaxLimit
		}
		return []string{"FORCE"}
	case 3, 4:
		length -= w.Int64N(2)
		p.Reserve, p.MaxWait = true, funnel.Nanos(length)*unit
		return []string{"RESERVE", fmt.Sprint(length)}
	case 5, 6:
		length *= 5
		p.Lockout = funnel.Nanos(length) * unit
		return []string{"LOCKOUT", fmt.Sprint(length)}
	}
	return nil
}

// countMode counts what the options did. A lockout stood before the call, or stands after it.
func (w *walk) countMode(p *funnel.ThrottleParams, v *funnel.Verdict, stood, stands bool) {
	switch {
	case stands && !stood:
		w.reply["locked"]++
	case stood && v.Limited:
		w.reply["limited while locked"]++
	case stood && v.Granted < 0:
		w.reply["given back while locked"]++
	case stood && v.Granted > 0:
		w.reply["forced while locked"]++
	}
	switch {
	case p.Force && v.Granted > 0 && v.ResetAfter > p.Rate.Drain(p.Limit):
		w.reply["debt"]++
	case p.Reserve && v.Wait > 0:
		w.reply["a slot"]++
	case p.Reserve && v.Limited && v.RetryAfter != funnel.Never:
		w.reply["no slot"]++
	}
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
func (w *walk) meddle(key string, models map[string]*modelKey) {
	switch w.IntN(40) {
	case 0:
		at := w.h.Now()*1000 + w.Int64N(40_000_000_000)
		models[key] = &modelKey{Throttle: oracle.NewThrottle(big.NewRat(at, 1), funnel.Rate{}), expire: fakehost.NoExpiry, adopted: true}
		w.h.PutString(key, strconv.FormatInt(at, 10))
		w.other[key] = &replicaKey{text: strconv.FormatInt(at, 10), expire: fakehost.NoExpiry}
	case 1:
		w.h.Delete(key)
		delete(models, key)
		delete(w.other, key)
	case 2, 3:
		if m := models[key]; m != nil && !w.gone(key) {
			m.expire = pick(w.Rand, fakehost.NoExpiry, w.h.Now()/1000+w.Int64N(20_000))
			w.h.Expire(key, m.expire)
			w.other[key].expire = m.expire
		}
	}
}

// settle sets the expiry that a stored state gets. An expiry stays if it is neither before the end
// of the state nor later than the slack allows.
func (m *modelKey) settle(p funnel.ThrottleParams) {
	from := endOf(m.Throttle)
	to := from + max(1000, int64(min(p.Rate.Drain(p.Limit), p.Rate.Period)/4/funnel.Millisecond))
	if m.expire < from || m.expire > to {
		m.expire = to
	}
}

// endOf returns when nothing is in use and no lockout stands, in ms since the Unix epoch, rounded up.
func endOf(o *oracle.Throttle) int64 {
	empty, _ := o.State()
	millis := new(big.Rat).Quo(empty, big.NewRat(int64(funnel.Millisecond), 1))
	end, rest := new(big.Int).QuoRem(millis.Num(), millis.Denom(), new(big.Int))
	return max(end.Int64()+int64(rest.Sign()), int64(roundUp(o.Locked(), funnel.Millisecond)))
}

// dump returns what the key must hold, in the form of contentOf.
func (m *modelKey) dump() string {
	if m == nil {
		return "none"
	}
	if m.adopted {
		empty, _ := m.State()
		return fmt.Sprint("string ", empty.RatString(), " until ", m.expire)
	}
	return fmt.Sprint("hash ", m.Throttle.Fields(0), " until ", m.expire)
}

// contentOf returns what a string or a hash holds, and until when.
func contentOf(h *fakehost.Host, key string) string {
	switch kind := h.TypeOf(key); kind {
	case "string":
		return fmt.Sprint(kind, " ", h.StringOf(key), " until ", h.ExpireOf(key))
	case "hash":
		return fmt.Sprint(kind, " ", h.HashOf(key), " until ", h.ExpireOf(key))
	default:
		return kind
	}
}

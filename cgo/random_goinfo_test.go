package cgo_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// infoWalk is random traffic on keys of each kind, with an exact model of each key.
type infoWalk struct {
	*walk
	cells  map[string]*oracle.Throttle
	locked map[string]funnel.Micros // the end of a cell's lockout
	window map[string]*oracle.Window
	quota  map[string]*oracle.Quota
	lease  map[string]*oracle.Lease
}

// What GO.INFO tells is what the exact models hold: units, rates, lockouts, ends, holders. The clock
// is set forward and back.
func TestRandom_info(t *testing.T) {
	w := &infoWalk{walk: newWalk(t, "cell1", "cell2", "window1", "window2", "quota", "lease"),
		cells: map[string]*oracle.Throttle{}, locked: map[string]funnel.Micros{}, window: map[string]*oracle.Window{},
		quota: map[string]*oracle.Quota{}, lease: map[string]*oracle.Lease{}}
	for range rounds(10_000) {
		w.pass(pick[int64](w.Rand, second, 20*second))
		key := pick(w.Rand, w.keys...)
		w.forget(key)
		switch key[:4] {
		case "cell":
			w.callCell(key)
		case "wind":
			w.callWindow(key)
		case "quot":
			w.callQuota(key)
		default:
			w.callLease(key)
		}
		w.pass(pick[int64](w.Rand, 1000, 30*second))
		for _, key := range w.keys {
			w.forget(key)
			w.wantInfo(key)
		}
	}
	w.wantOutcomes(60, "no key", "in use", "nothing in use", "locked", "not locked", "recorded", "dead", "ended", "held", "lapsed")
}

// forget drops the model of a key that has expired.
func (w *infoWalk) forget(key string) {
	if w.h.TypeOf(key) == "none" || w.gone(key) {
		delete(w.cells, key)
		delete(w.locked, key)
		delete(w.window, key)
		delete(w.quota, key)
		delete(w.lease, key)
	}
}

func (w *infoWalk) run(format string, words ...any) {
	w.t.Helper()
	w.calls++
	line := fmt.Sprintf(format, words...)
	if got := call(w.h, line); got.Err != "" {
		w.t.Fatalf("seed %d: %s: %s", w.seed, line, got)
	}
}

// callCell makes a random call of GO.THROTTLE, at times with a lockout. While a lockout stands the call
// has the rate of the key, so a denied call does not change the model.
func (w *infoWalk) callCell(key string) {
	o := w.cells[key]
	if o == nil {
		o = new(oracle.Throttle)
		w.cells[key] = o
	}
	standing := w.locked[key] > w.now
	period := pick[int64](w.Rand, 1, 60_000, 60_000, 777)
	count := pick[int64](w.Rand, 7, 30, 1)
	if standing {
		count, period = w.rateOf(o)
	}
	p := funnel.ThrottleParams{Limit: pick[int64](w.Rand, 1, 1, 5, 16),
		Rate: funnel.Rate{Count: count, Period: funnel.Nanos(period) * funnel.Millisecond}, Quantity: pick[int64](w.Rand, 1, 1, 2, 5, 0, -1, -3)}
	options := ""
	lockout := int64(0)
	if w.IntN(2) == 0 {
		lockout = 1 + w.Int64N(60_000)
		options = fmt.Sprint(" LOCKOUT ", lockout)
	}
	w.run("GO.THROTTLE %s %d %d %d %d MS%s", key, p.Limit-1, count, period, p.Quantity, options)
	if standing && p.Quantity > 0 {
		return
	}
	v := o.Call(w.now.Nanos(), p)
	if v.Limited && p.Quantity >= 1 && p.Quantity <= p.Limit && lockout > 0 {
		w.locked[key] = w.now + funnel.Micros(lockout*1000)
	}
	if v.Change == funnel.Forget && standing { // the key stays for its lockout
		*o = *oracle.NewThrottle(new(big.Rat).SetInt64(int64(w.now.Nanos())), p.Rate)
	}
}

// rateOf returns the rate of a cell as count per ms. All rates of this test are given with whole ms.
func (w *infoWalk) rateOf(o *oracle.Throttle) (count, millis int64) {
	_, rate := o.State()
	perMilli := big.NewRat(rate.Count, 1)
	perMilli.Mul(perMilli, big.NewRat(int64(funnel.Millisecond), int64(rate.Period)))
	return perMilli.Num().Int64(), perMilli.Denom().Int64()
}

func (w *infoWalk) callWindow(key string) {
	if w.window[key] == nil {
		w.window[key] = new(oracle.Window)
	}
	limit := map[string]int64{"window1": 30, "window2": 1000}[key]
	p := funnel.WindowParams{Limit: limit, Period: 40 * second, Quantity: pick(w.Rand, 1, 1, 2, limit/3, 0, -1, -limit/4)}
	w.run("GO.WINDOW %s %d 40 %d", key, limit, p.Quantity)
	w.window[key].Call(w.now, p)
}

func (w *infoWalk) callQuota(key string) {
	if w.quota[key] == nil {
		w.quota[key] = new(oracle.Quota)
	}
	p := funnel.QuotaParams{Limit: 10, Period: 10 * second, Quantity: pick[int64](w.Rand, 1, 2, 3, -1)}
	w.run("GO.QUOTA %s 10 10 %d", key, p.Quantity)
	w.quota[key].Call(w.now, p)
}

func (w *infoWalk) callLease(key string) {
	if w.lease[key] == nil {
		w.lease[key] = new(oracle.Lease)
	}
	ttl, id := 1+w.Int64N(300_000), fmt.Sprint(w.IntN(400))
	limit := pick[int64](w.Rand, 1000, 1000, 1000, 10)
	if w.IntN(10) == 0 {
		w.run("GO.RELEASE %s %s", key, id)
		w.lease[key].Release(w.now, id)
		return
	}
	w.run("GO.LEASE %s %d %d %s MS", key, limit, ttl, id)
	w.lease[key].Call(w.now, id, funnel.LeaseParams{Limit: limit, TTL: funnel.Micros(ttl * 1000)})
}

// wantInfo checks what GO.INFO tells of a key. Whether a key still stands, and until when, is what
// the host holds.
func (w *infoWalk) wantInfo(key string) {
	w.t.Helper()
	want, expired := w.infoOf(key), w.gone(key)
	before := w.h.Dump()
	if got := w.h.Call("GO.INFO", key).String(); got != want {
		w.t.Fatalf("seed %d, call %d: GO.INFO %s at %d: %s\nwant %s\nof %q", w.seed, w.calls, key, w.now, got, want, before)
	}
	if !expired {
		wantNothing(w.t, w.h, "GO.INFO", before)
	}
}

func (w *infoWalk) infoOf(key string) string {
	if w.h.TypeOf(key) == "none" || w.gone(key) {
		w.reply["no key"]++
		return "(nil)"
	}
	expires := w.millisUntil(funnel.Micros(w.h.ExpireOf(key)) * 1000)
	switch key[:4] {
	case "cell":
		return w.infoOfCell(key, expires)
	case "wind":
		set := w.h.ZsetOf(key)
		ages := [2]funnel.Micros{}
		for i, m := range []fakehost.Member{set[0], set[len(set)-1]} {
			ages[i] = max(w.now-funnel.Micros(-m.Score), 0) / 1000
		}
		all := w.window[key].InUse(w.now, 1<<50)
		w.saw(all > 0, "recorded", "nothing recorded")
		w.saw(all > w.window[key].InUse(w.now, 40*second), "dead", "all alive")
		return fmt.Sprintf(infoOfWindow, expires, len(set), all, ages[0], ages[1])
	case "quot":
		used, end := w.quota[key].State()
		if w.saw(end <= w.now, "ended", "runs"); end <= w.now {
			used = 0
		}
		return fmt.Sprintf(infoOfQuota, expires, used, w.millisUntil(end))
	}
	return w.infoOfLease(key, expires)
}

func (w *infoWalk) infoOfCell(key string, expires int64) string {
	empty, rate := w.cells[key].State()
	left := new(big.Rat).Sub(empty, new(big.Rat).SetInt64(int64(w.now.Nanos())))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	count, millis := w.rateOf(w.cells[key])
	units := new(big.Rat).Mul(left, big.NewRat(rate.Count, int64(rate.Period)))
	locked := w.millisUntil(w.locked[key])
	w.saw(left.Sign() > 0, "in use", "nothing in use")
	w.saw(locked > 0, "locked", "not locked")
	return fmt.Sprintf(infoOneCell, expires, ceilRat(units), count, millis, ceilRat(left.Quo(left, big.NewRat(int64(funnel.Millisecond), 1))), locked)
}

func (w *infoWalk) infoOfLease(key string, expires int64) string {
	held := w.lease[key].Held(w.now)
	ids := slices.SortedFunc(maps.Keys(held), func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
	w.saw(len(held) > 0, "held", "none held")
	w.saw(len(held) < len(w.h.ZsetOf(key)), "lapsed", "none lapsed")
	var told []string
	for _, id := range ids[:min(len(ids), 128)] {
		told = append(told, id, fmt.Sprint(w.millisUntil(held[id])))
	}
	return fmt.Sprintf("[kind lease expires_in_ms %d held %d holders [%s]]", expires, len(held), strings.Join(told, " "))
}

// saw counts one of two outcomes.
func (w *infoWalk) saw(yes bool, name, other string) {
	if !yes {
		name = other
	}
	w.reply[name]++
}

// millisUntil returns how many ms from now on the instant lies, rounded up.
func (w *infoWalk) millisUntil(at funnel.Micros) int64 { return int64(roundUp(max(at-w.now, 0), 1000)) }

// ceilRat rounds up. x is not negative.
func ceilRat(x *big.Rat) *big.Int {
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	return n.Add(n, big.NewInt(int64(rest.Sign())))
}

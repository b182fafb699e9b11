package cgo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// limiters has the exact models of the keys of a random walk of GO.ALL. The first letter of a key's
// name tells its kind: t, w, q, l.
type limiters struct {
	cells   map[string][]*oracle.Throttle // by key and position
	windows map[string]*oracle.Window
	quotas  map[string]*oracle.Quota
	leases  map[string]*oracle.Lease
}

func newLimiters(keys ...string) *limiters {
	m := &limiters{map[string][]*oracle.Throttle{}, map[string]*oracle.Window{}, map[string]*oracle.Quota{}, map[string]*oracle.Lease{}}
	for _, key := range keys {
		switch key[0] {
		case 't':
			for range 4 {
				m.cells[key] = append(m.cells[key], new(oracle.Throttle))
			}
		case 'w':
			m.windows[key] = new(oracle.Window)
		case 'q':
			m.quotas[key] = new(oracle.Quota)
		case 'l':
			m.leases[key] = new(oracle.Lease)
		}
	}
	return m
}

// decided is what one clause alone says.
type decided struct {
	v      funnel.Verdict
	limit  int64
	last   []int64               // renewed, of LEASE
	peek   func() funnel.Verdict // what the clause tells if another one denies
	commit func()                // the model takes what v says
}

// reply returns the integers of the clause's reply.
func (d *decided) reply(v *funnel.Verdict, unit funnel.Nanos) []int64 {
	return append(told(v, d.limit, unit), d.last...)
}

// clause makes a random clause for a key, and decides it by the models. The lease is held by id.
func (w *walk) clause(m *limiters, key string, cell int, unit funnel.Nanos, force bool) (words []string, d decided) {
	d.limit = pick(w.Rand, 1, 5, 5, 16, 1+w.Int64N(300))
	q := pick(w.Rand, 1, 1, 1, 1, 1, 1, 2, 0, 0, -1, -w.Int64N(20), d.limit, d.limit+w.Int64N(2))
	number := func(span funnel.Nanos) string { return fmt.Sprint(int64(span / unit)) }
	switch key[0] {
	case 't':
		// Most calls use one rate per cell.
		rate := funnel.Rate{Count: []int64{30, 7, 60}[(cell+int(key[1]))%3], Period: 60 * funnel.Second}
		if w.IntN(30) == 0 {
			rate = funnel.Rate{Count: pick[int64](w.Rand, 1, 11, 30), Period: funnel.Nanos(1+w.Int64N(1000)) * unit}
		}
		p := funnel.ThrottleParams{Limit: d.limit, Rate: rate, Quantity: q, Force: force}
		next := m.cells[key][cell].Clone()
		d.v = next.Call(w.now.Nanos(), p)
		d.commit = func() { m.cells[key][cell] = next }
		d.peek = func() funnel.Verdict { p.Quantity = 0; return m.cells[key][cell].Clone().Call(w.now.Nanos(), p) }
		words = []string{"THROTTLE", fmt.Sprint(d.limit - 1), fmt.Sprint(rate.Count), number(rate.Period), fmt.Sprint(q)}
	case 'w':
		p := funnel.WindowParams{Limit: d.limit, Period: 10 * second, Quantity: q, Exact: w.IntN(4) == 0, Force: force}
		next := m.windows[key].Clone()
		d.v = next.Call(w.now, p)
		d.commit = func() { m.windows[key] = next }
		d.peek = func() funnel.Verdict { p.Quantity = 0; return m.windows[key].Clone().Call(w.now, p) }
		words = []string{"WINDOW", fmt.Sprint(d.limit), number(p.Period.Nanos()), fmt.Sprint(q)}
		if p.Exact {
			words = append(words, "exact")
		}
	case 'q':
		p := funnel.QuotaParams{Limit: d.limit, Period: pick[funnel.Micros](w.Rand, 10, 10, 60) * second, Quantity: q, Align: w.IntN(3) == 0, Force: force}
		offset := funnel.Nanos(w.IntN(30) - 15)
		words = []string{"QUOTA", fmt.Sprint(d.limit), number(p.Period.Nanos()), fmt.Sprint(q)}
		if p.Align {
			p.Offset = (offset * unit).Micros()
			words = append(words, "ALIGN", fmt.Sprint(int64(offset)))
		}
		next := m.quotas[key].Clone()
		d.v = next.Call(w.now, p)
		d.commit = func() { m.quotas[key] = next }
		d.peek = func() funnel.Verdict { p.Quantity = 0; return m.quotas[key].Clone().Call(w.now, p) }
	case 'l':
		id := fmt.Sprint(w.IntN(8))
		p := funnel.LeaseParams{Limit: min(d.limit, 16), TTL: pick[funnel.Micros](w.Rand, 1, 10, 60) * second}
		d.limit = p.Limit
		next := m.leases[key].Clone()
		v := next.Call(w.now, id, p)
		d.v, d.last = v.Verdict, []int64{0}
		if v.Renewed {
			d.last[0] = 1
		}
		d.commit = func() { m.leases[key] = next }
		d.peek = func() (v funnel.Verdict) {
			held := m.leases[key].Held(w.now)
			v.Remaining = max(p.Limit-int64(len(held)), 0)
			for _, lapse := range held {
				v.ResetAfter = max(v.ResetAfter, (lapse - w.now).Nanos())
			}
			return v
		}
		words = []string{"LEASE", fmt.Sprint(p.Limit), number(p.TTL.Nanos()), id}
	}
	return words, d
}

// wantAll returns the reply to a call of several clauses. The models take what the call takes.
func wantAll(clauses []decided, unit funnel.Nanos) (want string, limited bool) {
	decider := 0
	never := func(v *funnel.Verdict) bool { return v.RetryAfter == funnel.Never }
	wait := func(v *funnel.Verdict) funnel.Nanos { return roundUp(v.RetryAfter, unit) }
	for i := range clauses {
		v, best := &clauses[i].v, &clauses[decider].v
		limited = limited || v.Limited
		switch {
		case v.Limited && !best.Limited,
			v.Limited && !never(best) && (never(v) || wait(v) > wait(best)),
			!v.Limited && !best.Limited && v.Remaining < best.Remaining:
			decider = i
		}
	}
	inner := make([][]int64, len(clauses))
	for i := range clauses {
		d := &clauses[i]
		v := d.v
		if limited && !v.Limited {
			v = d.peek()
			v.Limited, v.RetryAfter = false, 0
		}
		inner[i] = d.reply(&v, unit)
	}
	for i := range clauses {
		if !limited || clauses[i].v.Limited {
			clauses[i].commit()
		}
	}
	five := strings.Trim(fmt.Sprint(inner[decider][:5]), "[]")
	return fmt.Sprintf("[%s %d %s", five, decider, fmt.Sprint(inner)[1:]), limited
}

// Random calls of GO.ALL with clauses of all kinds give the replies of the exact models, one for each
// clause, and a replica that hears the effects holds the same keys. GO.ALL_RO gives the same reply
// before.
func TestRandom_all(t *testing.T) {
	w := newWalk(t, "t1", "t2", "w1", "w2", "q1", "q2", "l1", "l2")
	m := newLimiters(w.keys...)
	for range rounds(10_000) {
		w.pass(5 * second)
		unit, options := w.unitOf()
		var words []string
		var clauses []decided
		if w.IntN(20) == 0 {
			w.lock(m)
		}
		w.Shuffle(len(w.keys), func(i, j int) { w.keys[i], w.keys[j] = w.keys[j], w.keys[i] })
		keys := w.keys[:pick(w.Rand, 1, 2, 2, 3, 4, 8)]
		force := w.IntN(8) == 0 && slices.ContainsFunc(keys, func(key string) bool { return key[0] != 'l' })
		for _, key := range keys {
			if force && key[0] == 'l' {
				continue
			}
			if len(words) > 0 {
				words = append(words, pick(w.Rand, "KEY", "key"))
			}
			words = append(words, key)
			n := 1
			if key[0] == 't' {
				n = pick(w.Rand, 1, 1, 2, 3, 4)
			}
			for cell := range n {
				clause, d := w.clause(m, key, cell, unit, force)
				words, clauses = append(words, clause...), append(clauses, d)
			}
		}
		if force {
			options = append(options, pick(w.Rand, "FORCE", "force"))
			w.reply["forced"]++
		}
		locked := m.locked(w.now.Nanos())
		want, limited := wantAll(clauses, unit)
		words = append(words, options...)
		w.callReadOnly(want, append([]string{"GO.ALL_RO"}, words...))
		w.call(want, true, append([]string{"GO.ALL"}, words...)...)
		if limited {
			w.reply["limited"]++
			if locked {
				w.reply["limited while locked"]++
			}
		} else {
			w.reply["admitted"]++
		}
		w.wantLimiters(m)
	}
	w.wantOutcomes(2000, "admitted", "limited")
	w.wantOutcomes(500, "forced", "limited while locked")
}

// lock begins a lockout of a cell that is in use, as a denied call of a policy does.
func (w *walk) lock(m *limiters) {
	key, cell := pick(w.Rand, "t1", "t2"), w.IntN(4)
	o, end := m.cells[key][cell], w.now.Nanos()+funnel.Nanos(1+w.Int64N(20e9))
	if o.Void(w.now.Nanos()) || w.gone(key) {
		return
	}
	empty, rate := o.State()
	m.cells[key][cell] = oracle.NewLockedThrottle(empty, rate, end)
	field, value, at := fmt.Sprint(128+cell), fmt.Sprint(int64(end)), max(w.h.ExpireOf(key), int64(end/funnel.Millisecond)+1)
	w.h.PutField(key, field, value)
	w.h.Expire(key, at)
	w.other[key].fields[field], w.other[key].expire = value, at
}

// locked reports whether a lockout stands.
func (m *limiters) locked(now funnel.Nanos) bool {
	for _, cells := range m.cells {
		if slices.ContainsFunc(cells, func(o *oracle.Throttle) bool { return o.Locked() > now }) {
			return true
		}
	}
	return false
}

// callReadOnly makes a call that must change nothing.
func (w *walk) callReadOnly(want string, words []string) {
	w.t.Helper()
	if got := w.tell(words); got != want {
		w.t.Fatalf("seed %d, call %d: %q at %d: reply %s, want %s; %q", w.seed, w.calls, words, w.now, got, want, w.h.Dump())
	}
}

// tell makes a call that must change nothing and returns its reply.
func (w *walk) tell(words []string) string {
	w.t.Helper()
	reply := w.h.Call(words...).String()
	for _, e := range w.h.Events() {
		if e.Name != "expired" {
			w.t.Fatalf("seed %d, call %d: %q: event %v", w.seed, w.calls, words, e)
		}
	}
	for _, effect := range w.h.EffectWords() { // the server removes a key that has expired
		w.other.apply(effect)
	}
	return reply
}

// wantLimiters checks what the keys hold.
func (w *walk) wantLimiters(m *limiters) {
	w.t.Helper()
	fail := func(key string, want any) {
		w.t.Fatalf("seed %d, call %d: %s holds %q, want %v", w.seed, w.calls, key, w.h.Dump(), want)
	}
	for key, cells := range m.cells {
		fields := w.h.HashOf(key)
		for i, o := range cells {
			if o.Void(w.now.Nanos()) {
				continue // the fields may be absent, or hold a state that is void
			}
			for name, value := range o.Fields(i) {
				if fields[name] != value {
					fail(key, o.Fields(i))
				}
			}
			if w.h.ExpireOf(key) < endOf(o) {
				fail(key, endOf(o))
			}
		}
	}
	for key, o := range m.quotas {
		if used, end := o.State(); !o.Void(w.now) && w.h.StringOf(key) != fmt.Sprintf("%d@%019d", used, end.Nanos()) {
			fail(key, used)
		}
	}
	for key, o := range m.leases {
		w.wantSlots(key, o)
	}
}

package main

import (
	"math/big"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// decision is what one clause alone says.
type decision struct {
	v       funnel.Verdict
	renewed int64
	take    func()                // the key takes the verdict
	peek    func() funnel.Verdict // what the clause has left if another clause denies
}

func (m *model) clause(k *keyed, cl *clause) decision {
	switch cl.kind {
	case 't':
		return m.cell(k, cl)
	case 'w':
		return m.window(k, cl)
	case 'q':
		return m.quota(k, cl)
	}
	return m.slot(k, cl)
}

func (m *model) cell(k *keyed, cl *clause) decision {
	e, now := k.after, m.now.Nanos()
	for len(e.cells) <= cl.cell {
		e.cells = append(e.cells, new(oracle.Throttle))
	}
	next, p := e.cells[cl.cell].Clone(), cl.throttle
	if cl.cell == 0 {
		k.rate = p.Rate
	}
	d := decision{v: next.Call(now, p)}
	d.take = func() {
		if d.v.Change == funnel.Keep {
			return
		}
		drain := new(big.Int).Mul(big.NewInt(p.Limit), big.NewInt(int64(p.Rate.Period)))
		drain.Div(drain, big.NewInt(p.Rate.Count))
		k.change(min(p.Rate.Period, funnel.Nanos(drain.Int64())+1))
		if e.adopted && cl.cell > 0 { // the first cell gets a rate
			empty, rate := e.cells[0].State()
			if rate.Count == 0 {
				e.cells[0] = oracle.NewThrottle(empty, k.rate)
			}
		}
		e.adopted = false
		e.cells[cl.cell] = next
	}
	d.peek = func() funnel.Verdict {
		p.Quantity = 0
		return e.cells[cl.cell].Clone().Call(now, p)
	}
	return d
}

func (m *model) window(k *keyed, cl *clause) decision {
	e := k.after
	next, p := e.window.Clone(), cl.window
	d := decision{v: next.Call(m.now, p)}
	d.take = func() {
		if d.v.Change != funnel.Keep {
			k.change(p.Period.Nanos())
			e.window, e.period = next, p.Period
		}
	}
	d.peek = func() funnel.Verdict {
		p.Quantity = 0
		return e.window.Clone().Call(m.now, p)
	}
	return d
}

func (m *model) quota(k *keyed, cl *clause) decision {
	e := k.after
	next, p := e.quota.Clone(), cl.quota
	d := decision{v: next.Call(m.now, p)}
	d.take = func() {
		if d.v.Change != funnel.Keep {
			k.change(p.Period.Nanos())
			e.quota = next
		}
	}
	d.peek = func() funnel.Verdict {
		p.Quantity = 0
		return e.quota.Clone().Call(m.now, p)
	}
	return d
}

func (m *model) slot(k *keyed, cl *clause) decision {
	e, p := k.after, cl.lease
	next := e.lease.Clone()
	v := next.Call(m.now, cl.id, p)
	d := decision{v: v.Verdict}
	if v.Renewed {
		d.renewed = 1
	}
	d.take = func() {
		if !v.Limited {
			k.change(p.TTL.Nanos())
			e.lease = next
		}
	}
	d.peek = func() (v funnel.Verdict) {
		held := e.lease.Held(m.now)
		v.Remaining = max(p.Limit-int64(len(held)), 0)
		for _, lapse := range held {
			v.ResetAfter = max(v.ResetAfter, (lapse - m.now).Nanos())
		}
		return v
	}
	return d
}

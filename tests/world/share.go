package world

import (
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// lack is a tenant whose share denies the call.
type lack struct {
	clause int
	own    funnel.Nanos // the wait of its own limit
}

// most returns how many units a clause can ever have left.
func (d *decision) most(i int) int64 {
	c := &d.Clauses[i]
	if c.Weight == 0 {
		return c.Limit
	}
	return min(c.Limit, c.Weight*d.most(i-1))
}

// chain has a clause and those before it that its share depends on. The first one is the shared limit.
func (d *decision) chain(i int) []oracle.Link {
	c := &d.Clauses[i]
	s := d.keys.at(c.Key)
	l := oracle.Link{Limit: c.Limit, Weight: c.Weight, InUse: func(at funnel.Nanos) int64 {
		switch c.Kind {
		case 'w':
			return s.window.InUse(at.Micros(), c.Period.Micros())
		case 'l':
			return int64(len(s.lease.Held(at.Micros())))
		case 't':
			p := funnel.ThrottleParams{Limit: c.Limit, Rate: funnel.Rate{Period: c.Period, Count: c.Count}}
			return c.Limit - s.cells[c.Cell].Clone().Call(at, p).Remaining
		}
		if used, end := s.quota.State(); end > at.Micros() {
			return used
		}
		return 0
	}}
	if c.Weight == 0 {
		return []oracle.Link{l}
	}
	return append(d.chain(i-1), l)
}

// share decides by the share of a clause, which has got v.
func (d *decision) share(i int, v funnel.LeaseVerdict) {
	c := &d.Clauses[i]
	granted := v.Granted
	switch {
	case v.Renewed:
		granted = 0
	case c.Quantity >= 0 && !d.Force && !oracle.Fits(d.chain(i), c.Quantity, d.now.Nanos()):
		d.short = append(d.short, lack{i, v.RetryAfter})
		peek := d.call(d.keys.at(c.Key).Clone(), c, 0, false)
		peek.Limited, granted = true, 0
		d.rows[i] = d.row(c, peek)
	}
	d.remains(i, granted)
}

// remains sets what a tenant has left after a call.
func (d *decision) remains(i int, granted int64) {
	c, chain := &d.Clauses[i], d.chain(i)
	used := chain[len(chain)-1].InUse(d.now.Nanos())
	d.rows[i][2] = max(min(c.Limit, c.Weight*d.rows[i-1][2].(int64))-used-granted, 0)
}

// waits sets the waits of tenants whose shares deny, by what the call stores: the rates of clauses that deny, and those before a
// tenant that asks for units, as if these had denied.
func (d *decision) waits(mayLock bool) {
	for i := range d.Clauses {
		if c := &d.Clauses[i]; len(d.short) > 0 && c.Kind == 't' && d.rows[i][0] == int64(1) && c.Quantity > 0 && c.Quantity <= c.Limit {
			d.settle(c)
		}
	}
	for _, l := range d.short {
		c := &d.Clauses[l.clause]
		if c.Quantity == 0 || c.Quantity > min(c.Limit, c.Weight*d.most(l.clause-1)) {
			continue
		}
		for i := range l.clause {
			front := &d.Clauses[i]
			if front.Kind != 't' {
				continue
			}
			d.settle(front)
			if d.rows[i][0] == int64(1) {
				d.rows[i] = d.row(front, d.call(d.keys.at(front.Key).Clone(), front, front.Quantity, mayLock))
			}
		}
	}
	for _, l := range d.short {
		c := &d.Clauses[l.clause]
		wait := oracle.Wait(d.chain(l.clause), c.Quantity, d.now.Nanos())
		if d.rows[l.clause][3] = int64(-1); wait != funnel.Never && l.own != funnel.Never {
			d.rows[l.clause][3] = up(max(wait, l.own), d.Unit)
		}
	}
}

// settle stores the rate of a clause.
func (d *decision) settle(c *Clause) {
	p := funnel.ThrottleParams{Limit: c.Limit, Rate: funnel.Rate{Period: c.Period, Count: c.Count}, Settle: true}
	d.keys.at(c.Key).cells[c.Cell].Call(d.now.Nanos(), p)
}

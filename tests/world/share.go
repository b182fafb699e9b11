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

// front returns the clauses that have what a tenant shares, from the first up to the tenant. If that is units and the tenant
// is a lease, they are the whole run of clauses of units.
func (d *Call) front(i int) (first int) {
	first = i - 1
	for d.Clauses[i].Kind == 'l' && first > 0 && d.Clauses[first].Kind != 'l' && d.Clauses[first-1].Kind != 'l' {
		first--
	}
	return first
}

// holds reports whether a tenant is a lease that shares units.
func (d *Call) holds(i int) bool {
	return d.Clauses[i].Weight > 0 && d.Clauses[i].Kind == 'l' && d.Clauses[i-1].Kind != 'l'
}

// held reports whether a lease shares the units of a clause.
func (d *Call) held(clause int) (yes bool) {
	for i := range d.Clauses {
		yes = yes || i > clause && d.holds(i) && d.front(i) <= clause
	}
	return yes
}

// link has a clause and those before it that its share depends on.
func (d *decision) link(i int) *oracle.Link {
	c := &d.Clauses[i]
	s := d.keys.at(c.Key)
	l := &oracle.Link{Limit: c.Limit, Weight: c.Weight, InUse: func(at funnel.Nanos) int64 {
		switch c.Kind {
		case 'w':
			return s.window.InUse(at.Micros(), c.Period.Micros())
		case 'l':
			used, _ := s.lease.Used(at.Micros())
			return used
		case 't':
			p := funnel.ThrottleParams{Limit: c.Limit, Rate: funnel.Rate{Period: c.Period, Count: c.Count}}
			return c.Limit - s.cells[c.Cell].Clone().Call(at, p).Remaining
		}
		if used, end := s.quota.State(); end > at.Micros() {
			return used
		}
		return 0
	}}
	for f := d.front(i); c.Weight > 0 && f < i; f++ {
		l.Front = append(l.Front, *d.link(f))
	}
	return l
}

// share decides by the share of a clause, which has got v.
func (d *decision) share(i int, v funnel.LeaseVerdict) {
	c := &d.Clauses[i]
	granted := v.Granted
	if c.Quantity >= 0 && !v.Renewed && !d.Force && !d.link(i).Fits(c.Quantity, d.now.Nanos()) {
		d.short = append(d.short, lack{i, v.RetryAfter})
		peek := d.call(d.keys.at(c.Key).Clone(), c, 0, false)
		peek.Limited, granted = true, 0
		d.rows[i] = d.row(c, peek)
	}
	d.remains(i, granted)
}

// remains sets what a tenant has left after a call.
func (d *decision) remains(i int, granted int64) {
	c := &d.Clauses[i]
	left := c.Limit
	for f := d.front(i); f < i; f++ {
		left = min(left, c.Weight*d.rows[f][2].(int64))
	}
	d.rows[i][2] = max(left-d.link(i).InUse(d.now.Nanos())-granted, 0)
}

// waits sets the waits of tenants whose shares deny, by what the call stores: the rates of clauses that deny, and those before a
// tenant that asks for units, as if these had denied. Where a lease shares units, the clauses that have them store nothing.
func (d *decision) waits(mayLock bool) {
	for i := range d.Clauses {
		if c := &d.Clauses[i]; len(d.short) > 0 && c.Kind == 't' && d.rows[i][0] == int64(1) && c.Quantity > 0 && c.Quantity <= c.Limit {
			d.settle(c)
		}
	}
	for _, l := range d.short {
		c := &d.Clauses[l.clause]
		if c.Quantity == 0 || c.Quantity > d.link(l.clause).Most() || d.holds(l.clause) {
			continue
		}
		for i := range l.clause {
			front := &d.Clauses[i]
			if front.Kind != 't' || d.held(i) {
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
		wait := d.link(l.clause).Wait(c.Quantity, d.now.Nanos())
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

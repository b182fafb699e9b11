package commands

import "gothrottle/funnel"

// A clause with SHARE is a tenant of the clause before it, which is the shared limit or a tenant of another one.

// tenant is a limiter that can have a share: what it has in use leaves at certain instants.
type tenant interface {
	limiter
	// later returns the units in use at an instant from now on if no call comes, and when the first of them lapse.
	later(c *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode)
}

// drain is a limiter whose usage drains.
type drain interface {
	limiter
	// wait returns how long it takes until units fit, or funnel.Never.
	wait(c *Call, units int64) funnel.Nanos
	// settle makes a changed rate be stored although the limiter itself doesn't deny.
	settle()
}

// share is what the tenants of a call need to know of a clause. used is of tenants only.
type share struct {
	used, left int64 // before the call
}

// noLapse is an instant after all lapses.
const noLapse funnel.Micros = 1 << 62

// misplacedShare returns the error of a SHARE in the last clause, or NoError if the clause may have one.
func (c *Call) misplacedShare() ErrorCode {
	last := len(c.Clauses) - 1
	kind := clauseKinds[c.Clauses[last].kind]
	switch {
	case kind.cells:
		return ErrShareCells
	case last == 0:
		return ErrShareFirst
	case kind.units != clauseKinds[c.Clauses[last-1].kind].units:
		return ErrShareSlots
	}
	return NoError
}

func (cl *Clause) part() funnel.Share { return funnel.Share{Weight: int64(cl.weight), Limit: cl.limit} }

// most returns how many units a clause can ever have left.
func (c *Call) most(i int) int64 {
	cl := &c.Clauses[i]
	if cl.weight == 0 {
		return cl.limit
	}
	part := cl.part()
	return part.Most(c.most(i - 1))
}

// neverShared reports whether the quantity of a tenant is more than its share can ever be.
func (c *Call) neverShared(i int) bool {
	return c.Clauses[i].quantity > int64(c.Clauses[i].weight)*c.most(i-1)
}

// share decides whether the share of a tenant, which has got v, admits the call. If not, waits finds its wait.
func (c *Call) share(i int, v *funnel.Verdict) (err ErrorCode) {
	cl, l, part := &c.Clauses[i], c.scratch.limiters[i], c.Clauses[i].part()
	own, front := &c.scratch.shares[i], &c.scratch.shares[i-1]
	if c.Clauses[i-1].weight == 0 {
		_, front.left, _ = c.scratch.limiters[i-1].use(c)
	}
	own.used, _, _ = l.use(c)
	own.left = part.Left(own.used, front.left)
	granted := v.Granted
	switch {
	case v.Renewed:
		granted = 0
	case cl.quantity >= 0 && cl.opts&optForce == 0 && !part.Fits(own.used, cl.quantity, front.left):
		never := v.RetryAfter == funnel.Never || c.neverShared(i)
		if v, err = l.judge(c, 0, false); err != NoError { // nothing is taken
			return err
		}
		v.Limited, v.RetryAfter = true, funnel.Never
		if cl.reply(v); !never {
			c.scratch.short |= 1 << i
		}
		granted = 0
	}
	c.remains(i, granted)
	return NoError
}

// remains writes what a tenant has left after a call into its reply.
func (c *Call) remains(i int, granted int64) {
	part := c.Clauses[i].part()
	c.Clauses[i].Reply[2] = part.Left(c.scratch.shares[i].used+granted, c.Clauses[i-1].Reply[2])
}

// waits writes how long the tenants have to wait whose shares deny. If one of them asks for units, the clauses before it
// store changed rates as if they had denied: usage must drain as the wait says.
func (c *Call) waits(mayLock bool) ErrorCode {
	asks := 0
	for i := range c.Clauses {
		if c.scratch.short>>i&1 != 0 && c.Clauses[i].quantity > 0 {
			asks = i
		}
	}
	for i := range asks {
		cl := &c.Clauses[i]
		d, ok := c.scratch.limiters[i].(drain)
		if !ok {
			continue
		}
		if d.settle(); cl.Reply[0] != 0 {
			v, err := d.judge(c, cl.quantity, mayLock)
			if err != NoError {
				return err
			}
			cl.reply(v)
		}
	}
	for i := range c.Clauses {
		if cl := &c.Clauses[i]; c.scratch.short>>i&1 != 0 {
			wait, err := c.await(i)
			if err != NoError {
				return err
			}
			cl.Reply[3] = inUnits(wait, cl.opts.unit())
		}
	}
	return NoError
}

// await returns how long it takes until a tenant's own limit and its share admit its quantity. Between two lapses of its log
// what it uses stays, so the clause before it must admit so many units. That clause is asked next, within these bounds.
func (c *Call) await(i int) (_ funnel.Nanos, err ErrorCode) {
	low, high, units := c.Now, noLapse, c.Clauses[i].quantity
	for ; ; i-- {
		if d, ok := c.scratch.limiters[i].(drain); ok {
			wait, end := d.wait(c, units), (high - c.Now).Nanos()
			if wait == funnel.Never || wait > end {
				wait = end
			}
			return wait, NoError
		}
		if low, high, err = c.narrow(i, units, low, high); err != NoError {
			return 0, err
		}
		used, _, err := c.scratch.limiters[i].(tenant).later(c, low)
		cl := &c.Clauses[i]
		if err != NoError || cl.weight == 0 || used+units > cl.limit {
			return (high - c.Now).Nanos(), err
		}
		part := cl.part()
		units = part.Needs(used, units)
	}
}

// narrow bisects a log: it returns bounds within which no units of the clause lapse. The clause admits units at the upper
// bound and not at the lower one, as before.
func (c *Call) narrow(i int, units int64, low, high funnel.Micros) (_, _ funnel.Micros, err ErrorCode) {
	t := c.scratch.limiters[i].(tenant)
	_, _, last := t.use(c)
	found := min(high, last) // no units lapse after it and before high
	for at := low; low < found; at = low + (found-low)/2 {
		used, next, err := t.later(c, at)
		if err != NoError {
			return 0, 0, err
		}
		if used == 0 || next >= high {
			found = at
			continue
		}
		fits, err := c.fits(i, units, next)
		switch {
		case err != NoError:
			return 0, 0, err
		case fits:
			high, found = next, at
		default:
			low = next
		}
	}
	return low, high, NoError
}

// fits reports whether a clause will admit units at an instant if no call comes.
func (c *Call) fits(i int, units int64, at funnel.Micros) (bool, ErrorCode) {
	for ; ; i-- {
		if d, ok := c.scratch.limiters[i].(drain); ok {
			wait := d.wait(c, units)
			return wait != funnel.Never && wait <= (at-c.Now).Nanos(), NoError
		}
		used, _, err := c.scratch.limiters[i].(tenant).later(c, at)
		cl := &c.Clauses[i]
		if err != NoError || used+units > cl.limit {
			return false, err
		}
		if cl.weight == 0 {
			return true, NoError
		}
		part := cl.part()
		if units = part.Needs(used, units); units == 0 {
			return true, NoError
		}
	}
}

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

// maxShares bounds tenants of tenants, because what a denied call looks up grows with the square of the levels.
const maxShares = 4

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
	for i := last - 1; c.Clauses[i].opts&optShare != 0; i-- { // the first clause has none
		if i == last-maxShares {
			return ErrShareChain
		}
	}
	return NoError
}

func (l *limit) part() funnel.Share { return funnel.Share{Weight: l.weight, Limit: l.most} }

// capacity returns how many units a clause can ever have left.
func (l *limit) capacity() int64 {
	if l.front == nil {
		return l.most
	}
	part := l.part()
	return part.Most(l.front.capacity())
}

// share decides whether the share of a tenant, which has got v, admits the call. If not, waits finds its wait.
func (l *limit) share(c *Call, v *funnel.Verdict) (err ErrorCode) {
	cl, front, part := &c.Clauses[l.clause], l.front, l.part()
	if front.front == nil {
		_, front.left, _ = front.use(c)
	}
	l.used, _, _ = l.use(c)
	l.left = part.Left(l.used, front.left)
	granted := v.Granted
	switch {
	case v.Renewed:
		granted = 0
	case l.quantity >= 0 && cl.opts&optForce == 0 && !part.Fits(l.used, l.quantity, front.left):
		l.short = v.RetryAfter != funnel.Never && l.quantity <= l.capacity()
		if v, err = l.judge(c, 0, false); err != NoError { // nothing is taken
			return err
		}
		v.Limited, v.RetryAfter = true, funnel.Never
		l.reply(c, v)
	}
	l.remains(c, granted)
	return NoError
}

// remains writes what a tenant has left after a call into its reply.
func (l *limit) remains(c *Call, granted int64) {
	part := l.part()
	c.Clauses[l.clause].Reply[2] = part.Left(l.used+granted, c.Clauses[l.front.clause].Reply[2])
}

// waits writes how long the tenants have to wait whose shares deny. If one of them asks for units, the clauses before it
// store changed rates as if they had denied: usage must drain as the wait says.
func (c *Call) waits(mayLock bool) ErrorCode {
	limits, asks := c.limits(), 0
	for i := range limits {
		if limits[i].short && limits[i].quantity > 0 {
			asks = i
		}
	}
	for i := range asks {
		l := &limits[i]
		d, ok := l.limiter.(drain)
		if !ok {
			continue
		}
		if d.settle(); c.Clauses[i].Reply[0] != 0 {
			v, err := d.judge(c, l.quantity, mayLock)
			if err != NoError {
				return err
			}
			l.reply(c, v)
		}
	}
	for i := range limits {
		if cl := &c.Clauses[i]; limits[i].short {
			wait, err := limits[i].await(c)
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
func (l *limit) await(c *Call) (_ funnel.Nanos, err ErrorCode) {
	low, high, units := c.Now, noLapse, l.quantity
	for ; ; l = l.front {
		if d, ok := l.limiter.(drain); ok {
			wait, end := d.wait(c, units), (high - c.Now).Nanos()
			if wait == funnel.Never || wait > end {
				wait = end
			}
			return wait, NoError
		}
		if low, high, err = l.narrow(c, units, low, high); err != NoError {
			return 0, err
		}
		used, _, err := l.limiter.(tenant).later(c, low)
		if err != NoError || l.front == nil || used+units > l.most {
			return (high - c.Now).Nanos(), err
		}
		part := l.part()
		units = part.Needs(used, units)
	}
}

// narrow bisects a log: it returns bounds within which no units of the clause lapse. The clause admits units at the upper
// bound and not at the lower one, as before.
func (l *limit) narrow(c *Call, units int64, low, high funnel.Micros) (_, _ funnel.Micros, err ErrorCode) {
	t := l.limiter.(tenant)
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
		fits, err := l.fits(c, units, next)
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
func (l *limit) fits(c *Call, units int64, at funnel.Micros) (bool, ErrorCode) {
	for ; ; l = l.front {
		if d, ok := l.limiter.(drain); ok {
			wait := d.wait(c, units)
			return wait != funnel.Never && wait <= (at-c.Now).Nanos(), NoError
		}
		used, _, err := l.limiter.(tenant).later(c, at)
		if err != NoError || used+units > l.most {
			return false, err
		}
		if l.front == nil {
			return true, NoError
		}
		part := l.part()
		if units = part.Needs(used, units); units == 0 {
			return true, NoError
		}
	}
}

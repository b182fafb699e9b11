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
	}
	before := clauseKinds[c.Clauses[last-1].kind]
	if before.frees() || kind.units && !before.units {
		return ErrShareSlots
	}
	for i := last - 1; c.Clauses[i].opts&optShare != 0; i-- { // the first clause has none
		if i == last-maxShares {
			return ErrShareChain
		}
	}
	return NoError
}

// shared returns how many clauses before a clause with SHARE have what it shares: the one before it, but if a LEASE
// clause shares units, the whole run of clauses of units.
func (c *Call) shared(clause int) (n int) {
	if clauseKinds[c.Clauses[clause].kind].renews {
		for n < clause && clauseKinds[c.Clauses[clause-1-n].kind].units {
			n++
		}
	}
	return max(n, 1)
}

// front returns the limits of the clauses that have what a tenant shares. A tenant's own limit comes after them.
func (l *limit) front(c *Call) []limit { return c.limits()[l.clause-l.shares : l.clause] }

// checkShare checks the weight of a LEASE clause that shares units, and that the clauses before it are peeks.
func (l *limit) checkShare(c *Call) ErrorCode {
	front := l.front(c)
	l.holds = clauseKinds[c.Clauses[l.clause-1].kind].units && clauseKinds[c.Clauses[l.clause].kind].renews
	if l.holds && l.weight != 1 {
		return ErrShareWeight
	}
	for i := range front {
		if front[i].held = l.holds; l.holds && front[i].quantity != 0 {
			return ErrSharePeeks
		}
	}
	return NoError
}

func (l *limit) part() funnel.Share { return funnel.Share{Weight: l.weight, Limit: l.most} }

// capacity returns how many units a clause can ever have left.
func (l *limit) capacity(c *Call) int64 {
	if l.shares == 0 {
		return l.most
	}
	part, least := l.part(), int64(maxLimit)
	for i := range l.front(c) {
		least = min(least, l.front(c)[i].capacity(c))
	}
	return part.Most(least)
}

// share decides whether the share of a tenant, which has got v, admits the call. If not, waits finds its wait.
func (l *limit) share(c *Call, v *funnel.Verdict) (err ErrorCode) {
	cl, front, part, room := &c.Clauses[l.clause], l.front(c), l.part(), int64(maxLimit)
	for i := range front {
		f := &front[i]
		if f.shares == 0 {
			_, f.left, _ = f.use(c)
		}
		room = min(room, f.left)
	}
	l.used, _, _ = l.use(c)
	l.left = part.Left(l.used, room)
	granted := v.Granted
	if l.quantity >= 0 && !v.Renewed && cl.opts&optForce == 0 && !part.Fits(l.used, l.quantity, room) {
		l.short, granted = v.RetryAfter != funnel.Never && l.quantity <= l.capacity(c), 0
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
	part, least := l.part(), int64(maxLimit)
	for i := range l.shares {
		least = min(least, c.Clauses[l.clause-1-i].Reply[2])
	}
	c.Clauses[l.clause].Reply[2] = part.Left(l.used+granted, least)
}

// waits writes how long the tenants have to wait whose shares deny. If one of them asks for units, the clauses before
// it store changed rates as if they had denied: usage must drain as the wait says. Where slots share units, the clauses
// before are peeks, which store nothing.
func (c *Call) waits(mayLock bool) ErrorCode {
	limits, asks := c.limits(), 0
	for i := range limits {
		if l := &limits[i]; l.short && l.quantity > 0 && !l.holds {
			asks = i
		}
	}
	for i := range asks {
		l := &limits[i]
		d, ok := l.limiter.(drain)
		if !ok || l.held {
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
			wait, err := limits[i].await(c, limits[i].quantity, c.Now, noLapse)
			if err != NoError {
				return err
			}
			cl.Reply[3] = inUnits(wait, cl.opts.unit())
		}
	}
	return NoError
}

// await returns how long it takes until a tenant's own limit and its share admit its quantity, within bounds. Between
// two lapses of its log what it uses stays, so the clauses before it must admit so many units. They are asked next.
func (l *limit) await(c *Call, units int64, low, high funnel.Micros) (longest funnel.Nanos, err ErrorCode) {
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
	if err != NoError || l.shares == 0 || used+units > l.most {
		return (high - c.Now).Nanos(), err
	}
	part, front := l.part(), l.front(c)
	units, longest = part.Needs(used, units), (low - c.Now).Nanos()
	for i := range front {
		fits, err := front[i].fits(c, units, low)
		if err == NoError && !fits {
			var wait funnel.Nanos
			wait, err = front[i].await(c, units, low, high)
			longest = max(longest, wait)
		}
		if err != NoError {
			return 0, err
		}
	}
	return longest, NoError
}

// narrow bisects a log: it returns bounds within which no units of the clause lapse. The clause admits units at the
// upper bound and not at the lower one, as before.
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
	if d, ok := l.limiter.(drain); ok {
		wait := d.wait(c, units)
		return wait != funnel.Never && wait <= (at-c.Now).Nanos(), NoError
	}
	used, _, err := l.limiter.(tenant).later(c, at)
	if err != NoError || used+units > l.most {
		return false, err
	}
	if l.shares == 0 {
		return true, NoError
	}
	part, front := l.part(), l.front(c)
	if units = part.Needs(used, units); units <= 0 {
		return true, NoError
	}
	for i := range front {
		if fits, err := front[i].fits(c, units, at); err != NoError || !fits {
			return false, err
		}
	}
	return true, NoError
}

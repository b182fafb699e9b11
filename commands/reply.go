package commands

import "gothrottle/funnel"

// reply writes a verdict: five integers, and with UPTO, RESERVE or RAISE or of a slot a sixth. It returns how many.
func (kind *clauseKind) reply(r *[6]int64, v *funnel.Verdict, limit int64, opts option) int32 {
	unit := opts.unit()
	r[0], r[1], r[2] = boolInt(v.Limited), limit, v.Remaining
	r[3], r[4] = -1, inUnits(v.ResetAfter, unit) // -1: admitted, or the call never fits
	if v.RetryAfter > 0 {
		r[3] = inUnits(v.RetryAfter, unit)
	}
	if opts&(optUpTo|optReserve|optRaise) == 0 && !kind.renews {
		return 5
	}
	r[5] = sixth(v, opts)
	return 6
}

// sixth returns the integer that few replies have. It is not inlined: most calls need none of its code.
//
//go:noinline
func sixth(v *funnel.Verdict, opts option) int64 {
	switch {
	case opts&(optUpTo|optRaise) != 0:
		return v.Granted
	case opts&optReserve == 0:
		return boolInt(v.Renewed)
	case v.Limited:
		return -1 // no slot
	}
	return inUnits(v.Wait, opts.unit())
}

// count says how INFO counts the call.
func (c *Call) count(asked, limited bool) {
	if asked {
		c.Outcome = Admitted
		if limited {
			c.Outcome = Limited
		}
	}
}

// inUnits returns a length of time in units of unit, rounded up. unit is a second or a
// millisecond: a division by a constant is a multiplication. Inlined, it would take more of the processor's cache.
//
//go:noinline
func inUnits(t, unit funnel.Nanos) int64 {
	if unit == funnel.Second {
		return ceilDiv(t, funnel.Second)
	}
	return ceilDiv(t, funnel.Millisecond)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// minSlack is the least slack of an expiry, however small slackBase is.
const minSlack = funnel.Second

// expire asks for an expiry from end on. The slack after end is a quarter of slackBase, or a
// second if that is longer. The slack lets most calls leave the expiry as it is.
func (k *Key) expire(end, slackBase funnel.Nanos) {
	k.ExpireFrom = ceilDiv(end, funnel.Millisecond)
	k.ExpireTo = k.ExpireFrom + int64(max(minSlack, slackBase/4)/funnel.Millisecond)
}

// ceilDiv returns a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b funnel.Nanos) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return int64(q)
}

package commands

import "gothrottle/funnel"

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
	q := uint64(a) / uint64(b)
	if q*uint64(b) < uint64(a) {
		q++
	}
	return int64(q)
}

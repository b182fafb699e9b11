package commands

import (
	"math"

	"gothrottle/funnel"
)

// GO.THROTTLE key max_burst count period [quantity] [MS] [UPTO]

var throttleArgs = []Arg{argKey, argMaxBurst, argCount, argPeriod, argQuantity, argMS, argUpTo}

var throttle = Command{
	Name:       "GO.THROTTLE",
	Summary:    "Takes units from a rate limiter (GCRA) and tells whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       throttleArgs,
	State:      KindHash,
	Handler:    func(c *Call) Error { return runThrottle(c, optMS|optUpTo, math.MaxInt64) },
}

var throttleRO = throttle.readOnly("Tells what GO.THROTTLE would reply; changes nothing.")

var clThrottle = Command{
	Name:       "CL.THROTTLE",
	Summary:    "GO.THROTTLE under redis-cell's name, with its arguments.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -1, // as redis-cell: a call with too few words fails in EXEC, not before
	MinArity:   5,
	MaxArity:   6,
	Args:       throttleArgs[:5],
	State:      KindHash,
	Handler:    func(c *Call) Error { return runThrottle(c, 0, 1) },
}

// runThrottle serves both; redis-cell refuses rates of more than one unit per ns.
func runThrottle(c *Call, allowed option, unitsPerNano int64) Error {
	r, err := newRequest(c.Args[3:], allowed)
	if err != NoError {
		return err
	}
	l, err := newGCRALimit(c.Args[1], c.Args[2], r.period)
	if err != NoError {
		return err
	}
	if (l.rate.Count-1)/l.rate.Period >= unitsPerNano {
		return ErrRateTooHigh
	}
	cell := &c.Cells[0]
	if err := c.checkGCRA(cell.Key); err != NoError {
		return err
	}
	state, now := c.gcraState(cell), c.Now*microsecond
	if r.opts&optUpTo != 0 {
		_, peek := funnel.Throttle(now, state, l.limit, l.rate, 0)
		r.quantity = upTo(r.quantity, peek.Remaining)
	}
	next, v := funnel.Throttle(now, state, l.limit, l.rate, r.quantity)
	if v.Change != funnel.Keep {
		c.setGCRA(cell, next, l.window)
		c.settleGCRA(cell.Key, now)
	}
	c.reply(&v, l.limit, r.opts)
	return NoError
}

package commands

import (
	"math"

	"gothrottle/funnel"
)

// GO.THROTTLE key max_burst count period [quantity] [MS]

var throttleArgs = []Arg{
	{Name: "key", Type: ArgKey, Summary: "The limiter."},
	{Name: "max_burst", Type: ArgInteger, Summary: "How many units beyond the first fit at once: the limit is max_burst + 1."},
	{Name: "count", Type: ArgInteger, Summary: "How many units drain per period."},
	{Name: "period", Type: ArgInteger, Summary: "In seconds, or milliseconds with MS."},
	{Name: "quantity", Type: ArgInteger, Optional: true, Summary: "Units to take, 1 if not given; 0 peeks, a negative number gives back."},
}

var throttle = Command{
	Name:       "GO.THROTTLE",
	Summary:    "Takes units from a rate limiter (GCRA) and tells whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      "write deny-oom fast",
	Arity:      -5,
	Args:       append(throttleArgs[:5:5], argMS),
	Handler:    func(c *Call) Error { return runThrottle(c, optMS, math.MaxInt64) },
}

var clThrottle = Command{
	Name:       "CL.THROTTLE",
	Summary:    "GO.THROTTLE under redis-cell's name, with its arguments.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      "write deny-oom fast",
	Arity:      -1, // as redis-cell: a call with too few words fails in EXEC, not before
	MinArity:   5,
	MaxArity:   6,
	Args:       throttleArgs,
	Handler:    func(c *Call) Error { return runThrottle(c, 0, 1) },
}

// runThrottle serves both; redis-cell refuses rates of more than one unit per ns.
func runThrottle(c *Call, allowed option, unitsPerNano int64) Error {
	quantity, opts, err := tailArgs(c.Args[4:], allowed)
	if err != NoError {
		return err
	}
	unit := opts.unit()
	l, err := newGCRALimit(c.Args[1], c.Args[2], c.Args[3], unit)
	if err != NoError {
		return err
	}
	if (l.rate.Count-1)/l.rate.Period >= unitsPerNano {
		return ErrRateTooHigh
	}
	cell := &c.Cells[0]
	state, err := c.gcraState(cell)
	if err != NoError {
		return err
	}
	now := c.Now * 1000
	next, v := funnel.Throttle(now, state, l.limit, l.rate, quantity)
	if v.Change != funnel.Keep {
		c.setGCRA(cell, next)
		c.settleGCRA(cell.Key, now, l.slack())
	}
	c.reply(v.Limited, l.limit, v.Remaining, v.RetryAfter, v.ResetAfter, unit)
	return NoError
}

package commands

import "gothrottle/funnel"

var throttleArgs = []Arg{argKey, argMaxBurst, argCount, argPeriod, argQuantity, argMS, argThrottleMode}

var throttle = Command{
	Name:       "GO.THROTTLE",
	Summary:    "Takes units from a rate limiter (GCRA) and tells whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       throttleArgs,
	State:      KindHash,
	Handler:    func(c *Call) ErrorCode { return runThrottle(c, optMS|exclusive, false) },
	Sample:     Sample{"GO.THROTTLE KEY 15 30 108000", "[0 16 15 -1 3600]", "[0 16 14 -1 7200]", "HSET"},
	Wrong: []WrongCall{
		{"GO.THROTTLE KEY x 30 60", ErrMaxBurstNotInteger},
		{"GO.THROTTLE KEY 15 30 60 1 EXACT", ErrUnknownOption},
		{"GO.THROTTLE KEY 15 30 60 MS 1", ErrUnknownOption},
	},
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
	Handler:    func(c *Call) ErrorCode { return runThrottle(c, 0, true) },
	Sample:     Sample{"CL.THROTTLE KEY 15 30 108000 1", "[0 16 15 -1 3600]", "[0 16 14 -1 7200]", "HSET"},
	Wrong: []WrongCall{
		{"CL.THROTTLE KEY 15 30", ErrArity},
		{"CL.THROTTLE KEY 15 30 60 MS", ErrQuantityNotInteger},
		{"CL.THROTTLE KEY 15 1000000001 1", ErrRateTooHigh},
	},
}

// runThrottle serves both commands. slow refuses rates of more than one unit per ns, as redis-cell
// does.
func runThrottle(c *Call, allowed option, slow bool) ErrorCode {
	r, err := c.request(3, allowed)
	if err != NoError {
		return err
	}
	var t throttleClause
	if err := t.parse(c.Args[1], c.Args[2], &r); err != NoError {
		return err
	}
	if slow && t.Rate.Count > int64(t.Rate.Period) {
		return ErrRateTooHigh
	}
	k := &c.Keys[0]
	if err := c.loadCells(k); err != NoError {
		return err
	}
	cell := &c.Cells[0]
	next, v := funnel.Throttle(c.Now.Nanos(), cell.state, &t.ThrottleParams)
	if v.TooMuch {
		return ErrDebtTooLong
	}
	if v.Change != funnel.Keep {
		k.setCell(cell, &next, t.slackBase())
		c.settleCells(k)
	}
	c.reply(&v, t.Limit, r.quantity, r.opts)
	return NoError
}

// throttleClause is what the words of a THROTTLE clause, or of a GO.THROTTLE call, say.
type throttleClause struct {
	funnel.ThrottleParams
	drain funnel.Nanos // how long a full limiter takes to drain
}

// parse reads max_burst and count; the request has the rest.
func (t *throttleClause) parse(maxBurst, count string, r *request) (err ErrorCode) {
	if t.Limit, err = intArg(maxBurst, 0, maxLimit-1, ErrMaxBurstNotInteger, ErrMaxBurstRange); err != NoError {
		return err
	}
	t.Limit++
	if t.Rate.Count, err = intArg(count, 1, maxLimit, ErrCountNotInteger, ErrCountRange); err != NoError {
		return err
	}
	t.Rate.Period = r.period
	t.Quantity, t.UpTo, t.Force = r.quantity, r.opts&optUpTo != 0, r.opts&optForce != 0
	t.Reserve, t.MaxWait, t.Lockout = r.opts&optReserve != 0, r.maxWait, r.lockout
	if t.drain = t.Rate.Drain(t.Limit); t.drain > maxPeriod {
		return ErrWindowTooLong
	}
	return NoError
}

// slackBase is the time a full limiter takes to drain, or the period if that is shorter: see
// Key.slackBase.
func (t *throttleClause) slackBase() funnel.Nanos { return min(t.drain, t.Rate.Period) }

package commands

import "gothrottle/funnel"

var throttle = Command{
	Name:       "GO.THROTTLE",
	Summary:    "Takes units from a rate limiter (GCRA) and reports whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       []Arg{argKey, argMaxBurst, argCount, argPeriod, argQuantity, argMS, argThrottleMode},
	State:      KindHash,
	Handler:    func(c *Call) ErrorCode { return throttleKind.run(c, &c.scratch.rooms[0].throttle, optMS|exclusive) },
}

var clThrottle = Command{
	Name:       "CL.THROTTLE",
	Summary:    "GO.THROTTLE under redis-cell's name, with its arguments.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -1, // as redis-cell: a call with too few words fails in EXEC, not before
	MinArity:   5,
	MaxArity:   6,
	Args:       []Arg{argKey, argMaxBurst, argCount, argSeconds, argQuantity},
	State:      KindHash,
	Handler:    func(c *Call) ErrorCode { return throttleKind.run(c, &c.scratch.rooms[0].throttle, redisCellWords) },
}

var throttleKind = clauseKind{
	keyword: "THROTTLE",
	summary: "A cell. The first THROTTLE clause of a key is GO.THROTTLE's limiter, the next ones are further cells of the same hash.",
	args:    []Arg{argMaxBurst, argCount, argPeriod, argQuantity, argClauseLockout},
	words:   3,
	state:   KindHash,
	cells:   true,
	units:   true,
	option:  optLockout,
}

// throttleLimiter decides by GCRA about a cell of a hash.
type throttleLimiter struct {
	funnel.ThrottleParams
	lockout   funnel.Nanos // Lockout, if one may begin
	key, cell int
	next      funnel.ThrottleState
	v         funnel.Verdict
}

func (t *throttleLimiter) parse(args []string, r *request) (limit int64, err ErrorCode) {
	burst, err := intArg(args[r.first], 0, maxLimit-1, ErrMaxBurstNotInteger, ErrMaxBurstRange)
	if err != NoError {
		return 0, err
	}
	if t.Rate.Count, err = intArg(args[r.first+1], 1, maxLimit, ErrCountNotInteger, ErrCountRange); err != NoError {
		return 0, err
	}
	if err = r.read(args); err != NoError {
		return 0, err
	}
	t.Limit, t.Rate.Period = burst+1, r.period
	t.UpTo, t.Force, t.Reserve = r.opts&optUpTo != 0, r.opts&optForce != 0, r.opts&optReserve != 0
	t.Raise, t.Settle = r.opts&optRaise != 0, false
	t.MaxWait, t.lockout = r.maxWait, r.lockout
	if !t.Rate.Drains(t.Limit) {
		return 0, ErrWindowTooLong
	}
	if r.redisCell && t.Rate.Count > int64(t.Rate.Period) {
		return 0, ErrRateTooHigh
	}
	return t.Limit, NoError
}

// load makes sure that the key holds limiters: of several clauses the first one does that for all.
func (t *throttleLimiter) load(c *Call, key, cell int) ErrorCode {
	t.key, t.cell = key, cell
	if cell > 0 {
		return NoError
	}
	return c.loadCells(&c.Keys[key])
}

func (t *throttleLimiter) judge(c *Call, quantity int64, mayLock bool) (*funnel.Verdict, ErrorCode) {
	t.Quantity, t.Lockout = quantity, 0
	if mayLock {
		t.Lockout = t.lockout
	}
	t.Throttle(c.Now.Nanos(), &c.cell(&c.Keys[t.key], t.cell).state, &t.next, &t.v)
	if t.v.TooMuch {
		return nil, ErrDebtTooLong
	}
	return &t.v, NoError
}

// use returns what is left; what is in use isn't a whole number of units.
func (t *throttleLimiter) use(c *Call) (used, left int64, last funnel.Micros) {
	_, v := funnel.Throttle(c.Now.Nanos(), c.cell(&c.Keys[t.key], t.cell).state, &funnel.ThrottleParams{Limit: t.Limit, Rate: t.Rate})
	return 0, v.Remaining, 0
}

func (t *throttleLimiter) wait(c *Call, units int64) funnel.Nanos {
	stores := t.Settle || t.v.Limited && t.v.Change == funnel.Store
	return t.Wait(c.Now.Nanos(), &c.cell(&c.Keys[t.key], t.cell).state, units, !stores)
}

func (t *throttleLimiter) settle() { t.Settle = true }

// apply also stores what a denied call changes: a changed rate, and a lockout that begins.
func (t *throttleLimiter) apply(c *Call, _ bool) ErrorCode {
	k := &c.Keys[t.key]
	cell := c.cell(k, t.cell)
	switch {
	case t.v.Change != funnel.Keep:
		t.fillGaps(c, k)
		k.setCell(cell, &t.next, t.slackBase())
	case cell.Found == 0:
		cell.state = t.next // for fillGaps
	}
	return NoError
}

// fillGaps writes the absent cells before the one of this clause: loadHash refuses a hash with a gap. Their clauses have
// been applied.
func (t *throttleLimiter) fillGaps(c *Call, k *Key) {
	for i := range t.cell {
		if cell := c.cell(k, i); cell.Found|cell.Set == 0 {
			state := cell.state
			k.setCell(cell, &state, t.slackBase())
		}
	}
}

// slackBase is the time a full limiter takes to drain, or the period if that is shorter: see Key.slackBase.
func (t *throttleLimiter) slackBase() funnel.Nanos { return min(t.Rate.Drain(t.Limit), t.Rate.Period) }

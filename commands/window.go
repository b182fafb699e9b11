package commands

import "gothrottle/funnel"

// GO.WINDOW key limit period [quantity] [MS] [UPTO] [EXACT]

var window = Command{
	Name:       "GO.WINDOW",
	Summary:    "Takes units from a sliding window and tells whether they were admitted.",
	Complexity: "O(log(N)) with N the entries of the window: at most 121 unless EXACT",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args: []Arg{argKey, argLimit, argPeriod, argQuantity, argMS, argUpTo,
		{Name: "EXACT", Type: ArgToken, Optional: true, Summary: "Every call has an entry of its own, whatever the limit."}},
	State:   KindZset,
	Handler: runWindow,
}

var windowRO = window.readOnly("Tells what GO.WINDOW would reply; changes nothing.")

func runWindow(c *Call) Error {
	r, err := newRequest(c.Args[2:], optMS|optUpTo|optExact)
	if err != NoError {
		return err
	}
	limit, err := limitArg(c.Args[1])
	if err != NoError {
		return err
	}
	now, period, exact := c.Now, r.period/microsecond, r.opts&optExact != 0
	state, err := c.loadWindow(now - period)
	if err != NoError {
		return err
	}
	if r.opts&optUpTo != 0 {
		_, peek := funnel.Window(now, state, limit, period, 0, exact)
		r.quantity = upTo(r.quantity, peek.Remaining)
	}
	next, v := funnel.Window(now, state, limit, period, r.quantity, exact)
	if v.Wait {
		lapse, err := c.findLapse(&state, v.Lapse)
		if err != NoError {
			return err
		}
		v.RetryAfter = (lapse + period - now) * microsecond
	}
	switch v.Change {
	case funnel.Store:
		if err := c.clearWindow(&state, now, period); err != NoError {
			return err
		}
		if v.Share {
			c.Entries[0].Drop = 1 // the newest one: see loadWindow
		}
		c.AddPrefix, c.AddTime, c.SetLen = windowPrefix, next.Time, putEntry(c.Set[:0], &next)
		c.Keys[0].expire((next.Time+period)*microsecond, r.period)
	case funnel.Forget:
		if err := c.checkWindow(); err != NoError {
			return err
		}
		c.Keys[0].Remove = 1
	}
	c.reply(&v.Verdict, limit, r.opts)
	return NoError
}

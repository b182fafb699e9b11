package commands

import "gothrottle/funnel"

var window = Command{
	Name:       "GO.WINDOW",
	Summary:    "Takes units from a sliding window and tells whether they were admitted.",
	Complexity: "O(log(N)) with N the entries of the window: at most 121 unless EXACT",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args:       []Arg{argKey, argLimit, argPeriod, argQuantity, argMS, argMode, argExact},
	State:      KindZset,
	Handler:    runWindow,
	Sample:     Sample{"GO.WINDOW KEY 16 3600", "[0 16 15 -1 3600]", "[0 16 14 -1 3600]", "ZADD"},
	Wrong: []WrongCall{
		{"GO.WINDOW KEY 0 60", ErrLimitRange},
		{"GO.WINDOW KEY 5 60 ALIGN 0", ErrUnknownOption},
	},
}

var windowRO = window.readOnly("Tells what GO.WINDOW would reply; changes nothing.")

func runWindow(c *Call) ErrorCode {
	r, err := c.request(2, optMS|optUpTo|optForce|optExact)
	if err != NoError {
		return err
	}
	var w windowClause
	if err := w.parse(c.Args[1], &r); err != NoError {
		return err
	}
	if err := w.decide(c, 0); err != NoError {
		return err
	}
	if err := w.apply(c, 0); err != NoError {
		return err
	}
	c.reply(&w.v.Verdict, w.Limit, r.quantity, r.opts)
	return NoError
}

// windowClause is a WINDOW clause, or a GO.WINDOW call: what its words say, and its decision.
type windowClause struct {
	funnel.WindowParams
	state funnel.WindowState
	next  funnel.WindowEntry
	v     funnel.WindowVerdict
}

// parse reads the limit; the request has the rest.
func (w *windowClause) parse(limit string, r *request) (err ErrorCode) {
	w.Limit, err = limitArg(limit)
	w.Period, w.Quantity = r.period.Micros(), r.quantity
	w.UpTo, w.Force, w.Exact = r.opts&optUpTo != 0, r.opts&optForce != 0, r.opts&optExact != 0
	return err
}

// decide loads what the key holds and decides; nothing changes yet.
func (w *windowClause) decide(c *Call, key int) (err ErrorCode) {
	if w.state, err = c.loadWindow(key, c.Now-w.Period); err != NoError {
		return err
	}
	w.next, w.v = funnel.Window(c.Now, w.state, w.WindowParams)
	if w.v.TooMuch {
		return ErrTooMuchInUse
	}
	if !w.v.Await {
		return NoError
	}
	lapse := w.next.Time
	if int64(w.state.Newest.Total-w.v.Lapse) >= 0 { // an entry from before this call
		if lapse, err = c.findLapse(key, &w.state, w.v.Lapse); err != NoError {
			return err
		}
		if w.v.Share && lapse == w.state.Newest.Time {
			lapse = w.next.Time
		}
	}
	w.v.RetryAfter = (lapse + w.Period - c.Now).Nanos()
	return NoError
}

// peek decides again for quantity 0.
func (w *windowClause) peek(c *Call) {
	w.Quantity = 0
	w.next, w.v = funnel.Window(c.Now, w.state, w.WindowParams)
}

// apply says what becomes of the key.
func (w *windowClause) apply(c *Call, key int) ErrorCode {
	k := &c.Keys[key]
	change := w.v.Change
	if change == funnel.Forget && k.Length > clearMost {
		// Before a key is deleted all its entries are checked. That would cost too much here,
		// so the window stays, with nothing in use, until it expires.
		change = funnel.Store
	}
	switch change {
	case funnel.Store:
		if err := c.clearWindow(key, &w.state, w.Period); err != NoError {
			return err
		}
		if w.v.Share {
			k.Entries[0].Drop = 1 // the newest entry: see loadWindow
		}
		k.Becomes = Zset
		k.AddPrefix, k.AddTime, k.NewLen = windowPrefix, w.next.Time, putEntry(k.NewText[:0], &w.next)
		k.expire((w.next.Time + w.Period).Nanos(), w.Period.Nanos())
	case funnel.Forget:
		if k.Kind == KindAbsent {
			return NoError
		}
		if err := c.checkWindow(key); err != NoError {
			return err
		}
		k.Becomes = Absent
	}
	return NoError
}

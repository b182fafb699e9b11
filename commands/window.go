package commands

import "gothrottle/funnel"

var window = Command{
	Name:       "GO.WINDOW",
	Summary:    "Takes units from a sliding window and reports whether they were admitted.",
	Complexity: "O(log(N)) with N the entries of the window: at most 121 unless EXACT",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args:       []Arg{argKey, argLimit, argPeriod, argQuantity, argMS, argMode, argExact},
	State:      KindZset,
	Handler: func(c *Call) ErrorCode {
		return windowKind.run(c, &c.scratch.rooms[0].window, optMS|optUpTo|optForce|optRaise|optExact)
	},
}

var windowKind = clauseKind{
	keyword: "WINDOW",
	summary: "GO.WINDOW's limiter.",
	args:    []Arg{argLimit, argPeriod, argQuantity, argExact, argShare},
	words:   2,
	state:   KindZset,
	units:   true,
	option:  optExact | optShare,
}

// windowLimiter decides by a sliding window, which is a sorted set.
type windowLimiter struct {
	funnel.WindowParams
	key   int
	state funnel.WindowState
	next  funnel.WindowEntry
	v     funnel.WindowVerdict
}

func (w *windowLimiter) parse(args []string, r *request) (limit int64, err ErrorCode) {
	if w.Limit, err = limitArg(args[r.first]); err != NoError {
		return 0, err
	}
	if err = r.read(args); err != NoError {
		return 0, err
	}
	w.Period = r.period.Micros()
	w.UpTo, w.Force, w.Raise, w.Exact = r.opts&optUpTo != 0, r.opts&optForce != 0, r.opts&optRaise != 0, r.opts&optExact != 0
	return w.Limit, NoError
}

func (w *windowLimiter) load(c *Call, key, _ int) (err ErrorCode) {
	w.key = key
	w.state, err = c.loadWindow(key, c.Now-w.Period)
	return err
}

func (w *windowLimiter) judge(c *Call, quantity int64, _ bool) (_ *funnel.Verdict, err ErrorCode) {
	w.Quantity = quantity
	w.next, w.v = funnel.Window(c.Now, w.state, w.WindowParams)
	switch {
	case w.v.TooMuch:
		err = ErrTooMuchInUse
	case w.v.Await:
		err = w.await(c)
	}
	return &w.v.Verdict, err
}

func (w *windowLimiter) use(*Call) (used, left int64, last funnel.Micros) {
	used = w.state.InUse()
	return used, max(w.Limit-used, 0), w.state.Newest.Time + w.Period
}

func (w *windowLimiter) later(c *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode) {
	k, s := &c.Keys[w.key], w.state
	if at != c.Now {
		keep := len(k.Entries)
		if k.Kind == KindAbsent || at >= s.Newest.Time+w.Period || !c.Host().First(c, w.key, at-w.Period) {
			return 0, 0, NoError
		}
		s.Oldest, err = windowEntry(&k.Entries[keep])
		if c.Host().Release(c, w.key, keep); err == NoError && !s.Sound() {
			err = ErrDamaged
		}
	}
	return s.InUse(), s.Oldest.Time + w.Period, err
}

// await sets RetryAfter by the entry that must leave.
func (w *windowLimiter) await(c *Call) (err ErrorCode) {
	lapse := w.next.Time
	if int64(w.state.Newest.Total-w.v.Lapse) >= 0 { // an entry from before this call
		if lapse, err = c.findLapse(w.key, &w.state, w.v.Lapse); err != NoError {
			return err
		}
		if w.v.Share && lapse == w.state.Newest.Time {
			lapse = w.next.Time
		}
	}
	w.v.RetryAfter = (lapse + w.Period - c.Now).Nanos()
	return NoError
}

func (w *windowLimiter) apply(c *Call, _ bool) ErrorCode {
	k := &c.Keys[w.key]
	change := w.v.Change
	if change == funnel.Forget && k.Length > clearMost {
		// Before a key is deleted all its entries are checked. That would cost too much here,
		// so the window stays, with nothing in use, until it expires.
		change = funnel.Store
	}
	switch change {
	case funnel.Store:
		if err := c.clearWindow(w.key, &w.state, w.Period); err != NoError {
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
		if err := c.checkWindow(w.key); err != NoError {
			return err
		}
		k.Becomes = Absent
	}
	return NoError
}

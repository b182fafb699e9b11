// Package world makes up calls of the module's commands, and decides them by the exact models of package oracle. What it
// decides shares no code with the module but the types of parameters. Tests make the calls on a host: a server, package
// memory, or whatever else runs the commands.
package world

import (
	"errors"
	"math"
	"slices"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// State is what a key holds, by the exact models. The zero value holds nothing.
type State struct {
	Unknown bool // nothing is known of the key
	kind    byte // of the clauses that used it; 0: none did
	period  funnel.Nanos
	cells   [4]oracle.Throttle
	window  oracle.Window
	quota   oracle.Quota
	lease   oracle.Lease
}

// Clone returns a copy.
func (s *State) Clone() *State {
	c := *s
	c.window, c.lease = *s.window.Clone(), *s.lease.Clone()
	return &c
}

// Locked reports whether a lockout is on.
func (s *State) Locked(now funnel.Micros) bool {
	return slices.ContainsFunc(s.cells[:], func(o oracle.Throttle) bool { return o.Locked() > now.Nanos() })
}

// Keys are the states of keys. A key that is absent holds nothing.
type Keys map[string]*State

func (k Keys) at(key string) *State {
	if k[key] == nil {
		k[key] = &State{}
	}
	return k[key]
}

// Forget says that nothing is known of keys.
func (k Keys) Forget(keys ...string) {
	for _, key := range keys {
		k[key] = &State{Unknown: true}
	}
}

// knows reports whether the models can decide a clause. A window's callers must agree on its period.
func (s *State) knows(c *Clause) bool {
	return !s.Unknown && (s.kind == 0 || s.kind == c.Kind) && (s.period == 0 || c.Kind != 'w' || s.period == c.Period)
}

// Knows reports whether the models can decide a call.
func (k Keys) Knows(c *Call) bool {
	return !slices.ContainsFunc(c.Clauses, func(one Clause) bool { return k[one.Key] != nil && !k[one.Key].knows(&one) })
}

// ErrTooMuch is the reply to a call after which too much would be in use.
var ErrTooMuch = errors.New("too much would be in use")

// Reply decides a call and applies it. The reply is an integer, or as funnel's commands have it a list of integers and
// lists, or ErrTooMuch. granted is what the last clause was granted.
func (c *Call) Reply(k Keys, now funnel.Micros) (reply any, granted int64) {
	if c.peeking {
		k = k.Clone(c.keys()...)
	}
	if c.Release != nil {
		released := int64(0)
		for _, id := range c.Release {
			released += one(k.at(c.Clauses[0].Key).lease.Release(now, id) > 0)
		}
		return released, 0
	}
	d := &decision{Call: c, keys: k, now: now}
	reply, granted = d.reply()
	c.short = len(d.short) > 0
	return reply, granted
}

// Clone returns copies of the states of some keys.
func (k Keys) Clone(keys ...string) Keys {
	some := Keys{}
	for _, key := range keys {
		some[key] = k.at(key).Clone()
	}
	return some
}

func (c *Call) keys() (all []string) {
	for i := range c.Clauses {
		all = append(all, c.Clauses[i].Key)
	}
	return all
}

// decision is a call at work.
type decision struct {
	*Call
	keys  Keys
	now   funnel.Micros
	rows  [][]any // what the clauses reply
	short []lack
}

// reply decides by the rules of GO.ALL. Each clause decides on a copy. A clause that denies is then applied, too: that changes
// only a cell whose rate is new, or begins a lockout. With SHADOW the front of the reply admits.
func (d *decision) reply() (reply any, granted int64) {
	d.rows = make([][]any, len(d.Clauses))
	never := false // no lockout begins if a clause can never admit
	for i, c := range d.Clauses {
		_, held := d.keys.at(c.Key).lease.Held(d.now)[c.ID]
		never = never || c.Quantity > d.link(i).Most() && !c.UpTo && !c.Raise && !d.Force || c.Kind == 'l' && c.Quantity < 0 && !held
	}
	for i := range d.Clauses {
		c := &d.Clauses[i]
		v := d.call(d.keys.at(c.Key).Clone(), c, c.Quantity, !never)
		if v.TooMuch {
			return ErrTooMuch, 0
		}
		if d.rows[i] = d.row(c, v); c.Weight > 0 {
			d.share(i, v)
		}
	}
	d.waits(!never)
	rows, decider, limited := d.rows, 0, false
	longest, least := int64(-1), int64(math.MaxInt64)
	for i, row := range rows {
		left := row[2].(int64)
		switch wait := row[3].(int64); { // never, which is -1, is the longest
		case row[0] == int64(1) && (!limited || uint64(wait) > uint64(longest)):
			decider, longest, limited = i, wait, true
		case !limited && left < least && !d.Clauses[i].Frees:
			decider, least = i, left
		}
	}
	for i := range d.Clauses {
		c := &d.Clauses[i]
		s := d.keys.at(c.Key)
		s.kind, s.period = c.Kind, c.Period
		if limited && rows[i][0] == int64(0) {
			v := d.call(s.Clone(), c, 0, false)
			if rows[i][2], rows[i][4] = v.Remaining, up(v.ResetAfter, d.Unit); c.Frees {
				rows[i][1] = int64(0)
			}
		} else if c.Weight == 0 || !limited {
			granted = d.call(s, c, c.Quantity, !never).Granted
		}
		if limited && c.Weight > 0 {
			d.remains(i, 0)
		}
	}
	if d.single {
		return rows[0], granted
	}
	front := append(slices.Clone(rows[decider][:5]), int64(decider))
	if d.Shadow {
		front[0], front[3] = int64(0), int64(-1)
	}
	for _, row := range rows {
		front = append(front, row)
	}
	return front, granted
}

// row is what a clause replies.
func (d *decision) row(c *Clause, v funnel.LeaseVerdict) []any {
	wait := up(v.RetryAfter, d.Unit)
	if v.RetryAfter <= 0 {
		wait = -1
	}
	row := []any{one(v.Limited), c.Limit, v.Remaining, wait, up(v.ResetAfter, d.Unit)}
	switch {
	case c.Frees:
		row[1] = -v.Granted
	case c.Kind == 'l':
		row = append(row, one(v.Renewed))
	case c.Reserve && v.Limited:
		row = append(row, int64(-1))
	case c.Reserve:
		row = append(row, up(v.Wait, d.Unit))
	case c.UpTo || c.Raise:
		row = append(row, v.Granted)
	}
	return row
}

// call makes a call of one clause for a quantity. 0 peeks.
func (d *decision) call(s *State, c *Clause, quantity int64, mayLock bool) (v funnel.LeaseVerdict) {
	lockout := c.Lockout
	if !mayLock {
		lockout = 0
	}
	switch c.Kind {
	case 't':
		v.Verdict = s.cells[c.Cell].Call(d.now.Nanos(), funnel.ThrottleParams{Limit: c.Limit, Rate: funnel.Rate{Period: c.Period, Count: c.Count},
			Quantity: quantity, UpTo: c.UpTo, Force: d.Force, Raise: c.Raise, Reserve: c.Reserve, MaxWait: c.MaxWait, Lockout: lockout})
	case 'w':
		v.Verdict = s.window.Call(d.now, funnel.WindowParams{Limit: c.Limit, Period: c.Period.Micros(), Quantity: quantity, UpTo: c.UpTo,
			Force: d.Force, Raise: c.Raise, Exact: c.Exact})
	case 'q':
		v.Verdict = s.quota.Call(d.now, funnel.QuotaParams{Limit: c.Limit, Period: c.Period.Micros(), Quantity: quantity, UpTo: c.UpTo,
			Force: d.Force, Raise: c.Raise, Align: c.Align, Offset: c.Offset.Micros(), Months: c.Months})
	case 'l':
		v = s.slot(c, d.now, quantity)
	}
	return v
}

// slot asks for slots, or gives them back, or with the quantity 0 asks for what is left.
func (s *State) slot(c *Clause, now funnel.Micros, quantity int64) (v funnel.LeaseVerdict) {
	if quantity != 0 && !c.Frees {
		return s.lease.Call(now, c.ID, funnel.LeaseParams{Limit: c.Limit, TTL: c.Period.Micros(), Slots: max(quantity, 0)})
	}
	if quantity != 0 {
		v.Granted = -s.lease.Release(now, c.ID)
		v.Limited = v.Granted == 0
	}
	used, last := s.lease.Used(now)
	v.Remaining, v.ResetAfter = max(c.Limit-used, 0), (last - now).Nanos()
	if c.Frees {
		v.Remaining = 0
	}
	return v
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// up returns a length of time in units, rounded up.
func up(t, unit funnel.Nanos) int64 {
	n := t / unit
	return int64(n) + one(t > n*unit)
}

package oracle

import (
	"slices"

	"gothrottle/funnel"
)

// Window models a sliding window as a plain list of the units that were admitted. Every method walks the list. A call
// that takes or gives back units forgets the units that are a period old, so a longer period that comes later does not
// count them. A server may keep some of them for longer if they are more than it clears away in one call.
type Window struct {
	log []admission // by time; no admission without units
}

// mostInUse is how many units may be in use in a window after a call with FORCE.
const mostInUse = 1_000_000_000_000_000

// admission is units that leave together, a period after time.
type admission struct {
	time  funnel.Micros
	units int64
}

// Clone returns a copy.
func (o *Window) Clone() *Window { return &Window{log: slices.Clone(o.log)} }

// InUse returns the units in use at now, for a call with this period.
func (o *Window) InUse(now, period funnel.Micros) (units int64) {
	for _, a := range o.log {
		if a.time > now-period {
			units += a.units
		}
	}
	return units
}

// Call decides and applies one call. A call with TooMuch gets no other answer. A refund of
// everything empties the log; a server may keep the log's entries, which then count for nothing.
func (o *Window) Call(now funnel.Micros, p funnel.WindowParams) (v funnel.Verdict) {
	used := o.InUse(now, p.Period)
	if p.Raise {
		p.Force, p.Quantity = true, max(p.Quantity-used, 0)
	}
	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		quantity = min(quantity, max(p.Limit-used, 1))
	}
	switch {
	case quantity < 0:
		if v.Granted = max(quantity, -used); v.Granted == 0 {
			break
		}
		v.Change = funnel.Store
		o.forget(now - p.Period)
		o.giveBack(-v.Granted)
		if len(o.log) == 0 {
			v.Change = funnel.Forget
		}
	case p.Force && used+quantity > mostInUse && quantity > 0:
		return funnel.Verdict{TooMuch: true}
	case quantity > p.Limit && !p.Force:
		v.Limited, v.RetryAfter = true, funnel.Never
	case used+quantity > p.Limit && !p.Force:
		v.Limited, v.RetryAfter = true, o.wait(now, p.Period, p.Limit-quantity)
	case quantity > 0:
		v.Granted, v.Change = quantity, funnel.Store
		o.add(now, quantity, p)
		o.forget(now - p.Period)
		if quantity < p.Quantity {
			v.RetryAfter = o.wait(now, p.Period, p.Limit-1)
		}
	}
	used = o.InUse(now, p.Period)
	v.Remaining = max(p.Limit-used, 0)
	if used > 0 {
		v.ResetAfter = (o.log[len(o.log)-1].time + p.Period - now).Nanos()
	}
	return v
}

// wait returns how long it takes until no more than room units are in use.
func (o *Window) wait(now, period funnel.Micros, room int64) funnel.Nanos {
	at := now
	for i := 0; o.InUse(at, period) > room; i++ {
		at = max(at, o.log[i].time+period)
	}
	return (at - now).Nanos()
}

// add appends units. If the call shares an entry with the newest admission, the units join that
// admission, and all of its units leave a period after this call. While the clock is set back,
// the units get the time of the newest admission.
func (o *Window) add(now funnel.Micros, units int64, p funnel.WindowParams) {
	if last := len(o.log) - 1; last >= 0 {
		newest := &o.log[last]
		now = max(now, newest.time)
		own := p.Exact || p.Limit <= 120 && !p.Force
		if now == newest.time || !own && part(now, p.Period) == part(newest.time, p.Period) {
			newest.time = now
			newest.units += units
			return
		}
	}
	o.log = append(o.log, admission{now, units})
}

// part numbers the 120ths of all periods since the Unix epoch.
func part(t, period funnel.Micros) funnel.Micros { return t/period*120 + t%period*120/period }

// forget drops what was admitted up to the instant end.
func (o *Window) forget(end funnel.Micros) {
	o.log = slices.DeleteFunc(o.log, func(a admission) bool { return a.time <= end })
}

// giveBack drops the oldest units.
func (o *Window) giveBack(units int64) {
	for units > 0 {
		n := min(units, o.log[0].units)
		units -= n
		if o.log[0].units -= n; o.log[0].units == 0 {
			o.log = slices.Delete(o.log, 0, 1)
		}
	}
}

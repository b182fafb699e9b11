package oracle

import (
	"maps"
	"slices"

	"gothrottle/funnel"
)

// Lease models slots as a map from a holder's id to when its slot lapses. A call for a slot
// forgets the slots that have lapsed.
type Lease struct {
	lapses map[string]funnel.Micros
}

// Clone returns a copy.
func (o *Lease) Clone() *Lease { return &Lease{maps.Clone(o.lapses)} }

// Held returns the ids that hold a slot at now, and when each slot lapses.
func (o *Lease) Held(now funnel.Micros) map[string]funnel.Micros {
	held := maps.Clone(o.lapses)
	maps.DeleteFunc(held, func(_ string, lapse funnel.Micros) bool { return lapse <= now })
	return held
}

// Call decides and applies one call of the holder id for a slot.
func (o *Lease) Call(now funnel.Micros, id string, p funnel.LeaseParams) (v funnel.LeaseVerdict) {
	held := o.Held(now)
	o.lapses = held
	_, v.Renewed = held[id]
	if v.Renewed || int64(len(held)) < p.Limit {
		v.Granted, v.Change, v.Lapse = 1, funnel.Store, now+p.TTL
		if held == nil {
			held = map[string]funnel.Micros{}
		}
		held[id] = v.Lapse
		o.lapses = held
	}
	lapses := slices.Sorted(maps.Values(held))
	v.Remaining = max(p.Limit-int64(len(lapses)), 0)
	v.ResetAfter = (lapses[len(lapses)-1] - now).Nanos()
	if v.Lapse == 0 {
		v.Limited = true
		for ; int64(len(lapses)) >= p.Limit; lapses = lapses[1:] {
			v.Await++
			v.RetryAfter = (lapses[0] - now).Nanos()
		}
	}
	return v
}

// Release gives the slot of id back and reports whether id held one at now.
func (o *Lease) Release(now funnel.Micros, id string) bool {
	_, held := o.Held(now)[id]
	delete(o.lapses, id)
	return held
}

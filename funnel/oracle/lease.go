package oracle

import (
	"cmp"
	"maps"
	"slices"

	"gothrottle/funnel"
)

// Lease models leases as a map from a holder's id to what it holds. A call for slots forgets the leases that have lapsed.
type Lease struct {
	leases map[string]Held
}

// Held is what a holder has.
type Held struct {
	Slots int64
	Lapse funnel.Micros
}

// Clone returns a copy.
func (o *Lease) Clone() *Lease { return &Lease{maps.Clone(o.leases)} }

// Held returns the ids that hold slots at now, and what they hold.
func (o *Lease) Held(now funnel.Micros) map[string]Held {
	held := maps.Clone(o.leases)
	maps.DeleteFunc(held, func(_ string, h Held) bool { return h.Lapse <= now })
	return held
}

// Used returns how many slots are held at now, and when the last of them lapses, not before now.
func (o *Lease) Used(now funnel.Micros) (used int64, last funnel.Micros) {
	last = now
	for _, h := range o.Held(now) {
		used, last = used+h.Slots, max(last, h.Lapse)
	}
	return used, last
}

// Call decides and applies one call of the holder id for slots.
func (o *Lease) Call(now funnel.Micros, id string, p funnel.LeaseParams) (v funnel.LeaseVerdict) {
	o.leases = o.Held(now)
	own, renewed := o.leases[id]
	used, _ := o.Used(now)
	if !renewed && p.Slots > 0 && used+p.Slots <= p.Limit {
		own.Slots, v.Granted = p.Slots, p.Slots
	}
	if v.Renewed = renewed; own.Slots > 0 {
		own.Lapse = now + p.TTL
		v.Lapse, v.Change = own.Lapse, funnel.Store
		if o.leases == nil {
			o.leases = map[string]Held{}
		}
		o.leases[id] = own
	} else {
		v.Limited, v.RetryAfter = true, o.wait(now, p)
	}
	used, last := o.Used(now)
	v.Remaining, v.ResetAfter = max(p.Limit-used, 0), (last - now).Nanos()
	return v
}

// wait returns how long it takes until a call for slots is admitted, or funnel.Never.
func (o *Lease) wait(now funnel.Micros, p funnel.LeaseParams) funnel.Nanos {
	if p.Slots == 0 || p.Slots > p.Limit {
		return funnel.Never
	}
	all := slices.SortedFunc(maps.Values(o.leases), func(a, b Held) int { return cmp.Compare(a.Lapse, b.Lapse) })
	at := now
	for used, _ := o.Used(now); used+p.Slots > p.Limit; all = all[1:] {
		used, at = used-all[0].Slots, all[0].Lapse
	}
	return (at - now).Nanos()
}

// Release gives the slots of id back and returns how many it held at now.
func (o *Lease) Release(now funnel.Micros, id string) int64 {
	held := o.Held(now)[id]
	delete(o.leases, id)
	return held.Slots
}

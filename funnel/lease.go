package funnel

// LeaseState is what decides a call for slots.
type LeaseState struct {
	Used   int64  // slots held at now, by anyone
	Own    Micros // when the caller's own slots lapse; 0 if the caller holds none at now
	Latest Micros // when the last of the other slots lapses; 0 if there is no other
}

// LeaseParams are the parameters of one call.
type LeaseParams struct {
	Limit int64  // 1 to MaxLimit
	TTL   Micros // 1000 to MaxPeriod
	Slots int64  // to take, 0 to MaxLimit; 0: renew only
}

// LeaseVerdict is the answer to a call for slots.
type LeaseVerdict struct {
	Verdict
	Lapse Micros // when the caller's slots lapse; 0 if the caller has none
	// Await is how many of the slots must lapse before this call is admitted, counted from the one that lapses first; 0
	// unless Limited, or if RetryAfter is Never. The caller of Lease finds that slot and sets RetryAfter.
	Await int64
}

// Lease decides whether a caller gets some of Limit slots for TTL. The same caller again renews its slots, which is always
// admitted, and keeps as many as it has. ResetAfter is the time until the last slot lapses.
func Lease(now Micros, s LeaseState, p LeaseParams) LeaseVerdict {
	v := LeaseVerdict{Verdict: Verdict{Renewed: s.Own != 0}}
	if free := p.Limit - s.Used; !v.Renewed && (p.Slots == 0 || p.Slots > free) {
		v.Limited, v.Remaining = true, max(free, 0)
		v.ResetAfter = max(s.Latest-now, 0).Nanos()
		if v.Await = p.Slots - free; p.Slots == 0 || p.Slots > p.Limit {
			v.Await, v.RetryAfter = 0, Never
		}
		return v
	}
	if !v.Renewed {
		v.Granted = p.Slots
	}
	v.Lapse, v.Change = now+p.TTL, Store
	v.Remaining = max(p.Limit-s.Used-v.Granted, 0)
	v.ResetAfter = (max(s.Latest, v.Lapse) - now).Nanos()
	return v
}

package funnel

// LeaseState is what decides a call for a slot.
type LeaseState struct {
	Used   int64  // slots held at now, whoever holds them
	Own    Micros // when the caller's own slot lapses; 0 if the caller holds none at now
	Latest Micros // when the last of the other slots lapses; 0 if there is no other
}

// LeaseParams are the parameters of one call.
type LeaseParams struct {
	Limit int64  // 1 to MaxLimit
	TTL   Micros // 1000 to MaxPeriod
}

// LeaseVerdict is the answer to a call for a slot.
type LeaseVerdict struct {
	Verdict
	Lapse Micros // when the caller's slot lapses; 0 if the caller has none
	// Await is how many of the slots must lapse before this call is admitted, counted from the one that lapses first; 0
	// unless Limited. The caller of Lease finds that slot and sets RetryAfter.
	Await int64
}

// Lease decides whether a caller gets one of Limit slots for TTL. The same caller again renews its slot, which is
// always admitted. ResetAfter is the time until the last slot lapses.
func Lease(now Micros, s LeaseState, p LeaseParams) LeaseVerdict {
	v := LeaseVerdict{Verdict: Verdict{Renewed: s.Own != 0}}
	if !v.Renewed {
		if s.Used >= p.Limit {
			v.Limited, v.Await = true, s.Used-p.Limit+1
			v.ResetAfter = (s.Latest - now).Nanos()
			return v
		}
		s.Used++
	}
	v.Lapse, v.Granted, v.Change = now+p.TTL, 1, Store
	v.Remaining = max(p.Limit-s.Used, 0)
	v.ResetAfter = (max(s.Latest, v.Lapse) - now).Nanos()
	return v
}

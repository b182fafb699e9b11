package funnel

// LeaseState is what decides a call for a slot: times in µs since the Unix epoch.
type LeaseState struct {
	Used int64 // slots held at now, whoever holds them
	Held int64 // when the caller's own slot lapses; 0 if it holds none at now
}

// LeaseVerdict is the answer to a call for a slot.
type LeaseVerdict struct {
	Limited   bool
	Remaining int64
	Lapse     int64 // when the caller's slot lapses, µs since the Unix epoch; 0 if it has none
	// Await says how many of the slots must lapse before this call is admitted, counted
	// from the one that lapses first; 0 if not Limited.
	Await int64
}

// Lease decides whether a caller gets one of limit slots for ttl µs. The same caller
// again renews its slot, which is always admitted.
func Lease(now int64, s LeaseState, limit, ttl int64) LeaseVerdict {
	if s.Held == 0 {
		if s.Used >= limit {
			return LeaseVerdict{Limited: true, Await: s.Used - limit + 1}
		}
		s.Used++
	}
	return LeaseVerdict{Remaining: max(limit-s.Used, 0), Lapse: now + ttl}
}

package funnel

// WindowParts is the number of parts of a period in which calls share entries. It is also the largest limit for which
// every call has an entry of its own: a server stores a sorted set of up to 128 entries compactly.
const WindowParts = 120

// WindowEntry is one entry of a sliding window's log: units admitted at Time. An entry
// that several calls share has the time of the newest call. The zero value isn't an entry.
type WindowEntry struct {
	Time   Micros // since the Unix epoch, at most 2^53 - MaxPeriod
	Total  uint64 // all units admitted up to and with this entry, modulo 2^64
	Weight int64  // the units of this entry, >= 1
	Cap    int64  // the cap of the units in use, set by a refund; only in the newest entry, >= 0
	Capped bool   // there was a refund: Cap counts
}

// WindowState is what decides a call: two entries of the log, however long the log is.
type WindowState struct {
	Newest WindowEntry // the last one, alive or not
	Oldest WindowEntry // the first one with Time > now - Period; zero if there is none
}

// WindowParams are the parameters of one call.
type WindowParams struct {
	Limit    int64  // 1 to MaxLimit
	Period   Micros // 1000 to MaxPeriod
	Quantity int64  // at most MaxLimit + 1 either way; 0 peeks, a negative quantity refunds
	UpTo     bool   // take what is left if that is less than Quantity
	Force    bool   // charge Quantity, past the limit if need be; excludes UpTo
	Raise    bool   // force the units that are missing to Quantity, which is not negative; excludes UpTo and Force
	Exact    bool   // each microsecond with calls has an entry of its own, whatever the limit
}

// logged returns the units in the live part of the log, given back or not.
func (s *WindowState) logged() int64 {
	if s.Oldest.Weight == 0 {
		return 0
	}
	return int64(s.Newest.Total-s.Oldest.Total) + s.Oldest.Weight
}

// InUse returns the units in use: those in the live part of the log that were not given back.
func (s *WindowState) InUse() int64 {
	if s.Newest.Capped {
		return min(s.logged(), s.Newest.Cap)
	}
	return s.logged()
}

// Sound reports whether the two entries can be of one log.
func (s *WindowState) Sound() bool {
	between := int64(s.Newest.Total - s.Oldest.Total)
	return s.Oldest.Time <= s.Newest.Time && between >= 0 && between < 1<<62
}

// WindowVerdict is the answer to one call of a sliding window.
type WindowVerdict struct {
	Verdict
	// Share says that the new entry takes the newest entry's place. Otherwise it is added.
	Share bool
	// Await says that RetryAfter depends on an entry that the caller of Window must find: the first entry with Total >=
	// Lapse, modulo 2^64, in the log after the call. RetryAfter is then a period after that entry's Time.
	Await bool
	Lapse uint64
}

// Window decides one call by a sliding window log: in any span (t - Period, t] at most
// Limit units are admitted. A denied call leaves no trace.
//
// Each call has an entry of its own if Exact, or if Limit <= WindowParts and not Force. Otherwise the calls in the same
// part of a period share an entry, which leaves when its newest call does: that never admits too much, and it makes a
// call wait at most a part longer. Calls at the same instant always share. A refund takes from the oldest units. That
// is safe whichever call the refund undoes: no span that a later call sees can then hold more than Limit.
//
// With UpTo a call takes min(Quantity, what is left) and is limited only if nothing is left.
// If less than Quantity was granted, RetryAfter is the wait for one more unit.
//
// With Force every call is admitted, a peek too. The units count like any others. The verdict
// is TooMuch if more than MaxInUse would be in use.
func Window(now Micros, s WindowState, p WindowParams) (next WindowEntry, v WindowVerdict) {
	used := s.InUse()
	if p.Raise {
		p.Force, p.Quantity = true, max(p.Quantity-used, 0)
	}
	quantity := p.Quantity
	if p.UpTo && quantity > 0 {
		quantity = grantUpTo(quantity, p.Limit-used)
	}
	next = s.Newest
	switch {
	case quantity < 0:
		v.Granted, v.Share = -min(-quantity, used), true
		used += v.Granted
		next.Cap, next.Capped = used, true
		v.Change = refunded(v.Granted, used == 0)
	case p.Force && quantity > 0 && quantity > MaxInUse-used:
		v.TooMuch = true
	case quantity > p.Limit && !p.Force:
		v.Limited, v.RetryAfter = true, Never
	case quantity > p.Limit-used && !p.Force:
		v.Limited = true
		v.Await, v.Lapse = true, s.Newest.Total+uint64(quantity-p.Limit)
	case quantity > 0:
		next, v.Share = s.append(max(now, s.Newest.Time), used, quantity, p)
		used += quantity
		v.Granted, v.Change = quantity, Store
		if quantity < p.Quantity {
			v.Await, v.Lapse = true, next.Total+uint64(1-p.Limit)
		}
	}
	v.Remaining = max(p.Limit-used, 0)
	if used > 0 {
		v.ResetAfter = (next.Time + p.Period - now).Nanos()
	}
	return next, v
}

// append returns the newest entry after quantity more units at time, and whether that entry
// takes the old newest entry's place.
func (s *WindowState) append(time Micros, used, quantity int64, p WindowParams) (WindowEntry, bool) {
	e := WindowEntry{Time: time, Total: s.Newest.Total + uint64(quantity), Weight: quantity}
	if used < s.logged() {
		e.Cap, e.Capped = used+quantity, true
	}
	own := p.Exact || p.Limit <= WindowParts && !p.Force
	share := s.Newest.Weight > 0 && (time == s.Newest.Time ||
		!own && part(time, p.Period) == part(s.Newest.Time, p.Period))
	if share {
		e.Weight += min(s.Newest.Weight, used) // units that were given back are not carried on
	}
	return e, share
}

// part numbers the parts of all periods since the epoch. time x WindowParts fits in an int64: 2^53 x 120 < 2^63.
func part(time, period Micros) Micros { return time * WindowParts / period }

// Gone reports whether an entry no longer counts at now: it is a period old, or all its units were given back.
func (s *WindowState) Gone(e WindowEntry, now, period Micros) bool {
	return e.Time <= now-period || s.Newest.Capped && int64(s.Newest.Total-e.Total) >= s.Newest.Cap
}

package funnel

// Instants and lengths of time in this file are microseconds, since that is what a
// sorted set's score can hold exactly.

// WindowParts is into how many parts a window is cut when not every call has an entry
// of its own, and the largest limit for which every call has one: a sorted set of up
// to 128 entries is stored compactly.
const WindowParts = 120

// WindowEntry is one entry of a sliding window's log: units admitted at Time. An entry
// that several calls share has the time of the newest. The zero value is no entry.
type WindowEntry struct {
	Time   int64  // µs since the Unix epoch, at most 2^53 - MaxPeriod/1000
	Total  uint64 // all units admitted up to and with this entry, modulo 2^64
	Weight int64  // the units of this entry, >= 1
	Kept   int64  // in the newest entry: how many units are in use at most; 0: all that the log has
}

// WindowState is what decides a call: two entries of the log, whatever its length.
type WindowState struct {
	Newest WindowEntry // the last one, alive or not
	Oldest WindowEntry // the first one with Time > now - period; zero if there is none
}

// inUse returns the units in the log's live part.
func (s *WindowState) inUse() int64 {
	if s.Oldest.Weight == 0 {
		return 0
	}
	used := int64(s.Newest.Total-s.Oldest.Total) + s.Oldest.Weight
	if s.Newest.Kept > 0 {
		used = min(used, s.Newest.Kept)
	}
	return used
}

// Sound reports whether the two entries can be of one log.
func (s *WindowState) Sound() bool {
	between := int64(s.Newest.Total - s.Oldest.Total)
	return s.Oldest.Time <= s.Newest.Time && between >= 0 && between < 1<<62
}

// WindowVerdict is the answer to one call of a sliding window.
type WindowVerdict struct {
	Verdict
	// Share says that the new entry takes the newest one's place; else it is added.
	Share bool
	// Lapse is the total up to which entries must leave before the call is admitted:
	// it is a period after the Time of the first entry with Total >= Lapse, modulo
	// 2^64, and the caller sets RetryAfter accordingly. Only if Wait.
	Lapse uint64
	Wait  bool
}

// micro is a microsecond in ns.
const micro = 1000

// Window decides one call by a sliding window log: in any span (t - period, t] at
// most limit units are admitted. A denied call leaves no trace.
//
// Each call has an entry of its own if exact or limit <= WindowParts; otherwise the
// calls in the same part of a period share one, which leaves when its newest call
// does: that never admits too much, and waits at most a part longer. Calls at the
// same instant always share. A refund takes from the oldest units, which is safe
// whichever call it undoes: no span that a later call sees can then hold more than
// limit.
//
// now is in µs since the Unix epoch; limit 1 to MaxLimit; period in µs, 1000 to
// MaxPeriod/1000; |quantity| <= MaxLimit + 1.
func Window(now int64, s WindowState, limit, period, quantity int64, exact bool) (WindowEntry, WindowVerdict) {
	used := s.inUse()
	v := WindowVerdict{Verdict: Verdict{RetryAfter: Never}}
	next := s.Newest
	switch {
	case quantity < 0:
		v.Granted = -min(-quantity, used)
		used += v.Granted
		next.Kept = used
		v.Change, v.Share = Store, true
		if used == 0 {
			v.Change = Forget
		}
	case quantity > limit:
		v.Limited = true
	case quantity > limit-used:
		v.Limited = true
		v.Lapse, v.Wait = s.Newest.Total+uint64(quantity-limit), true
	case quantity > 0:
		next, v.Share = s.append(max(now, s.Newest.Time), period, quantity, used, exact || limit <= WindowParts)
		used += quantity
		v.Granted = quantity
		v.Change = Store
	}
	v.Remaining = max(limit-used, 0)
	if used > 0 {
		v.ResetAfter = (next.Time + period - now) * micro
	}
	return next, v
}

// append returns the newest entry after quantity more units at time, and whether it
// takes the old one's place.
func (s *WindowState) append(time, period, quantity, used int64, own bool) (WindowEntry, bool) {
	e := WindowEntry{Time: time, Total: s.Newest.Total + uint64(quantity), Weight: quantity}
	if s.Oldest.Weight > 0 && used < int64(s.Newest.Total-s.Oldest.Total)+s.Oldest.Weight {
		e.Kept = used + quantity
	}
	share := s.Newest.Weight > 0 && (time == s.Newest.Time ||
		!own && part(time, period) == part(s.Newest.Time, period))
	if share {
		e.Weight += min(s.Newest.Weight, used) // what was given back is not carried on
	}
	return e, share
}

// part numbers the parts of all periods since the epoch. time x WindowParts fits:
// 2^53 x 120 < 2^63.
func part(time, period int64) int64 { return time * WindowParts / period }

// Gone reports whether an entry counts no more at now: its time has passed, or all
// its units were given back.
func (s *WindowState) Gone(e WindowEntry, now, period int64) bool {
	return e.Time <= now-period || s.Newest.Kept > 0 && int64(s.Newest.Total-e.Total) >= s.Newest.Kept
}

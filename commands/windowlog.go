package commands

import (
	"strconv"

	"gothrottle/funnel"
)

// A sliding window is a sorted set. An entry's time is when its newest unit was admitted.
// Its member is windowPrefix and then numbers of base 36 with colons between:
//
//	the total of units admitted up to and with this entry,
//	the units of this entry, absent if 1 and nothing follows,
//	in the newest entry after a refund, the units that are in use at most.
//
// Totals grow, so members are unique, and two entries show the units between them.
const windowPrefix = '\x01'

const base = 36

// maxTime bounds a time since the Unix epoch: what a score can hold exactly.
const maxTime funnel.Micros = 1 << 53

// latestEntry is the largest time for which time + period <= maxTime, whatever the period.
const latestEntry = maxTime - funnel.Micros(maxPeriod/funnel.Microsecond)

// clearMost bounds the entries of one key that a call clears away because they no longer count.
const clearMost = 128

// putEntry writes an entry's member, without the prefix, and returns its length.
func putEntry(b []byte, e *funnel.WindowEntry) int32 {
	b = strconv.AppendUint(b, e.Total, base)
	if e.Weight != 1 || e.Capped {
		b = strconv.AppendInt(append(b, ':'), e.Weight, base)
	}
	if e.Capped {
		b = strconv.AppendInt(append(b, ':'), e.Cap, base)
	}
	return int32(len(b))
}

// windowEntry reads an entry, which must be one that putEntry could have written.
func windowEntry(entry *Entry) (e funnel.WindowEntry, err ErrorCode) {
	member := entry.Member
	if entry.Bad != 0 || uint64(entry.Time) > uint64(latestEntry) || member == "" || member[0] != windowPrefix {
		return e, ErrForeignWindow
	}
	e.Time = entry.Time
	var ok bool
	if e.Total, member, ok = cutNumber(member[1:]); !ok {
		return e, ErrForeignWindow
	}
	e.Weight = 1
	if member != "" {
		if e.Weight, member, ok = cutUnits(member); !ok || e.Weight == 0 || e.Weight == 1 && member == "" {
			return e, ErrForeignWindow
		}
	}
	if member != "" {
		e.Capped = true
		if e.Cap, member, ok = cutUnits(member); !ok || member != "" {
			return e, ErrForeignWindow
		}
	}
	return e, NoError
}

// cutNumber reads a canonical number of base 36 up to a colon or the end.
func cutNumber(s string) (n uint64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i] != ':'; i++ {
		digit := uint64(s[i] - '0')
		if s[i] >= 'a' && s[i] <= 'z' {
			digit = uint64(s[i]-'a') + 10
		} else if s[i] < '0' || s[i] > '9' {
			return 0, "", false
		}
		next := n*base + digit
		if next/base != n || i > 0 && n == 0 {
			return 0, "", false
		}
		n = next
	}
	return n, s[i:], i > 0
}

// cutUnits reads a colon and a number of units.
func cutUnits(s string) (n int64, rest string, ok bool) {
	u, rest, ok := cutNumber(s[1:])
	return int64(u), rest, ok && u <= 1<<62
}

// checkZset checks that a key holds a sorted set or nothing.
func (k *Key) checkZset() ErrorCode {
	if k.Kind != KindAbsent && k.Kind != KindZset {
		return ErrWrongType
	}
	return NoError
}

// loadWindow reads the newest entry, as Entries[0], and the first entry after a time, as
// Entries[1]. There is no Entries[1] if no entry is newer than that time.
func (c *Call) loadWindow(key int, after funnel.Micros) (s funnel.WindowState, err ErrorCode) {
	k := &c.Keys[key]
	if err := k.checkZset(); err != NoError || k.Kind == KindAbsent {
		return s, err
	}
	if c.Host().Newest(c, key, 1); len(k.Entries) == 0 { // a sorted set without a member
		return s, NoError
	}
	if s.Newest, err = windowEntry(&k.Entries[0]); err != NoError || s.Newest.Time <= after {
		return s, err
	}
	if !c.Host().First(c, key, after) {
		return s, ErrDamaged
	}
	if s.Oldest, err = windowEntry(&k.Entries[1]); err != NoError {
		return s, err
	}
	if !s.Sound() {
		return s, ErrDamaged
	}
	return s, NoError
}

// findLapse returns the time of the first entry whose Total has reached total. That is mostly
// the oldest entry. Otherwise findLapse bisects the log by time.
func (c *Call) findLapse(key int, s *funnel.WindowState, total uint64) (funnel.Micros, ErrorCode) {
	reaches := func(e *funnel.WindowEntry) bool { return int64(e.Total-total) >= 0 }
	if reaches(&s.Oldest) {
		return s.Oldest.Time, NoError
	}
	// Invariant: the entry at low is below total. The first entry after found is at lapse, and it has reached total.
	low, found, lapse := s.Oldest.Time, s.Newest.Time-1, s.Newest.Time
	k := &c.Keys[key]
	keep := len(k.Entries)
	for low < found {
		// The first entry after the middle moves low up to it, or lapse down to it.
		middle := low + (found-low)/2
		if !c.Host().First(c, key, middle) {
			return 0, ErrDamaged
		}
		e, err := windowEntry(&k.Entries[keep])
		c.Host().Release(c, key, keep)
		if err != NoError {
			return 0, err
		}
		if reaches(&e) {
			found, lapse = middle, e.Time
		} else {
			low = e.Time
		}
	}
	return lapse, NoError
}

// clearWindow marks entries that no longer count for removal. Each entry is checked first: a
// foreign member is not removed. An older entry has a lower total than the newest one. Otherwise the
// member that the call adds could be one of those that it removes, and no member would be left.
func (c *Call) clearWindow(key int, s *funnel.WindowState, period funnel.Micros) ErrorCode {
	k := &c.Keys[key]
	if k.Kind != KindZset {
		return NoError
	}
	upTo := c.Now - period
	if s.Newest.Capped {
		upTo = max(upTo, s.Newest.Time-1) // refunded entries may still be inside the period
	}
	first := len(k.Entries)
	c.Host().Oldest(c, key, NoTime, upTo, clearMost)
	for i := first; i < len(k.Entries); i++ {
		e, err := windowEntry(&k.Entries[i])
		if err != NoError {
			return err
		}
		if int64(s.Newest.Total-e.Total) <= 0 && k.Entries[i].Member != k.Entries[0].Member {
			return ErrDamaged
		}
		if !s.Gone(e, c.Now, period) {
			break
		}
		k.Entries[i].Drop = 1
	}
	return NoError
}

// checkWindow makes sure that every entry is ours before the key is deleted. The sorted set
// has at most clearMost entries.
func (c *Call) checkWindow(key int) ErrorCode {
	k := &c.Keys[key]
	first := len(k.Entries)
	c.Host().Oldest(c, key, NoTime, maxTime, clearMost)
	for i := first; i < len(k.Entries); i++ {
		if _, err := windowEntry(&k.Entries[i]); err != NoError {
			return err
		}
	}
	if int64(len(k.Entries)-first) != k.Length {
		return ErrForeignWindow
	}
	return NoError
}

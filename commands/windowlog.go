package commands

import (
	"strconv"

	"gothrottle/funnel"
)

// A sliding window is a sorted set. An entry's time is when its newest unit was admitted,
// its member windowPrefix and then, in base 36 with colons between:
//
//	the total of units admitted up to and with this entry,
//	the units of this entry, unless 1 and nothing follows,
//	in the newest entry after a refund, the units that are in use at most.
//
// Totals grow, so members are unique, and two entries tell the units between them.
const windowPrefix = '\x01'

const base = 36

// maxTime bounds a time, in µs since the Unix epoch: what a score can hold exactly.
const maxTime = 1 << 53

// latestEntry bounds an entry's: a period later there is a time yet.
const latestEntry = maxTime - maxPeriod/microsecond

// clearMost is how many entries that do not count any more a call clears away at most.
const clearMost = 128

// putEntry writes an entry's member, without the prefix, and returns its length.
func putEntry(b []byte, e *funnel.WindowEntry) int32 {
	b = strconv.AppendUint(b, e.Total, base)
	if e.Weight != 1 || e.Kept != 0 {
		b = strconv.AppendInt(append(b, ':'), e.Weight, base)
	}
	if e.Kept != 0 {
		b = strconv.AppendInt(append(b, ':'), e.Kept, base)
	}
	return int32(len(b))
}

// windowEntry reads entry i, which must be one that putEntry could have written.
func (c *Call) windowEntry(i int) (e funnel.WindowEntry, err Error) {
	entry := &c.Entries[i]
	member := entry.Member
	if entry.Bad != 0 || entry.Time > latestEntry || member == "" || member[0] != windowPrefix {
		return e, ErrForeignWindow
	}
	e.Time = entry.Time
	var ok bool
	if e.Total, member, ok = cutNumber(member[1:]); !ok {
		return e, ErrForeignWindow
	}
	e.Weight = 1
	if member != "" {
		if e.Weight, member, ok = cutUnits(member); !ok || e.Weight == 1 && member == "" {
			return e, ErrForeignWindow
		}
	}
	if member != "" {
		if e.Kept, member, ok = cutUnits(member); !ok || member != "" {
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
	return int64(u), rest, ok && u >= 1 && u <= 1<<62
}

// loadWindow reads the newest entry, as Entries[0], and the first one after a time.
func (c *Call) loadWindow(after int64) (s funnel.WindowState, err Error) {
	switch c.Keys[0].Kind {
	case KindAbsent:
		return s, NoError
	case KindZset:
	default:
		return s, ErrWrongType
	}
	TheHost.Last(c, 1)
	if s.Newest, err = c.windowEntry(0); err != NoError || s.Newest.Time <= after {
		return s, err
	}
	TheHost.First(c, after, 1)
	if s.Oldest, err = c.windowEntry(1); err != NoError {
		return s, err
	}
	if !s.Sound() {
		return s, ErrDamaged
	}
	return s, NoError
}

// findLapse returns the time of the first entry with at least a total. Mostly it is
// the oldest one; else the log is bisected by time, since a server's sorted set has no
// access by rank from a module.
func (c *Call) findLapse(s *funnel.WindowState, total uint64) (int64, Error) {
	reaches := func(e *funnel.WindowEntry) bool { return int64(e.Total-total) >= 0 }
	if reaches(&s.Oldest) {
		return s.Oldest.Time, NoError
	}
	// The total is not reached at low; the first entry after found is at lapse, and it is.
	low, found, lapse := s.Oldest.Time, s.Newest.Time-1, s.Newest.Time
	keep := len(c.Entries)
	for low < found {
		// The first entry after the middle moves one of them up or down to it.
		middle := low + (found-low)/2
		TheHost.First(c, middle, 1)
		e, err := c.windowEntry(keep)
		TheHost.Release(c, keep)
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

// clearWindow marks entries that do not count any more for removal. Each is checked:
// what is not ours is not removed.
func (c *Call) clearWindow(s *funnel.WindowState, now, period int64) Error {
	if c.Keys[0].Kind != KindZset {
		return NoError
	}
	upTo := now - period
	if s.Newest.Kept > 0 {
		upTo = max(upTo, s.Newest.Time-1) // given back ones may be younger
	}
	first := len(c.Entries)
	TheHost.Head(c, Beginning, upTo, clearMost)
	for i := first; i < len(c.Entries); i++ {
		e, err := c.windowEntry(i)
		if err != NoError {
			return err
		}
		if !s.Gone(e, now, period) {
			break
		}
		c.Entries[i].Drop = 1
	}
	return NoError
}

// checkWindow makes sure that every entry is ours before the key is removed.
func (c *Call) checkWindow() Error {
	if c.Keys[0].Kind != KindZset {
		return NoError
	}
	keep, seen, after := len(c.Entries), int64(0), int64(Beginning)
	for {
		TheHost.Head(c, after, maxTime, clearMost)
		if len(c.Entries) == keep {
			break
		}
		for i := keep; i < len(c.Entries); i++ {
			e, err := c.windowEntry(i)
			if err != NoError {
				return err
			}
			seen, after = seen+1, e.Time
		}
		TheHost.Release(c, keep)
	}
	if seen != c.Keys[0].Length {
		return ErrForeignWindow
	}
	return NoError
}

package commands

import "gothrottle/funnel"

// A lease of several slots has a second member: slotsPrefix and the id, whose score is the number of slots. The score
// of the member extraPrefix is the sum of slots - 2 over all such members. So the slots of a sorted set are its length
// - 1 plus that score, or its length if it has no such member. These scores are positive, unlike those of leases.
const (
	slotsPrefix = '\x03'
	extraPrefix = '\x04'
	extraMember = "\x04"
)

// maxLapsed bounds the lapsed leases that one call removes.
const maxLapsed = 1024

// maxLapses bounds the lapses that a call looks at for its wait, if leases have several slots.
const maxLapses = 128

// slots accounts for the leases of several slots at a key.
type slots struct {
	several    bool  // there are such leases
	extra, sum int64 // the score of the member extraPrefix, and what it becomes
	entry      int   // the member's index in Key.Entries
	dropped    int   // members slotsPrefix that go
	added      bool  // there is another one
}

// counts reports whether an entry counts slots, and isn't a lease.
func (e *Entry) counts() bool {
	return e.Member != "" && (e.Member[0] == slotsPrefix || e.Member[0] == extraPrefix)
}

// find finds the sum, which may be the last entry already.
func (s *slots) find(c *Call, key int) ErrorCode {
	k := &c.Keys[key]
	s.entry = len(k.Entries)
	if last := s.entry - 1; last >= 0 && k.Entries[last].Member == extraMember {
		s.several, s.entry = true, last
	} else if s.several = c.Host().Find(c, key, extraPrefix, ""); !s.several {
		return NoError
	}
	e := &k.Entries[s.entry]
	s.extra, s.sum = -int64(e.Time), -int64(e.Time)
	if e.Bad != 0 || e.Time > 0 || s.sum > maxLimit {
		return ErrForeignLeases
	}
	return NoError
}

// of returns how many slots a lease has, and the index in Key.Entries of the member that says so; 0 if there's none:
// the lease comes before it.
func (s *slots) of(c *Call, key int, id string) (n int64, at int, err ErrorCode) {
	k := &c.Keys[key]
	if at = len(k.Entries); !s.several || !c.Host().Find(c, key, slotsPrefix, id) {
		return 1, 0, NoError
	}
	e := &k.Entries[at]
	if n = -int64(e.Time); e.Bad != 0 || n < 2 || n > maxLimit {
		err = ErrForeignLeases
	}
	return n, at, err
}

// drop removes a member that of has found.
func (s *slots) drop(k *Key, at int) {
	if at == 0 {
		return
	}
	e := &k.Entries[at]
	e.Drop = 1
	s.sum -= -int64(e.Time) - 2
	s.dropped++
}

// put makes an id have n >= 2 slots. Those of a lapsed lease of the same id, which of has found, end.
func (s *slots) put(c *Call, key int, id string, n int64, at int) {
	if at > 0 {
		s.sum -= -int64(c.Keys[key].Entries[at].Time) - 2
	}
	if s.sum, s.added = max(s.sum, 0)+n-2, true; !s.several {
		s.extra = -1 // there is none
	}
	c.Host().Put(c, key, slotsPrefix, id, funnel.Micros(-n))
}

// settle writes the sum, or drops it if no member is left that it counts. It comes after all drops: C expects what is
// put last.
func (s *slots) settle(c *Call, key int) {
	switch {
	case s.dropped > 0 && s.sum <= 0 && !s.added && !s.stays(c, key):
		c.Keys[key].Entries[s.entry].Drop = 1
	case s.sum != s.extra && s.sum >= 0: // a damaged set may have a sum that is too small
		c.Host().Put(c, key, extraPrefix, "", funnel.Micros(-s.sum))
	}
}

// stays reports whether there are more members slotsPrefix than those that go. It says so if it meets a member that is
// too long, because the server then shows it no further ones.
func (s *slots) stays(c *Call, key int) bool {
	k := &c.Keys[key]
	first, found := len(k.Entries), 0
	c.Host().Oldest(c, key, NoTime, -2, s.dropped+2) // one may be the sum
	for i := first; i < len(k.Entries); i++ {
		switch e := &k.Entries[i]; {
		case len(e.Member) > MaxMemberLen:
			found += s.dropped + 1
		case e.counts() && e.Member[0] == slotsPrefix:
			found++
		}
	}
	c.Host().Release(c, key, first)
	return found > s.dropped
}

// lapse is an instant at which a lease lapses, and the slots in use from then on.
type lapse struct {
	at   funnel.Micros
	used int64
}

// allFree are the slots in use after the last lapse that a call looks at: few enough for every call, whose wait then
// ends there.
const allFree = -1 << 50

// lapses returns the next lapses of leases of several slots. If lapsed leases are left, the next call may find their
// slots free.
func (l *leaseLimiter) lapses(c *Call) ([]lapse, ErrorCode) {
	all, used, k := c.scratch.lapses[l.key][:], l.state.Used, &c.Keys[l.key]
	if l.rest {
		all[0] = lapse{c.Now + 1, allFree}
		return all[:1], NoError
	}
	if l.numLapses > 0 {
		return all[:l.numLapses], NoError
	}
	first := len(k.Entries)
	c.Host().Oldest(c, l.key, c.Now, maxTime, maxLapses+1)
	l.numLapses = len(k.Entries) - first
	for i := range l.numLapses {
		e := k.Entries[first+i]
		if checkLease(&e) != NoError {
			return nil, ErrForeignLeases
		}
		n, _, err := l.of(c, l.key, e.id())
		if err != NoError {
			return nil, err
		}
		if used -= n; i == maxLapses {
			used = allFree
		}
		all[i] = lapse{e.Time, used}
	}
	c.Host().Release(c, l.key, first)
	return all[:l.numLapses], NoError
}

// laterSlots is later for leases of several slots.
func (l *leaseLimiter) laterSlots(c *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode) {
	all, err := l.lapses(c)
	used = l.state.Used
	for i := range all {
		if all[i].at > at {
			return used, all[i].at, err
		}
		used = all[i].used
	}
	return used, noLapse, err
}

// weigh counts the slots in use where leases have several slots: all but those of lapsed leases. Where more have lapsed
// than a call removes, the slots of the rest count.
func (l *leaseLimiter) weigh(c *Call) ErrorCode {
	k, id := &c.Keys[l.key], c.Args[l.word]
	if err := l.find(c, l.key); err != NoError || !l.several {
		return ErrForeignLeases
	}
	used, first, left := k.Length-1+l.extra, len(k.Entries), c.scratch.toClear
	c.Host().Oldest(c, l.key, 0, c.Now, left+1)
	if l.rest = len(k.Entries)-first > left; l.rest {
		c.Host().Release(c, l.key, first+left)
	}
	l.lapsed, l.numLapsed = int32(first), int32(len(k.Entries)-first)
	c.scratch.toClear -= int(l.numLapsed)
	for i := range l.numLapsed {
		e := k.Entries[l.lapsed+i]
		if err := checkLease(&e); err != NoError {
			return err
		}
		if e.id() == id {
			l.ownGoes = true
			continue
		}
		n, _, err := l.of(c, l.key, e.id())
		if used -= n; err != NoError {
			return err
		}
	}
	l.counted = int32(len(k.Entries)) - l.lapsed - l.numLapsed
	var err ErrorCode
	if l.own > 0 {
		if l.own, l.ownAt, err = l.of(c, l.key, id); l.state.Own == 0 {
			used -= l.own
		}
	}
	switch {
	case l.state.Latest != 0 || l.rest:
		if l.state.Used = used; err == NoError && used <= 0 { // the sum is too small
			err = ErrForeignLeases
		}
	case l.state.Own != 0: // nobody else holds slots
		l.state.Used = l.own
	}
	return err
}

// applySlots removes what counts the slots of leases that go, and counts those that are taken. If no lease stays, the
// key is deleted, whatever else it holds.
func (l *leaseLimiter) applySlots(c *Call, denied bool) {
	s, k, holds := &l.slots, &c.Keys[l.key], l.state.Own != 0
	frees := l.frees && !denied
	takes := !denied && !l.frees && !holds
	for i := range l.counted {
		s.drop(k, int(l.lapsed+l.numLapsed+i))
	}
	switch {
	case takes && l.Slots > 1:
		s.put(c, l.key, c.Args[l.word], l.Slots, l.ownAt)
	case takes || frees || l.ownGoes:
		s.drop(k, l.ownAt)
	}
	s.settle(c, l.key)
	if l.state.Latest == 0 && !l.rest && !takes && (frees || !holds) {
		k.Becomes = Absent
	}
}

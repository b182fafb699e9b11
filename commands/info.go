package commands

import (
	"fmt"

	"gothrottle/funnel"
)

// maxHolders bounds the holders of leases that GO.INFO lists.
const maxHolders = 128

var info = Command{
	Name:       "GO.INFO",
	Summary:    "Shows what is at a key: the kind of limiter, what is in use, and until when.",
	Complexity: fmt.Sprintf("O(log(N)) with N the entries or slots; at most %d holders are listed", maxHolders),
	Since:      "0.1.0",
	Flags:      "readonly",
	Arity:      2,
	Args:       []Arg{argKey},
	State:      KindAny,
	Handler:    runInfo,
}

func runInfo(c *Call) ErrorCode {
	c.Shape = Items
	k := &c.Keys[0]
	switch k.Kind {
	case KindAbsent:
		c.Host().Reply(c, ItemNull, 0, "")
		return NoError
	case KindHash:
		return c.infoCells(k)
	case KindString:
		return c.infoString(k)
	case KindZset:
		return c.infoZset(k)
	}
	return ErrWrongType
}

// infoHead replies the pairs that all kinds have. pairs more must follow.
func (c *Call) infoHead(kind string, pairs int64) {
	c.Host().Reply(c, ItemMap, 2+pairs, "")
	c.replyName("kind")
	c.replyName(kind)
	expires := int64(-1)
	if at := c.Keys[0].ExpiresAt; at >= 0 {
		expires = c.millisUntil(funnel.Nanos(min(at, maxMillis)) * funnel.Millisecond)
	}
	c.replyPair("expires_in_ms", expires)
}

// maxMillis is the last ms that funnel.Nanos can hold.
const maxMillis = int64(maxTAT / funnel.Millisecond)

// millisUntil returns how many ms from now on the instant at lies, rounded up; 0 if it is past.
func (c *Call) millisUntil(at funnel.Nanos) int64 {
	return ceilDiv(max(at-c.Now.Nanos(), 0), funnel.Millisecond)
}

func (c *Call) replyName(name string) { c.Host().Reply(c, ItemText, 0, name) }

func (c *Call) replyPair(name string, n int64) {
	c.replyName(name)
	c.Host().Reply(c, ItemInteger, n, "")
}

// infoCells replies what the cells of a hash hold.
func (c *Call) infoCells(k *Key) ErrorCode {
	if err := c.loadHash(k); err != NoError {
		return err
	}
	cells := c.cells(k)
	for len(cells) > 0 && cells[len(cells)-1].Found == 0 { // the host may have looked for one cell more
		cells = cells[:len(cells)-1]
	}
	c.infoThrottle(int64(len(cells)))
	for i := range cells {
		c.infoCell(&cells[i].state)
	}
	return NoError
}

// infoThrottle begins the reply for a number of cells, which must follow.
func (c *Call) infoThrottle(cells int64) {
	c.infoHead("throttle", 1)
	c.replyName("cells")
	c.Host().Reply(c, ItemArray, cells, "")
}

// infoCell replies a cell. The rate of an adopted cell is not known, nor how many units are in use.
func (c *Call) infoCell(s *funnel.ThrottleState) {
	now := c.Now.Nanos()
	c.Host().Reply(c, ItemMap, 5, "")
	if s.Rate.Count == 0 {
		for _, name := range [...]string{"in_use", "count", "period_ms"} {
			c.replyName(name)
			c.Host().Reply(c, ItemNull, 0, "")
		}
	} else {
		count, millis := s.Rate.PerMillis()
		c.replyPair("in_use", s.InUse(now))
		c.replyPair("count", count)
		c.replyPair("period_ms", millis)
	}
	c.replyPair("empty_in_ms", ceilDiv(s.Drain(now), funnel.Millisecond))
	c.replyPair("locked_for_ms", c.millisUntil(s.Locked))
}

// infoString replies what a string holds: redis-cell's cell, or a fixed window.
func (c *Call) infoString(k *Key) ErrorCode {
	if tat, ok := adopt(k.Text); ok {
		c.infoThrottle(1)
		c.infoCell(&funnel.ThrottleState{TAT: tat})
		return NoError
	}
	s, err := quotaState(k)
	if err != NoError {
		return ErrForeignText
	}
	if s.End <= c.Now {
		s = funnel.QuotaState{}
	}
	c.infoHead("quota", 2)
	c.replyPair("used", s.Used)
	c.replyPair("ends_in_ms", c.millisUntil(s.End.Nanos()))
	return NoError
}

// infoZset replies what a sorted set holds. Its newest and oldest member show which kind it is. If
// the newest is ours, its time is at most maxTime, so there is an oldest one, too.
func (c *Call) infoZset(k *Key) ErrorCode {
	c.Host().Newest(c, 0, 1)
	c.Host().Oldest(c, 0, NoTime, maxTime, 1)
	if len(k.Entries) < 2 {
		return ErrForeignZset
	}
	if oldest := &k.Entries[1]; checkLease(&k.Entries[0]) == NoError && (oldest.counts() || checkLease(oldest) == NoError) {
		return c.infoLeases(k, oldest.counts())
	}
	return c.infoWindow(k)
}

// infoWindow replies what a sliding window holds. Entries[0] is the newest entry, Entries[1] the
// oldest. The period is not stored, so entries that no longer count are shown, too.
func (c *Call) infoWindow(k *Key) (err ErrorCode) {
	var s funnel.WindowState
	if s.Newest, err = windowEntry(&k.Entries[0]); err != NoError {
		return ErrForeignZset
	}
	if s.Oldest, err = windowEntry(&k.Entries[1]); err != NoError {
		return ErrForeignZset
	}
	if !s.Sound() {
		return ErrDamaged
	}
	c.infoHead("window", 4)
	c.replyPair("entries", k.Length)
	c.replyPair("recorded", s.InUse())
	c.replyPair("newest_age_ms", c.ageOf(s.Newest.Time))
	c.replyPair("oldest_age_ms", c.ageOf(s.Oldest.Time))
	return NoError
}

// ageOf returns how many ms have passed since an instant, rounded down. It is negative if a clock ahead of this one
// wrote it.
func (c *Call) ageOf(at funnel.Micros) int64 {
	age := c.Now - at
	if age < 0 {
		age -= 999
	}
	return int64(age / 1000)
}

// infoLeases replies how many slots are held, and the holders whose slots lapse last. counted says that some hold
// several.
func (c *Call) infoLeases(k *Key, counted bool) (err ErrorCode) {
	c.Host().Release(c, 0, 0)
	c.Host().Newest(c, 0, maxHolders)
	listed := 0
	for i := range k.Entries {
		e := &k.Entries[i]
		if e.counts() {
			break
		}
		if checkLease(e) != NoError {
			return ErrForeignZset
		}
		if e.Time > c.Now {
			listed++
		}
	}
	held, pairs := int64(listed), int64(2)
	switch {
	case counted:
		pairs++
		if held, err = c.infoHeld(); err != NoError {
			return err
		}
	case listed == maxHolders:
		if held, err = c.Host().CountAfter(c, 0, c.Now); err != NoError {
			return err
		}
	}
	c.infoHead("lease", pairs)
	if held >= 0 {
		c.replyPair("held", held)
	} else {
		c.replyName("held")
		c.Host().Reply(c, ItemNull, 0, "")
	}
	c.replyName("holders")
	c.Host().Reply(c, ItemMap, int64(listed), "")
	for i := range listed { // the newest come first
		e := &k.Entries[i]
		c.replyPair(e.id(), c.millisUntil(e.Time.Nanos()))
	}
	if counted {
		return c.infoSlots(k, listed)
	}
	return NoError
}

// infoHeld returns the slots in use where leases have several.
func (c *Call) infoHeld() (int64, ErrorCode) {
	l := &c.scratch.rooms[0].lease
	l.word, c.scratch.toClear = 0, maxLapsed // whose slots are the caller's doesn't matter here
	err := l.load(c, 0, 0)
	return l.state.Used, err
}

// infoSlots replies how many slots the listed holders have.
func (c *Call) infoSlots(k *Key, listed int) ErrorCode {
	c.replyName("slots")
	c.Host().Reply(c, ItemMap, int64(listed), "")
	for i := range listed {
		id := k.Entries[i].id()
		n, _, err := c.scratch.rooms[0].lease.of(c, 0, id)
		if err != NoError {
			return err
		}
		c.replyPair(id, n)
	}
	return NoError
}

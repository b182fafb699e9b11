package commands

import "gothrottle/funnel"

// GO.LEASE key limit ttl id [MS]
// GO.RELEASE key id [id ...]
//
// Leases are a sorted set: the member is leasePrefix and the holder's id, the time when
// the lease lapses.
const leasePrefix = '\x02'

// releaseMost is how many ids one GO.RELEASE takes.
const releaseMost = 1024

var lease = Command{
	Name:       "GO.LEASE",
	Summary:    "Takes or renews one of a number of slots, held until released or lapsed.",
	Complexity: "O(log(N)+M) with N the slots and M those that lapsed since the last call",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args: []Arg{argKey, argLimit,
		{Name: "ttl", Type: ArgInteger, Summary: "How long the slot is held, in seconds, or milliseconds with MS."},
		{Name: "id", Type: ArgString, Summary: "Who holds it."},
		argMS},
	State:   KindZset,
	Handler: runLease,
}

var release = Command{
	Name:       "GO.RELEASE",
	Summary:    "Gives slots back and tells how many of them were held.",
	Complexity: "O(M*log(N)+M^2) with N the slots and M the ids, at most 1024",
	Since:      "0.1.0",
	Flags:      "write fast",
	Arity:      -3,
	Args:       []Arg{argKey, {Name: "id", Type: ArgString, Multiple: true, Summary: "Who holds a slot."}},
	State:      KindZset,
	Handler:    runRelease,
}

func runLease(c *Call) Error {
	opts, _, err := parseOptions(c.Args[4:], optMS)
	if err != NoError {
		return err
	}
	limit, err := limitArg(c.Args[1])
	if err != NoError {
		return err
	}
	ttl, err := spanArg(c.Args[2], opts.unit(), ErrTTLNotInteger, ErrTTLRangeSeconds, ErrTTLRangeMillis)
	if err != NoError {
		return err
	}
	now, id := c.Now, c.Args[3]
	var s funnel.LeaseState
	if err := c.loadLeases(); err != NoError {
		return err
	}
	if c.Keys[0].Kind == KindZset {
		s.Used = c.Keys[0].Length - TheHost.Count(c, now)
		if i := len(c.Entries); TheHost.Find(c, leasePrefix, id) {
			if err := c.checkLease(i); err != NoError {
				return err
			}
			if c.Entries[i].Time > now {
				s.Held = c.Entries[i].Time
			}
		}
	}
	v := funnel.Lease(now, s, limit, ttl/microsecond)
	reply := funnel.Verdict{Limited: v.Limited, Remaining: v.Remaining, RetryAfter: funnel.Never}
	if v.Limited {
		i := len(c.Entries)
		TheHost.First(c, now, int(v.Await))
		if err := c.checkLease(i); err != NoError {
			return err
		}
		reply.RetryAfter = (c.Entries[i].Time - now) * microsecond
	} else {
		end, err := c.latestLease(func(e *Entry) bool { return e.Member[1:] == id })
		if err != NoError {
			return err
		}
		if err := c.clearLeases(now, id); err != NoError {
			return err
		}
		c.AddPrefix, c.AddArg, c.AddTime = leasePrefix, 3, v.Lapse
		c.Keys[0].expire(max(end, v.Lapse)*microsecond, ttl)
		reply.ResetAfter = (v.Lapse - now) * microsecond
	}
	c.reply(&reply, limit, opts)
	if v.Lapse == 0 {
		c.Reply[4] = -1
	}
	return NoError
}

func runRelease(c *Call) Error {
	ids := c.Args[1:]
	if len(ids) > releaseMost {
		return ErrTooManyIDs
	}
	if err := c.loadLeases(); err != NoError {
		return err
	}
	c.Shape, c.Reply[0] = Integer, 0
	if c.Keys[0].Kind == KindAbsent {
		return NoError
	}
	first := len(c.Entries)
	for _, id := range ids {
		i := len(c.Entries)
		if !TheHost.Find(c, leasePrefix, id) {
			continue
		}
		if containsEntry(c.Entries[first:i], c.Entries[i].Member) {
			TheHost.Release(c, i)
			continue
		}
		if err := c.checkLease(i); err != NoError {
			return err
		}
		if c.Entries[i].Time > c.Now {
			c.Reply[0]++
		}
		c.Entries[i].Drop = 1
	}
	released := len(c.Entries)
	if released == first {
		return NoError
	}
	end, err := c.latestLease(func(e *Entry) bool { return containsEntry(c.Entries[first:released], e.Member) })
	if err != NoError {
		return err
	}
	if end > c.Now {
		c.Keys[0].expire(end*microsecond, (end-c.Now)*microsecond)
	}
	return NoError
}

func containsEntry(entries []Entry, member string) bool {
	for i := range entries {
		if entries[i].Member == member {
			return true
		}
	}
	return false
}

// loadLeases makes sure that the key holds leases, as far as the lease that lapses last tells.
func (c *Call) loadLeases() Error {
	switch c.Keys[0].Kind {
	case KindAbsent:
		return NoError
	case KindZset:
		TheHost.Last(c, 1)
		return c.checkLease(0)
	}
	return ErrWrongType
}

func (c *Call) checkLease(i int) Error {
	e := &c.Entries[i]
	if e.Bad != 0 || e.Member == "" || e.Member[0] != leasePrefix {
		return ErrForeignLeases
	}
	return NoError
}

// latestLease returns when the last of the leases lapses, but for those that go; 0 if
// there is none.
func (c *Call) latestLease(goes func(*Entry) bool) (int64, Error) {
	if c.Keys[0].Kind != KindZset {
		return 0, NoError
	}
	keep := len(c.Entries)
	for n := 1; TheHost.Last(c, n); n++ {
		if err := c.checkLease(keep); err != NoError {
			return 0, err
		}
		e := &c.Entries[keep]
		end := e.Time
		stays := !goes(e)
		TheHost.Release(c, keep)
		if stays {
			return end, NoError
		}
	}
	return 0, NoError
}

// clearLeases marks lapsed leases for removal, but for the caller's own, which is
// about to be renewed. Each is checked: what is not ours is not removed.
func (c *Call) clearLeases(now int64, id string) Error {
	if c.Keys[0].Kind != KindZset {
		return NoError
	}
	first := len(c.Entries)
	TheHost.Head(c, Beginning, now, clearMost)
	for i := first; i < len(c.Entries); i++ {
		if err := c.checkLease(i); err != NoError {
			return err
		}
		if c.Entries[i].Member[1:] != id {
			c.Entries[i].Drop = 1
		}
	}
	return NoError
}

package commands

import (
	"fmt"

	"gothrottle/funnel"
)

// Leases are a sorted set. A member is leasePrefix and the holder's id; its time is when the lease lapses.
const leasePrefix = '\x02'

// maxIDLen bounds the bytes of an id.
const maxIDLen = 512

// MaxMemberLen bounds the bytes of a member of ours: a prefix and an id. A member of a sliding window is shorter.
const MaxMemberLen = 1 + maxIDLen

var (
	idBounds = fmt.Sprintf("at most %d bytes", maxIDLen)
	argTTL   = Arg{Name: "ttl", Type: ArgString, Bounds: spanBounds, Summary: "How long the slot is held: a time."}
	argID    = Arg{Name: "id", Type: ArgString, Bounds: idBounds, Summary: "Who holds the slot."}
)

var lease = Command{
	Name:       "GO.LEASE",
	Summary:    "Takes or renews one of a number of slots, held until released or lapsed.",
	Complexity: "O(log(N)) with N the slots",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       []Arg{argKey, argLimit, argTTL, argID, argMS},
	State:      KindZset,
	Handler:    func(c *Call) ErrorCode { return leaseKind.run(c, &c.scratch.rooms[0].lease, optMS) },
}

var leaseKind = clauseKind{
	keyword: "LEASE",
	summary: "GO.LEASE's slots.",
	args:    []Arg{argLimit, argTTL, argID, argShare},
	words:   3,
	state:   KindZset,
	renews:  true,
	option:  optShare,
}

// leaseLimiter decides about slots, which are members of a sorted set.
type leaseLimiter struct {
	funnel.LeaseParams
	word  int32 // the index in Args of the id
	key   int
	state funnel.LeaseState
	v     funnel.LeaseVerdict

	lapsed, numLapsed int32 // Entries[lapsed:][:numLapsed] are lapsed leases, the oldest first
}

// parse reads limit, ttl and id.
func (l *leaseLimiter) parse(args []string, r *request) (limit int64, err ErrorCode) {
	if l.Limit, err = limitArg(args[r.first]); err != NoError {
		return 0, err
	}
	ttl, err := timeArg(args[r.first+1], r.unit, 1, ErrTTLNotTime, ErrTTLRange)
	l.TTL, l.word = ttl.Micros(), r.first+2
	if err == NoError && len(args[l.word]) > maxIDLen {
		return 0, ErrIDTooLong
	}
	if err == NoError && r.opts&operands != 0 {
		err = r.readOperands(args)
	}
	return l.Limit, err
}

// judge decides for one slot. A peek replies what is left if nothing is taken, for a caller that would get its slot.
func (l *leaseLimiter) judge(c *Call, quantity int64, _ bool) (_ *funnel.Verdict, err ErrorCode) {
	if quantity == 0 {
		l.v.Remaining = max(l.Limit-l.state.Used, 0)
		l.v.ResetAfter = max(max(l.state.Latest, l.state.Own)-c.Now, 0).Nanos()
		return &l.v.Verdict, NoError
	}
	if l.v = funnel.Lease(c.Now, l.state, l.LeaseParams); l.v.Await > 0 {
		var lapse funnel.Micros
		lapse, err = l.findLapse(c)
		l.v.RetryAfter = (lapse - c.Now).Nanos()
	}
	return &l.v.Verdict, err
}

func (l *leaseLimiter) use(*Call) (used, left int64, last funnel.Micros) {
	return l.state.Used, max(l.Limit-l.state.Used, 0), max(l.state.Latest, l.state.Own)
}

// later counts slots as held, up to the last lapse, if the server does not count.
func (l *leaseLimiter) later(c *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode) {
	used, _, last := l.use(c)
	k := &c.Keys[l.key]
	keep := len(k.Entries)
	if at >= last || !c.Host().First(c, l.key, at) {
		return 0, 0, NoError
	}
	next, err = k.Entries[keep].Time, checkLease(&k.Entries[keep])
	if c.Host().Release(c, l.key, keep); err != NoError || at == c.Now {
		return used, next, err
	}
	n, err := c.Host().CountAfter(c, l.key, at)
	if n >= 0 {
		used = n
	}
	return used, next, err
}

// findLapse returns when the verdict's Await-th slot lapses. If the server does not find it, or if slots
// count as held that have lapsed, that isn't later than the latest lapse.
func (l *leaseLimiter) findLapse(c *Call) (_ funnel.Micros, err ErrorCode) {
	k := &c.Keys[l.key]
	i := len(k.Entries)
	found := false
	if l.v.Await == 1 {
		found = c.Host().First(c, l.key, c.Now)
	} else {
		found, err = c.Host().Rank(c, l.key, l.state.Used-l.v.Await)
	}
	if !found {
		return l.state.Latest, err
	}
	if err := checkLease(&k.Entries[i]); err != NoError || k.Entries[i].Time <= c.Now {
		return l.state.Latest, err
	}
	return k.Entries[i].Time, NoError
}

// load finds the state of the leases at a key: the caller's own lease, the lease that
// lapses last, and how many are held.
func (l *leaseLimiter) load(c *Call, key, _ int) ErrorCode {
	l.key, l.state, l.numLapsed = key, funnel.LeaseState{}, 0
	if err := c.Keys[key].checkZset(); err != NoError || c.Keys[key].Kind == KindAbsent {
		return err
	}
	k, id := &c.Keys[key], c.Args[l.word]
	i := len(k.Entries)
	if c.Host().Find(c, key, leasePrefix, id) {
		if err := checkLease(&k.Entries[i]); err != NoError {
			return err
		}
		if k.Entries[i].Time > c.Now {
			l.state.Own = k.Entries[i].Time
		}
	}
	// One of the two newest leases is not the caller's.
	i = len(k.Entries)
	c.Host().Newest(c, key, 2)
	for ; i < len(k.Entries); i++ {
		e := &k.Entries[i]
		if err := checkLease(e); err != NoError {
			return err
		}
		if e.Member[1:] != id {
			if e.Time > c.Now {
				l.state.Latest = e.Time
			}
			break
		}
	}
	return l.countLeases(c)
}

// countLeases finds up to clearMost lapsed leases, and counts the leases that are held. If the server
// does not count, further lapsed leases count as held: a limiter must not admit too much.
func (l *leaseLimiter) countLeases(c *Call) ErrorCode {
	k := &c.Keys[l.key]
	first := len(k.Entries)
	c.Host().Oldest(c, l.key, c.Now, clearMost)
	l.lapsed, l.numLapsed = int32(first), int32(len(k.Entries)-first)
	for i := first; i < len(k.Entries); i++ {
		if err := checkLease(&k.Entries[i]); err != NoError {
			return err
		}
	}
	l.state.Used = k.Length - int64(l.numLapsed)
	if l.state.Latest == 0 { // nobody else holds a slot
		l.state.Used = boolInt(l.state.Own != 0)
	} else if l.numLapsed == clearMost {
		n, err := c.Host().CountAfter(c, l.key, c.Now)
		if n >= 0 {
			l.state.Used = n
		}
		return err
	}
	return NoError
}

// apply removes lapsed leases and, unless the call is denied, adds or renews the caller's lease.
func (l *leaseLimiter) apply(c *Call, denied bool) ErrorCode {
	k := &c.Keys[l.key]
	for i := range l.numLapsed {
		e := &k.Entries[l.lapsed+i]
		if !denied && e.Member[1:] == c.Args[l.word] {
			continue // about to be renewed
		}
		e.Drop, k.Becomes = 1, Zset
	}
	if !denied {
		k.Becomes = Zset
		k.AddPrefix, k.AddWord, k.AddTime = leasePrefix, l.word, l.v.Lapse
		k.expire(max(l.state.Latest, l.v.Lapse).Nanos(), l.TTL.Nanos())
	}
	return NoError
}

// checkLease makes sure that an entry is a lease.
func checkLease(e *Entry) ErrorCode {
	if e.Bad != 0 || e.Member == "" || e.Member[0] != leasePrefix || len(e.Member) > MaxMemberLen {
		return ErrForeignLeases
	}
	return NoError
}

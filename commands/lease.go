package commands

import (
	"fmt"

	"gothrottle/funnel"
)

// Leases are a sorted set. A member is leasePrefix and the holder's id; its time is when the lease lapses. Other
// members count the slots of leases of several: see slots.go.
const leasePrefix = '\x02'

// maxIDLen bounds the bytes of an id.
const maxIDLen = 512

// MaxMemberLen bounds the bytes of a member of ours: a prefix and an id. A member of a sliding window is shorter.
const MaxMemberLen = 1 + maxIDLen

var (
	idBounds = fmt.Sprintf("at most %d bytes", maxIDLen)
	argTTL   = Arg{Name: "ttl", Type: ArgString, Bounds: spanBounds, Summary: "How long the slots are held: a time."}
	argID    = Arg{Name: "id", Type: ArgString, Bounds: idBounds, Summary: "Who holds the slots."}
	argSlots = Arg{Name: "slots", Type: ArgInteger, Optional: true, Bounds: fmt.Sprintf("0 to %d", maxLimit),
		Summary: "How many slots a new id takes, 1 if not given; 0 only renews."}
)

var lease = Command{
	Name:       "GO.LEASE",
	Summary:    "Takes or renews some of a number of slots, held until released or lapsed.",
	Complexity: "O(log(N)) with N the slots",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       []Arg{argKey, argLimit, argTTL, argID, argSlots, argMS},
	State:      KindZset,
	Handler: func(c *Call) ErrorCode {
		c.scratch.toClear = maxLapsed
		return leaseKind.run(c, &c.scratch.rooms[0].lease, optMS)
	},
}

var leaseKind = clauseKind{
	keyword: "LEASE",
	summary: "GO.LEASE's slots.",
	args:    []Arg{argLimit, argTTL, argID, argSlots, argShare},
	words:   3,
	state:   KindZset,
	renews:  true,
	option:  optShare,
}

// leaseLimiter decides about slots, which are members of a sorted set.
type leaseLimiter struct {
	funnel.LeaseParams
	word  int32 // the index in Args of the id
	frees bool  // the call gives the slots back: see releaseLimiter
	key   int
	v     funnel.LeaseVerdict
	leases
}

// leases is what a key holds.
type leases struct {
	state             funnel.LeaseState
	lapsed, numLapsed int32 // Entries[lapsed:][:numLapsed] are lapsed leases, the oldest first
	rest              bool  // further leases have lapsed

	slots
	counted   int32 // so many entries after the lapsed ones count their slots
	own       int64 // the slots that the id holds, or that have lapsed; 0: none
	ownAt     int   // the index in Entries of the member that counts them; 0: none
	ownGoes   bool  // they have lapsed and are among the lapsed ones
	numLapses int   // of lapses; 0: not known
}

// parse reads limit, ttl, id and slots. A call for 0 slots has the quantity -1: it takes nothing, but differs from a
// peek.
func (l *leaseLimiter) parse(args []string, r *request) (limit int64, err ErrorCode) {
	if l.Limit, err = limitArg(args[r.first]); err != NoError {
		return 0, err
	}
	ttl, err := timeArg(args[r.first+1], r.unit, 1, ErrTTLNotTime, ErrTTLRange)
	l.TTL, l.word, l.Slots = ttl.Micros(), r.first+2, 1
	if err == NoError && len(args[l.word]) > maxIDLen {
		return 0, ErrIDTooLong
	}
	if err == NoError && r.quantityWord > 0 {
		l.Slots, err = intArg(args[r.quantityWord], 0, maxLimit, ErrSlotsNotInteger, ErrSlotsRange)
		if r.quantity = l.Slots; l.Slots == 0 {
			r.quantity = -1
		}
	}
	if err == NoError && r.opts&operands != 0 {
		err = r.readOperands(args)
	}
	return l.Limit, err
}

// judge decides for the slots. A peek replies what is left if nothing is taken, for a caller that would get its slots.
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

// lost reports whether no wait helps a call, because the id holds nothing.
func (l *leaseLimiter) lost() bool { return l.state.Own == 0 && (l.frees || l.Slots == 0) }

func (l *leaseLimiter) use(c *Call) (used, left int64, last funnel.Micros) {
	if last = max(l.state.Latest, l.state.Own); l.rest && l.several {
		last = max(last, c.Now+1) // see lapses
	}
	return l.state.Used, max(l.Limit-l.state.Used, 0), last
}

// later counts slots as held, up to the last lapse, if the server does not count.
func (l *leaseLimiter) later(c *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode) {
	used, _, last := l.use(c)
	k := &c.Keys[l.key]
	keep := len(k.Entries)
	switch {
	case at >= last:
		return 0, 0, NoError
	case l.several:
		return l.laterSlots(c, at)
	case !c.Host().First(c, l.key, at):
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
	if l.several {
		all, err := l.lapses(c)
		for i := range all {
			if all[i].used <= l.state.Used-l.v.Await {
				return all[i].at, err
			}
		}
		return l.state.Latest, err
	}
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
	l.key, l.leases = key, leases{}
	if err := c.Keys[key].checkZset(); err != NoError || c.Keys[key].Kind == KindAbsent {
		return err
	}
	k, id := &c.Keys[key], c.Args[l.word]
	i := len(k.Entries)
	if c.Host().Find(c, key, leasePrefix, id) {
		if err := checkLease(&k.Entries[i]); err != NoError {
			return err
		}
		if l.own = 1; k.Entries[i].Time > c.Now {
			l.state.Own = k.Entries[i].Time
		}
	}
	// One of the two newest leases is not the caller's.
	i = len(k.Entries)
	c.Host().Newest(c, key, 2)
	for ; i < len(k.Entries) && !k.Entries[i].counts(); i++ {
		e := &k.Entries[i]
		if err := checkLease(e); err != NoError {
			return err
		}
		if e.id() != id {
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
	first, most := len(k.Entries), max(min(clearMost, c.scratch.toClear), 1)
	c.Host().Oldest(c, l.key, NoTime, c.Now, most)
	if len(k.Entries) > first && k.Entries[first].counts() {
		return l.weigh(c) // some have several slots
	}
	for i := first; i < len(k.Entries); i++ {
		if err := checkLease(&k.Entries[i]); err != NoError {
			return err
		}
	}
	lapsed := len(k.Entries) - first
	l.lapsed, l.numLapsed = int32(first), int32(min(lapsed, c.scratch.toClear))
	c.scratch.toClear -= int(l.numLapsed)
	l.rest = lapsed == most
	l.state.Used = k.Length - int64(lapsed)
	if l.state.Latest == 0 { // nobody else holds a slot
		l.state.Used = boolInt(l.state.Own != 0)
	} else if l.rest {
		n, err := c.Host().CountAfter(c, l.key, c.Now)
		if n >= 0 {
			l.state.Used = n
		}
		return err
	}
	return NoError
}

// apply removes lapsed leases and, unless the call is denied, adds, renews or gives back the caller's lease.
func (l *leaseLimiter) apply(c *Call, denied bool) ErrorCode {
	k := &c.Keys[l.key]
	takes := !denied && !l.frees
	for i := range l.numLapsed {
		e := &k.Entries[l.lapsed+i]
		if takes && e.id() == c.Args[l.word] {
			continue // about to be renewed
		}
		e.Drop, k.Becomes = 1, Zset
	}
	switch {
	case takes:
		k.Becomes = Zset
		k.AddPrefix, k.AddWord, k.AddTime = leasePrefix, l.word, l.v.Lapse
		k.expire(max(l.state.Latest, l.v.Lapse).Nanos(), l.TTL.Nanos())
	case !denied:
		k.Entries[0].Drop, k.Becomes = 1, Zset // what load has found first
		if l.state.Latest != 0 || l.rest {
			k.expireLeases(c, l.state.Latest)
		}
	}
	if l.several || takes && l.Slots > 1 && !l.v.Renewed {
		l.applySlots(c, denied)
	}
	return NoError
}

// expireLeases makes a key expire after the latest of the leases that stay after a release. All may have lapsed.
func (k *Key) expireLeases(c *Call, latest funnel.Micros) {
	latest = max(latest, c.Now)
	k.expire(latest.Nanos(), (latest - c.Now).Nanos())
}

// checkLease makes sure that an entry is a lease.
func checkLease(e *Entry) ErrorCode {
	if e.Bad != 0 || e.Time < 0 || e.Member == "" || e.Member[0] != leasePrefix || len(e.Member) > MaxMemberLen {
		return ErrForeignLeases
	}
	return NoError
}

// id returns the id of a lease.
func (e *Entry) id() string { return e.Member[1:] }

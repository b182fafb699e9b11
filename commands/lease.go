package commands

import "gothrottle/funnel"

// Leases are a sorted set. A member is leasePrefix and the holder's id; its time is when the
// lease lapses.
const leasePrefix = '\x02'

// maxIDLen bounds the bytes of an id.
const maxIDLen = 512

// MaxMemberLen bounds the bytes of a member of ours: a prefix and an id. A member of a sliding
// window is shorter.
const MaxMemberLen = 1 + maxIDLen

var lease = Command{
	Name:       "GO.LEASE",
	Summary:    "Takes or renews one of a number of slots, held until released or lapsed.",
	Complexity: "O(log(N)) with N the slots",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -5,
	Args:       []Arg{argKey, argLimit, argTTL, argID, argMS},
	State:      KindZset,
	Handler:    runLease,
	Sample:     Sample{"GO.LEASE KEY 16 3600 id", "[0 16 15 -1 3600 0]", "[0 16 15 -1 3600 1]", "ZADD"},
	Wrong: []WrongCall{
		{"GO.LEASE KEY 1 0 a", ErrTTLRangeSeconds},
		{"GO.LEASE KEY 1 60 a UPTO", ErrUnknownOption},
	},
}

var leaseRO = lease.readOnly("Tells what GO.LEASE would reply; changes nothing.")

func runLease(c *Call) ErrorCode {
	opts, _, err := c.options(4, optMS)
	if err != NoError {
		return err
	}
	var l leaseClause
	if err := l.parse(c, 1, opts.unit()); err != NoError {
		return err
	}
	if err := l.decide(c, 0); err != NoError {
		return err
	}
	l.apply(c, 0, !l.v.Limited)
	c.count(true, l.v.Limited)
	c.Replies = 6
	l.reply(&c.Reply, opts.unit())
	return NoError
}

// leaseClause is a LEASE clause, or a GO.LEASE call: what its words say, and its decision.
type leaseClause struct {
	funnel.LeaseParams
	word  int32 // the index in Args of the id
	state funnel.LeaseState
	v     funnel.LeaseVerdict

	lapsed, numLapsed int32 // Entries[lapsed:][:numLapsed] are lapsed leases, the oldest first
}

// parse reads limit, ttl and id at Args[at].
func (l *leaseClause) parse(c *Call, at int, unit funnel.Nanos) (err ErrorCode) {
	if l.Limit, err = limitArg(c.Args[at]); err != NoError {
		return err
	}
	ttl, err := spanArg(c.Args[at+1], unit, ErrTTLNotInteger, ErrTTLRangeSeconds, ErrTTLRangeMillis)
	l.TTL, l.word = ttl.Micros(), int32(at+2)
	if err == NoError && len(c.Args[at+2]) > maxIDLen {
		return ErrIDTooLong
	}
	return err
}

// decide loads what the key holds and decides; nothing changes yet.
func (l *leaseClause) decide(c *Call, key int) ErrorCode {
	if err := l.load(c, key); err != NoError {
		return err
	}
	l.v = funnel.Lease(c.Now, l.state, l.LeaseParams)
	if l.v.Await == 0 {
		return NoError
	}
	lapse, err := l.findLapse(c, key)
	l.v.RetryAfter = (lapse - c.Now).Nanos()
	return err
}

// findLapse returns when the verdict's Await-th slot lapses. If the server does not find it, or if slots
// count as held that have lapsed, that is no later than the latest lapse.
func (l *leaseClause) findLapse(c *Call, key int) (funnel.Micros, ErrorCode) {
	k := &c.Keys[key]
	i := len(k.Entries)
	found := false
	if l.v.Await == 1 {
		found = TheHost.First(c, key, c.Now)
	} else {
		found = TheHost.Rank(c, key, l.state.Used-l.v.Await)
	}
	if !found {
		return l.state.Latest, NoError
	}
	if err := checkLease(&k.Entries[i]); err != NoError || k.Entries[i].Time <= c.Now {
		return l.state.Latest, err
	}
	return k.Entries[i].Time, NoError
}

// load finds the state of the leases at a key: the caller's own lease, the lease that
// lapses last, and how many are held.
func (l *leaseClause) load(c *Call, key int) ErrorCode {
	l.state, l.numLapsed = funnel.LeaseState{}, 0
	if err := c.checkLeases(key); err != NoError || c.Keys[key].Kind == KindAbsent {
		return err
	}
	k, id := &c.Keys[key], c.Args[l.word]
	i := len(k.Entries)
	if TheHost.Find(c, key, leasePrefix, id) {
		if err := checkLease(&k.Entries[i]); err != NoError {
			return err
		}
		if k.Entries[i].Time > c.Now {
			l.state.Own = k.Entries[i].Time
		}
	}
	// One of the two newest leases is not the caller's.
	i = len(k.Entries)
	TheHost.Newest(c, key, 2)
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
	return l.countLeases(c, key)
}

// countLeases finds up to clearMost lapsed leases, and counts the leases that are held. If the server
// does not count, further lapsed leases count as held: a limiter must not admit too much.
func (l *leaseClause) countLeases(c *Call, key int) ErrorCode {
	k := &c.Keys[key]
	first := len(k.Entries)
	TheHost.Oldest(c, key, c.Now, clearMost)
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
		if n := TheHost.CountAfter(c, key, c.Now); n >= 0 {
			l.state.Used = n
		}
	}
	return NoError
}

// apply says what becomes of the key: lapsed leases are removed and, if take is set, the
// caller's lease is added or renewed.
func (l *leaseClause) apply(c *Call, key int, take bool) {
	k := &c.Keys[key]
	for i := range l.numLapsed {
		e := &k.Entries[l.lapsed+i]
		if take && e.Member[1:] == c.Args[l.word] {
			continue // about to be renewed
		}
		e.Drop, k.Becomes = 1, Zset
	}
	if take {
		k.Becomes = Zset
		k.AddPrefix, k.AddWord, k.AddTime = leasePrefix, l.word, l.v.Lapse
		k.expire(max(l.state.Latest, l.v.Lapse).Nanos(), l.TTL.Nanos())
	}
}

// peek changes the verdict of a clause that admits to what is left when another clause denies and
// nothing is taken.
func (l *leaseClause) peek(c *Call) {
	last := max(l.state.Latest, l.state.Own)
	l.v.Remaining = max(l.Limit-l.state.Used, 0)
	l.v.ResetAfter = max(last-c.Now, 0).Nanos()
}

// reply writes the six integers.
func (l *leaseClause) reply(r *[6]int64, unit funnel.Nanos) {
	putReply(r, &l.v.Verdict, l.Limit, unit)
	r[5] = boolInt(l.v.Renewed)
}

// checkLeases checks the type of a key. Each caller checks the leases that it reads.
func (c *Call) checkLeases(key int) ErrorCode {
	switch c.Keys[key].Kind {
	case KindAbsent, KindZset:
		return NoError
	}
	return ErrWrongType
}

// checkLease makes sure that an entry is a lease.
func checkLease(e *Entry) ErrorCode {
	if e.Bad != 0 || e.Member == "" || e.Member[0] != leasePrefix || len(e.Member) > MaxMemberLen {
		return ErrForeignLeases
	}
	return NoError
}

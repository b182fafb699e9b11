package commands

import "gothrottle/funnel"

type clauseKind int8

const (
	noClause clauseKind = iota
	throttleKind
	windowKind
	quotaKind
	leaseKind
)

// clauseForms tells the form of each kind of clause.
var clauseForms = [...]struct {
	keyword string
	words   int  // how many words must follow the keyword
	state   Kind // what the key holds
	period  int  // which of the words is the period, from 0; unused for a lease
}{
	throttleKind: {"THROTTLE", 3, KindHash, 2},
	windowKind:   {"WINDOW", 2, KindZset, 1},
	quotaKind:    {"QUOTA", 2, KindString, 1},
	leaseKind:    {"LEASE", 3, KindZset, 0},
}

func findClause(word string) clauseKind {
	for kind := throttleKind; kind <= leaseKind; kind++ {
		if isWord(word, clauseForms[kind].keyword) {
			return kind
		}
	}
	return noClause
}

// Clause is one limit of a GO.ALL call.
type Clause struct {
	// Set by the Plan and the handler.
	Key     int32 // index in Call.Keys
	Replies int32 // how many of Reply are sent
	Reply   [6]int64

	clauseWords
	limit    int64 // the limit of the reply
	cell     int32 // a THROTTLE clause's position among the cells of its key
	shadow   bool  // of the first clause: the call's policy is a SHADOW
	throttle struct {
		throttleClause
		next funnel.ThrottleState
		v    funnel.Verdict
	}
	window windowClause
	quota  quotaClause
	lease  leaseClause
}

// clauseWords says where the words of a clause are: indexes in Call.Args.
type clauseWords struct {
	kind     clauseKind
	opts     option
	first    int32 // the word after the keyword
	quantity int32 // 0: not given
	align    int32 // the word after ALIGN
}

// parse reads the words of a clause.
func (cl *Clause) parse(c *Call) (err ErrorCode) {
	unit, at := cl.opts.unit(), int(cl.first)
	if cl.kind == leaseKind {
		err = cl.lease.parse(c, at, unit)
		cl.limit = cl.lease.Limit
		return err
	}
	r := request{quantity: 1, opts: cl.opts}
	if cl.quantity > 0 {
		if r.quantity, err = quantityArg(c.Args[cl.quantity]); err != NoError {
			return err
		}
	}
	if r.period, err = periodArg(c.Args[at+clauseForms[cl.kind].period], unit); err != NoError {
		return err
	}
	switch cl.kind {
	case throttleKind:
		err = cl.throttle.parse(c.Args[at], c.Args[at+1], &r)
		cl.limit = cl.throttle.Limit
	case windowKind:
		err = cl.window.parse(c.Args[at], &r)
		cl.limit = cl.window.Limit
	case quotaKind:
		if cl.align > 0 {
			if r.offset, err = offsetArg(c.Args[cl.align], unit); err != NoError {
				return err
			}
		}
		err = cl.quota.parse(c.Args[at], &r)
		cl.limit = cl.quota.Limit
	}
	return err
}

// asks reports whether a clause asks for units.
func (cl *Clause) asks() bool {
	switch cl.kind {
	case throttleKind:
		return cl.throttle.Quantity > 0
	case windowKind:
		return cl.window.Quantity > 0
	case quotaKind:
		return cl.quota.Quantity > 0
	}
	return true
}

// decide decides for one clause alone and writes its reply; nothing changes yet.
func (cl *Clause) decide(c *Call) (err ErrorCode) {
	switch key := int(cl.Key); cl.kind {
	case throttleKind:
		k := &c.Keys[key]
		if cl.cell == 0 {
			if err = c.loadCells(k); err != NoError {
				return err
			}
		}
		t := &cl.throttle
		t.next, t.v = funnel.Throttle(c.Now.Nanos(), c.cells(k)[cl.cell].state, &t.ThrottleParams)
		if t.v.TooMuch {
			err = ErrDebtTooLong
		}
	case windowKind:
		err = cl.window.decide(c, key)
	case quotaKind:
		err = cl.quota.decide(c, key)
	case leaseKind:
		err = cl.lease.decide(c, key)
	}
	cl.reply()
	return err
}

// verdict returns the decision of a clause.
func (cl *Clause) verdict() *funnel.Verdict {
	switch cl.kind {
	case throttleKind:
		return &cl.throttle.v
	case windowKind:
		return &cl.window.v.Verdict
	case quotaKind:
		return &cl.quota.v
	}
	return &cl.lease.v.Verdict
}

// reply writes the reply of a clause: that of its own command.
func (cl *Clause) reply() {
	putReply(&cl.Reply, cl.verdict(), cl.limit, cl.opts.unit())
	cl.Replies = 5
	if cl.kind == leaseKind {
		cl.Replies, cl.Reply[5] = 6, boolInt(cl.lease.v.Renewed)
	}
}

// apply says what becomes of the clause's key. If the call is limited, nothing is taken, and a
// clause that admits replies what it has left.
func (cl *Clause) apply(c *Call, limited bool) ErrorCode {
	key := int(cl.Key)
	if limited && cl.kind == leaseKind {
		cl.lease.apply(c, key, false) // lapsed leases are removed all the same
	}
	if limited && cl.Reply[0] == 0 {
		cl.peek(c)
		return NoError
	}
	switch cl.kind {
	case throttleKind: // also a denied one whose rate changed, or that begins a lockout: see funnel.Throttle
		if t := &cl.throttle; t.v.Change != funnel.Keep {
			k := &c.Keys[key]
			k.setCell(&c.cells(k)[cl.cell], &t.next, t.slackBase())
		}
	case windowKind:
		return cl.window.apply(c, key)
	case quotaKind:
		cl.quota.apply(c, key)
	case leaseKind:
		if !limited {
			cl.lease.apply(c, key, true)
		}
	}
	return NoError
}

// peek writes the reply of a clause that admits in a call that is denied: what it has left, since nothing is taken.
func (cl *Clause) peek(c *Call) {
	switch cl.kind {
	case throttleKind:
		t, k := &cl.throttle, &c.Keys[cl.Key]
		t.Quantity = 0
		t.next, t.v = funnel.Throttle(c.Now.Nanos(), c.cells(k)[cl.cell].state, &t.ThrottleParams)
	case windowKind:
		cl.window.peek(c)
	case quotaKind:
		cl.quota.peek(c)
	case leaseKind:
		cl.lease.peek(c)
	}
	// The clause admits, so its reply says so. A peek would be limited while more than the limit is in use.
	v := cl.verdict()
	v.Limited, v.RetryAfter = false, 0
	cl.reply()
}

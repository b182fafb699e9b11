package commands

import "gothrottle/funnel"

// room holds a limiter of each kind.
type room struct {
	throttle throttleLimiter
	window   windowLimiter
	quota    quotaLimiter
	lease    leaseLimiter
	release  releaseLimiter
}

// clauseKinds has a row for each kind: where a room has its limiter.
var clauseKinds = [...]struct {
	*clauseKind
	in func(*room) limiter
}{
	{&throttleKind, func(r *room) limiter { return &r.throttle }},
	{&windowKind, func(r *room) limiter { return &r.window }},
	{&quotaKind, func(r *room) limiter { return &r.quota }},
	{&leaseKind, func(r *room) limiter { return &r.lease }},
	{&releaseKind, func(r *room) limiter { return &r.release }},
}

// noClause is the kind of a word that begins no clause.
const noClause = -1

// findClause returns the kind of clause that a keyword begins: an index in clauseKinds.
func findClause(word string) int {
	for i, kind := range clauseKinds {
		if isWord(word, kind.keyword) {
			return i
		}
	}
	return noClause
}

// keywords lists kinds as an error text does.
func keywords(listed func(*clauseKind) bool) string {
	var words []string
	for _, kind := range clauseKinds {
		if listed(kind.clauseKind) {
			words = append(words, kind.keyword)
		}
	}
	return inWords(words, "or")
}

// limit is the limit of one clause of the running call.
type limit struct {
	limiter
	clause   int   // index in Call.Clauses
	most     int64 // how many units fit
	quantity int64
	weight   int64 // of SHARE
	shares   int   // with SHARE: how many clauses before this one have what it shares; else 0

	used, left int64 // before the call, of a tenant and of what it shares; used is of tenants only
	short      bool  // the share denies
	holds      bool  // of a LEASE clause: it shares units
	held       bool  // of the clauses that have them
}

// limits returns those of the call's clauses.
func (c *Call) limits() []limit { return c.scratch.limits[:len(c.Clauses)] }

// reply writes the reply of a clause: that of its own command.
func (l *limit) reply(c *Call, v *funnel.Verdict) {
	cl := &c.Clauses[l.clause]
	kind := clauseKinds[cl.kind]
	if kind.frees() {
		l.most = -v.Granted
	}
	cl.Replies = kind.reply(&cl.Reply, v, l.most, cl.opts)
}

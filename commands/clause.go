package commands

import (
	"strings"

	"gothrottle/funnel"
)

// limiter is one limit of the running call: what its words say, what its key holds, and the decision.
type limiter interface {
	// parse reads the words from args[r.first] on, from left to right; request.read reads those from the period on. It
	// returns the limit.
	parse(args []string, r *request) (limit int64, err ErrorCode)
	// load reads what the key holds. cell is the clause's position among those of its key.
	load(c *Call, key, cell int) ErrorCode
	// judge decides for a quantity; 0 peeks. Nothing changes yet. No lockout begins unless mayLock.
	judge(c *Call, quantity int64, mayLock bool) (*funnel.Verdict, ErrorCode)
	// use returns the units in use and left before the call, and when the last ones lapse, if the limiter is a tenant.
	use(c *Call) (used, left int64, last funnel.Micros)
	// apply says what becomes of the key after judge. If the whole call is denied, nothing is taken.
	apply(c *Call, denied bool) ErrorCode
}

// clauseKind is a kind of limiter. Another kind needs a file with a limiter and a row, and a line
// in room and in clauseKinds.
type clauseKind struct {
	keyword string
	summary string
	args    []Arg
	words   int    // how many words must follow the keyword: the first ones of args
	state   Kind   // what the key holds
	cells   bool   // clauses of this kind can share a key: each has a cell of its own
	units   bool   // the last of the words is a period, and a quantity may follow; FORCE and policies are for such kinds
	renews  bool   // a sixth integer says whether the slot was held already
	option  option // those that may follow
	in      func(*room) limiter
}

// room holds a limiter of each kind.
type room struct {
	throttle throttleLimiter
	window   windowLimiter
	quota    quotaLimiter
	lease    leaseLimiter
}

var clauseKinds = [...]*clauseKind{&throttleKind, &windowKind, &quotaKind, &leaseKind}

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

// findClause returns the kind of clause that begins at Args[i]; noClause if there is no such word.
func (c *Call) findClause(i int) int {
	if i == len(c.Args) {
		return noClause
	}
	return findClause(c.Args[i])
}

// keywords lists kinds as an error text does.
func keywords(listed func(*clauseKind) bool) string {
	var words []string
	for _, kind := range clauseKinds {
		if listed(kind) {
			words = append(words, kind.keyword)
		}
	}
	return inWords(words, "or")
}

// inWords writes a list: "a, b and c".
func inWords(words []string, and string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}

// run runs a call of one limiter, which is at the first word.
func (kind *clauseKind) run(c *Call, allowed option) ErrorCode {
	r := c.newRequest(&clauseWords{first: 1, period: int32(kind.words)})
	r.redisCell = allowed == redisCellWords
	wrong := NoError
	if rest := 1 + kind.words; rest < len(c.Args) {
		wrong = c.lastWords(kind, rest, allowed, r)
	}
	l := kind.in(&c.scratch.rooms[0])
	limit, err := l.parse(c.Args, r)
	switch {
	case err != NoError && !lacksALIGN(err, wrong): // the words from the left are judged first
		return c.noTime(err, &r.clauseWords)
	case wrong != NoError:
		return wrong
	}
	if err := l.load(c, 0, 0); err != NoError {
		return err
	}
	v, err := l.judge(c, r.quantity, true)
	if err != NoError {
		return err
	}
	if err := l.apply(c, v.Limited); err != NoError {
		return err
	}
	if k := &c.Keys[0]; k.Becomes == Hash {
		c.settleCells(k)
	}
	c.count(r.quantity > 0 && r.opts&optRaise == 0, v.Limited)
	c.Replies = kind.reply(&c.Reply, v, limit, r.opts)
	return NoError
}

// lastWords finds a quantity and options from Args[rest] to the end.
func (c *Call) lastWords(kind *clauseKind, rest int, allowed option, r *request) ErrorCode {
	next, err := c.words(kind, rest, allowed, &r.clauseWords)
	switch {
	case err != NoError || next == len(c.Args):
	case kind.units && looksNumeric(c.Args[next]):
		err = c.fail(ErrQuantityLate, next)
	default:
		err = c.unknown(allowed, next)
	}
	if err != NoError && c.saysMS(rest) {
		r.opts |= optMS
	}
	r.unit = r.opts.unit()
	return err
}

// lacksALIGN reports whether a limiter lacks the option ALIGN, and another error says that a word is wrong where ALIGN may be,
// or before it.
func lacksALIGN(err, wrong ErrorCode) bool { return err == ErrMonthsWithoutAlign && wrong != NoError }

// Clause is one of several limits of a call.
type Clause struct {
	// Set by the Plan and the handler.
	Key     int32 // index in Call.Keys
	Replies int32 // how many of Reply are sent
	Reply   [6]int64

	clauseWords
	cell     int32 // the position among the clauses of its key
	weight   int32 // of its share; 0: none
	limit    int64 // the limit of the reply
	quantity int64
}

// parse reads the words of a clause.
func (cl *Clause) parse(c *Call, l limiter) (err ErrorCode) {
	r := c.newRequest(&cl.clauseWords)
	cl.limit, err = l.parse(c.Args, r)
	cl.quantity, cl.weight = r.quantity, int32(r.weight)
	return err
}

// decide decides for one clause, alone but for its share, and writes its reply; nothing changes yet.
func (c *Call) decide(i int, mayLock bool) ErrorCode {
	cl, l := &c.Clauses[i], c.scratch.limiters[i]
	if err := l.load(c, int(cl.Key), int(cl.cell)); err != NoError {
		return err
	}
	v, err := l.judge(c, cl.quantity, mayLock)
	if err != NoError {
		return err
	}
	if cl.reply(v); cl.weight > 0 {
		return c.share(i, v)
	}
	return NoError
}

// reply writes the reply of a clause: that of its own command.
func (cl *Clause) reply(v *funnel.Verdict) {
	cl.Replies = clauseKinds[cl.kind].reply(&cl.Reply, v, cl.limit, cl.opts)
}

// apply says what becomes of a clause's key. If the call is denied, nothing is taken, and a clause that admits replies
// what it has left.
func (c *Call) apply(i int, denied bool) ErrorCode {
	cl, l := &c.Clauses[i], c.scratch.limiters[i]
	if denied && cl.Reply[0] == 0 {
		v, err := l.judge(c, 0, false)
		if err != NoError {
			return err
		}
		// The clause admits, so its reply says so. A peek would be limited while more than the limit is in use.
		v.Limited, v.RetryAfter = false, 0
		cl.reply(v)
	}
	if denied && cl.weight > 0 {
		c.remains(i, 0)
	}
	return l.apply(c, denied)
}

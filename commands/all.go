package commands

import (
	"fmt"
	"hash/maphash"
	"math"
	"strings"
)

var all = Command{
	Name:       "GO.ALL",
	Summary:    "Takes units from several limiters of any kind, from all of them or from none.",
	Complexity: "O(N) with N the words and bytes of the call; at most 32 clauses",
	Since:      "0.1.0",
	Flags:      "write deny-oom",
	Arity:      -4,
	Args: []Arg{argKey, argClause,
		{Name: "further", Type: ArgBlock, Optional: true, Multiple: true, Summary: "Another key, with its clauses after it.",
			Sub: []Arg{{Name: "key", Token: "KEY", Type: ArgKey, Bounds: argKey.Bounds, Summary: argKey.Summary}, argClause}},
		argMS, argForceAll},
	Plan:    planAll,
	Handler: runAll,
}

var argClause = Arg{Name: "clause", Type: ArgOneOf, Multiple: true, Bounds: fmt.Sprintf("1 to %d in one call", MaxClauses),
	Summary: "A limiter's kind and its parameters.", Sub: clauseArgs()}

func clauseArgs() (args []Arg) {
	for _, kind := range clauseKinds {
		args = append(args, Arg{Name: strings.ToLower(kind.keyword), Type: ArgBlock, Token: kind.keyword,
			Summary: kind.summary, Sub: kind.args})
	}
	return args
}

// planAll finds the keys and the clauses in the words: before a call runs, and when the server
// asks for the keys of a call. It returns the error of the first wrong word.
func planAll(c *Call) ErrorCode {
	wrong := c.planWords()
	if wrong == NoError {
		return NoError
	}
	if c.saysMS(0) {
		for i := range c.Clauses {
			c.Clauses[i].opts |= optMS
		}
	}
	return c.parseClauses(wrong)
}

// parseClauses reads the words of the clauses. wrong is the error of a word after them, or NoError.
func (c *Call) parseClauses(wrong ErrorCode) ErrorCode {
	limits := c.limits()
	for i := range limits {
		cl, l := &c.Clauses[i], &limits[i]
		*l = limit{clause: i, limiter: clauseKinds[cl.kind].in(&c.scratch.rooms[i])}
		if cl.opts&optShare != 0 {
			l.shares = c.shared(i)
		}
		err := l.read(c, &cl.clauseWords)
		if err == NoError && l.shares > 0 {
			err = l.checkShare(c)
		}
		if err != NoError && !lacksALIGN(err, wrong) {
			c.ErrClause = int16(i) + 1
			return c.noTime(err, &cl.clauseWords)
		}
	}
	return wrong
}

// read reads the words of a clause.
func (l *limit) read(c *Call, w *clauseWords) (err ErrorCode) {
	r := c.newRequest(w.opts)
	r.clauseWords = *w
	l.most, err = l.parse(c.Args, r)
	l.quantity, l.weight = r.quantity, r.weight
	return err
}

// failClause returns an error of the clause at a position, from 0. It names Args[word].
func (c *Call) failClause(code ErrorCode, clause, word int) ErrorCode {
	c.ErrClause = int16(clause) + 1
	return c.fail(code, word)
}

func (c *Call) planWords() ErrorCode {
	i, err := c.planLimits(0)
	for err == NoError && i < len(c.Args) && isWord(c.Args[i], "KEY") {
		i, err = c.planLimits(i + 1)
	}
	if err != NoError {
		return err
	}
	var given clauseWords
	i, err = c.options(i, optMS|optForce, &given)
	opts := given.opts
	if err == NoError && i < len(c.Args) {
		return c.unknownInAll(opts, i)
	}
	for j := range c.Clauses {
		cl := &c.Clauses[j]
		switch {
		case opts&optForce == 0:
		case clauseKinds[cl.kind].renews:
			return ErrForceLease
		case cl.opts&optLockout != 0:
			return ErrForceLockout
		}
		cl.opts |= opts
	}
	return err
}

// unknownInAll returns the error of Args[at], a word after the clauses and some options.
func (c *Call) unknownInAll(opts option, at int) ErrorCode {
	word := c.Args[at]
	c.ErrWord = int32(at) + 1
	last := len(c.Clauses) - 1
	quantity := looksNumeric(word) && !clauseKinds[c.Clauses[last].kind].units
	switch o := findOption(word); {
	case opts == 0 && (quantity || o != 0 && o&(optUpTo|optReserve|optRaise) == 0):
		c.ErrClause = int16(last) + 1
		return ErrNotOptionOfClause
	case o&(optExact|optAlign|optLockout|optShare) != 0: // an option of clauses
		return ErrAfterOptions
	case o != 0:
		return ErrNotOptionOfAll
	case looksNumeric(word):
		return ErrQuantityLate
	case opts != 0:
		return ErrAfterOptions
	}
	return ErrBareKey
}

// planLimits adds the key Args[i] and its clauses. It returns the index of the word after them.
func (c *Call) planLimits(i int) (next int, err ErrorCode) {
	if i+1 >= len(c.Args) {
		return 0, ErrKeyWithoutClause
	}
	if err := c.planKey(i); err != NoError {
		return 0, err
	}
	for i++; i < len(c.Args); {
		kind := findClause(c.Args[i])
		if kind == noClause && c.Keys[len(c.Keys)-1].Wants == KindAbsent {
			return 0, c.fail(ErrUnknownClause, i)
		}
		if kind == noClause {
			break
		}
		if i, err = c.planClause(kind, i+1); err != NoError {
			return 0, err
		}
	}
	return i, NoError
}

// planKey adds Args[word] to the keys.
func (c *Call) planKey(word int) ErrorCode {
	name := c.Args[word]
	sum := checksum(name)
	for i := range c.Keys {
		if k := &c.Keys[i]; k.checksum == sum && c.Args[k.Word] == name {
			return ErrKeyRepeated
		}
	}
	n := len(c.Keys)
	if n == MaxClauses {
		return ErrTooManyClauses
	}
	c.Keys = c.Keys[:n+1]
	k := &c.Keys[n]
	k.Word, k.Wants, k.Asked, k.checksum = int32(word), KindAbsent, 0, sum
	return NoError
}

// checksum returns a number that equal names share. planKey compares two names only if their checksums are equal:
// comparing all pairs of long names would take too long. For a short name the length is enough.
func checksum(name string) uint64 {
	if len(name) < 256 {
		return uint64(len(name))
	}
	return maphash.String(checksumSeed, name)
}

var checksumSeed = maphash.MakeSeed()

// planClause adds the clause whose words begin at Args[i] to the last key. It returns the
// index of the word after the clause.
func (c *Call) planClause(index, i int) (next int, err ErrorCode) {
	kind, n := clauseKinds[index], len(c.Clauses)
	k := &c.Keys[len(c.Keys)-1]
	switch {
	case n == MaxClauses:
		return 0, ErrTooManyClauses
	case k.Wants != KindAbsent && (!kind.cells || k.Wants != kind.state):
		return 0, c.failClause(ErrKeyShared, n, i-1)
	case i+kind.words > len(c.Args):
		return 0, c.failClause(ErrClauseShort, n, i-1)
	}
	w := c.addClause(clauseWords{kind: int16(index), first: int32(i), period: int32(i+kind.words) - 1})
	allowed, misplaced := kind.option, c.misplacedShare()
	if misplaced != NoError {
		allowed &^= optShare
	}
	next, err = kind.further(c, i+kind.words, allowed, w)
	if err == NoError && misplaced != NoError && next < len(c.Args) && isWord(c.Args[next], "SHARE") {
		err = misplaced
	}
	if err != NoError {
		c.ErrClause = int16(n) + 1
	}
	return next, err
}

// addClause adds a clause to the last key. The rest of the clause is not cleared: parse and decide set it.
func (c *Call) addClause(w clauseWords) *clauseWords {
	n, last := len(c.Clauses), len(c.Keys)-1
	c.Clauses = c.Clauses[:n+1]
	cl, k, kind := &c.Clauses[n], &c.Keys[last], clauseKinds[w.kind]
	cl.Key, cl.clauseWords, cl.cell = int32(last), w, k.Asked
	k.Wants = kind.state
	if kind.cells {
		k.Asked++
	}
	return &cl.clauseWords
}

func runAll(c *Call) ErrorCode {
	if err := c.parseClauses(NoError); err != NoError {
		return err
	}
	return c.runClauses()
}

// runClauses decides by the limiters, whose words are read, and writes the reply.
func (c *Call) runClauses() ErrorCode {
	limits, asked, never, short := c.limits(), false, false, false
	c.scratch.toClear = maxLapsed
	for i := range limits {
		l := &limits[i]
		asked = asked || l.quantity > 0
		never = never || l.quantity > l.capacity(c)
		if !clauseKinds[c.Clauses[i].kind].units { // who holds nothing may never be admitted
			if err := l.find(c); err != NoError {
				return err
			}
			never = never || l.limiter.(interface{ lost() bool }).lost()
		}
	}
	for i := range limits { // a call that no limiter could ever admit begins no lockout
		if err := limits[i].decide(c, !never); err != NoError {
			return err
		}
		short = short || limits[i].short
	}
	if short {
		if err := c.waits(!never); err != NoError {
			return err
		}
	}
	decider := c.decider()
	denied := c.Clauses[decider].Reply[0] != 0
	for i := range limits {
		if err := limits[i].become(c, denied); err != NoError {
			return err
		}
	}
	for i := range c.Keys {
		if k := &c.Keys[i]; k.Becomes == Hash {
			c.settleCells(k)
		}
	}
	c.count(asked, denied)
	c.Shape, c.Replies = Nested, 6
	c.Reply = c.Clauses[decider].Reply
	c.Reply[5] = int64(decider)
	return NoError
}

// decide decides for one clause, alone but for its share, and writes its reply; nothing changes yet.
func (l *limit) decide(c *Call, mayLock bool) ErrorCode {
	if clauseKinds[c.Clauses[l.clause].kind].units { // slots are loaded
		if err := l.find(c); err != NoError {
			return err
		}
	}
	v, err := l.judge(c, l.quantity, mayLock)
	if err != NoError {
		return err
	}
	if l.reply(c, v); l.shares > 0 {
		return l.share(c, v)
	}
	return NoError
}

// find loads what the key of a clause holds.
func (l *limit) find(c *Call) ErrorCode {
	cl := &c.Clauses[l.clause]
	return l.load(c, int(cl.Key), int(cl.cell))
}

// become says what becomes of a clause's key. If the call is denied, nothing is taken, and a clause that admits replies
// what it has left.
func (l *limit) become(c *Call, denied bool) ErrorCode {
	if denied && c.Clauses[l.clause].Reply[0] == 0 {
		v, err := l.judge(c, 0, false)
		if err != NoError {
			return err
		}
		// The clause admits, so its reply says so. A peek would be limited while more than the limit is in use.
		v.Limited, v.RetryAfter = false, 0
		l.reply(c, v)
	}
	if denied && l.shares > 0 {
		l.remains(c, 0)
	}
	return l.apply(c, denied)
}

// decider returns the index of the clause that decides: of the limited clauses the one with
// the longest wait in its reply, where never is the longest; if none is limited, the clause with the
// least remaining, but RELEASE only if all are. Of equals it is the first.
func (c *Call) decider() (decider int) {
	longest, least := int64(-1), int64(math.MaxInt64)
	for i := range c.Clauses {
		r := &c.Clauses[i].Reply
		wait := r[3]
		if wait < 0 { // never
			wait = math.MaxInt64
		}
		switch {
		case r[0] != 0 && wait > longest:
			decider, longest = i, wait
		case longest < 0 && r[2] < least && !clauseKinds[c.Clauses[i].kind].frees():
			decider, least = i, r[2]
		}
	}
	return decider
}

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
	renews  bool   // a number of slots may follow; a sixth integer says whether they were held already
	option  option // those that may follow
}

// frees reports whether clauses of this kind give slots back.
func (kind *clauseKind) frees() bool { return !kind.units && !kind.renews }

// further finds a quantity, or slots, and options from Args[i] on. It returns the index of the word after them.
func (kind *clauseKind) further(c *Call, i int, allowed option, w *clauseWords) (next int, err ErrorCode) {
	redisCell := kind.units && allowed == redisCellWords
	if !kind.frees() && i < len(c.Args) && (redisCell || looksNumeric(c.Args[i])) {
		w.quantityWord = int32(i)
		i++
	}
	return c.options(i, allowed, w)
}

// run runs a call of one limiter, whose words begin after the key.
func (kind *clauseKind) run(c *Call, l limiter, allowed option) ErrorCode {
	r := c.newRequest(0)
	r.first, r.clauseWords.period, r.redisCell = 1, int32(kind.words), allowed == redisCellWords
	wrong := NoError
	if rest := 1 + kind.words; rest < len(c.Args) {
		wrong = kind.lastWords(c, rest, allowed, r)
	}
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
func (kind *clauseKind) lastWords(c *Call, rest int, allowed option, r *request) ErrorCode {
	next, err := kind.further(c, rest, allowed, &r.clauseWords)
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

// reply writes a verdict: five integers, and with UPTO, RESERVE or RAISE or of a slot a sixth. It returns how many.
func (kind *clauseKind) reply(r *[6]int64, v *funnel.Verdict, limit int64, opts option) int32 {
	unit := opts.unit()
	r[0], r[1], r[2] = boolInt(v.Limited), limit, v.Remaining
	r[3], r[4] = -1, inUnits(v.ResetAfter, unit) // -1: admitted, or the call never fits
	if v.RetryAfter > 0 {
		r[3] = inUnits(v.RetryAfter, unit)
	}
	if opts&(optUpTo|optReserve|optRaise) == 0 && !kind.renews {
		return 5
	}
	r[5] = sixth(v, opts)
	return 6
}

// sixth returns the integer that few replies have. It is not inlined: most calls need none of its code.
//
//go:noinline
func sixth(v *funnel.Verdict, opts option) int64 {
	switch {
	case opts&(optUpTo|optRaise) != 0:
		return v.Granted
	case opts&optReserve == 0:
		return boolInt(v.Renewed)
	case v.Limited:
		return -1 // no slot
	}
	return inUnits(v.Wait, opts.unit())
}

// needs lists the words that must follow the keyword.
func (kind *clauseKind) needs() string {
	names := make([]string, kind.words)
	for i := range names {
		names[i] = kind.args[i].Name
	}
	return inWords(names, "and")
}

// inWords writes a list: "a, b and c".
func inWords(words []string, and string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}

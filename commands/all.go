package commands

import (
	"fmt"
	"hash/maphash"
	"math"
)

// MaxClauses bounds the clauses of one call, and so its keys.
const MaxClauses = 32

var all = Command{
	Name:       "GO.ALL",
	Summary:    "Takes units from several limiters of any kind, from all of them or from none.",
	Complexity: "O(N) with N the words and bytes of the call; at most 32 clauses",
	Since:      "0.1.0",
	Flags:      "write deny-oom",
	Arity:      -5,
	Args: []Arg{argKey, argClause,
		{Name: "further", Type: ArgBlock, Optional: true, Multiple: true, Summary: "A further key, with its clauses after it.",
			Sub: []Arg{{Name: "key", Token: "KEY", Type: ArgKey, Bounds: argKey.Bounds, Summary: argKey.Summary}, argClause}},
		argMS, argForceAll},
	Plan:    planAll,
	Handler: runAll,
	Sample: Sample{"GO.ALL KEY THROTTLE 15 30 108000 THROTTLE 1 1 3600 1", "[0 2 1 -1 3600 1 [0 16 15 -1 3600] [0 2 1 -1 3600]]",
		"[0 2 0 -1 7200 1 [0 16 14 -1 7200] [0 2 0 -1 7200]]", "HSET"},
	Wrong: []WrongCall{
		{"GO.ALL KEY MS THROTTLE 1 1 1", ErrUnknownClause},
		{"GO.ALL KEY THROTTLE 1 1 1 KEY", ErrArity},
		{"GO.ALL KEY QUOTA 1 1 MS QUOTA 1 1", ErrUnknownOption},
		{"GO.ALL KEY QUOTA 1 1 KEY KEY QUOTA 1 1", ErrKeyRepeated},
		{"GO.ALL KEY QUOTA 1 1 QUOTA 1 1", ErrKeyShared},
	},
}

var allRO = all.readOnly("Tells what GO.ALL would reply; changes nothing.")

var argClause = Arg{Name: "clause", Type: ArgOneOf, Multiple: true, Bounds: fmt.Sprintf("1 to %d in one call", MaxClauses),
	Summary: "A limiter's kind and its parameters.", Sub: []Arg{
		{Name: "throttle", Type: ArgBlock, Token: "THROTTLE",
			Summary: "A cell. The first THROTTLE clause of a key is GO.THROTTLE's limiter, the next ones are further cells of the same hash.",
			Sub:     []Arg{argMaxBurst, argCount, argPeriod, argQuantity}},
		{Name: "window", Type: ArgBlock, Token: "WINDOW", Summary: "GO.WINDOW's limiter.",
			Sub: []Arg{argLimit, argPeriod, argQuantity, argExact}},
		{Name: "quota", Type: ArgBlock, Token: "QUOTA", Summary: "GO.QUOTA's limiter.",
			Sub: []Arg{argLimit, argPeriod, argQuantity, argAlign}},
		{Name: "lease", Type: ArgBlock, Token: "LEASE", Summary: "GO.LEASE's slots.",
			Sub: []Arg{argLimit, argTTL, argID}},
	}}

// planAll finds the keys and the clauses in the words: before a call runs, and when the server
// asks for the keys of a call.
func planAll(c *Call) ErrorCode {
	i := 0
	for {
		if i == len(c.Args) {
			return ErrArity
		}
		if err := c.planKey(i); err != NoError {
			return err
		}
		if i++; i == len(c.Args) {
			return ErrArity
		}
		kind := findClause(c.Args[i])
		if kind == noClause {
			return c.fail(ErrUnknownClause, i)
		}
		for kind != noClause {
			next, err := c.planClause(kind, i+1)
			if err != NoError {
				return err
			}
			if i, kind = next, noClause; i < len(c.Args) {
				kind = findClause(c.Args[i])
			}
		}
		if i == len(c.Args) || !isWord(c.Args[i], "KEY") {
			break
		}
		i++
	}
	opts, _, err := c.options(i, optMS|optForce)
	for j := range c.Clauses {
		cl := &c.Clauses[j]
		if cl.opts |= opts; opts&optForce != 0 && cl.kind == leaseKind {
			return ErrForceLease
		}
	}
	return err
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

// checksum returns a number that equal names share. planKey compares two names only if their
// checksums are equal: comparing all pairs of long names would take too long. For a short name
// the length is enough.
func checksum(name string) uint64 {
	if len(name) < 256 {
		return uint64(len(name))
	}
	return maphash.String(checksumSeed, name)
}

var checksumSeed = maphash.MakeSeed()

// planClause adds the clause whose words begin at Args[i] to the last key. It returns the
// index of the word after the clause.
func (c *Call) planClause(kind clauseKind, i int) (next int, err ErrorCode) {
	form := &clauseForms[kind]
	k := &c.Keys[len(c.Keys)-1]
	switch {
	case len(c.Clauses) == MaxClauses:
		return 0, ErrTooManyClauses
	case k.Wants != KindAbsent && (kind != throttleKind || k.Wants != KindHash):
		return 0, ErrKeyShared
	case i+form.words > len(c.Args):
		return 0, ErrArity
	}
	w := clauseWords{kind: kind, first: int32(i)}
	i += form.words
	if kind != leaseKind && i < len(c.Args) && looksNumeric(c.Args[i]) {
		w.quantity = int32(i)
		i++
	}
	allowed := [...]option{windowKind: optExact, quotaKind: optAlign, leaseKind: 0}[kind]
	for i < len(c.Args) && allowed&findOption(c.Args[i]) != 0 {
		if w.opts&allowed != 0 {
			return 0, c.fail(ErrRepeatedOption, i)
		}
		w.opts |= allowed
		if i++; allowed == optAlign {
			if i == len(c.Args) {
				return 0, ErrAlignWithoutOffset
			}
			w.align = int32(i)
			i++
		}
	}
	c.addClause(w, k.Asked)
	k.Wants = form.state
	if kind == throttleKind {
		k.Asked++
	}
	return i, NoError
}

// addClause adds a clause to the last key. The rest of the clause is not cleared: parse and
// decide set what they need.
func (c *Call) addClause(w clauseWords, cell int32) {
	n := len(c.Clauses)
	c.Clauses = c.Clauses[:n+1]
	cl := &c.Clauses[n]
	cl.Key, cl.clauseWords, cl.cell = int32(len(c.Keys)-1), w, cell
}

func runAll(c *Call) ErrorCode {
	for i := range c.Clauses {
		if err := c.Clauses[i].parse(c); err != NoError {
			return err
		}
	}
	return c.runClauses()
}

// runClauses decides for the clauses, whose parameters are set, and writes the reply.
func (c *Call) runClauses() ErrorCode {
	asked := false
	for i := range c.Clauses {
		cl := &c.Clauses[i]
		if err := cl.decide(c); err != NoError {
			return err
		}
		asked = asked || cl.asks()
	}
	decider := c.decider()
	limited := c.Clauses[decider].Reply[0] != 0
	for i := range c.Clauses {
		if err := c.Clauses[i].apply(c, limited); err != NoError {
			return err
		}
	}
	c.fillGaps()
	for i := range c.Keys {
		if k := &c.Keys[i]; k.Becomes == Hash {
			c.settleCells(k)
		}
	}
	c.count(asked, limited)
	c.Shape, c.Replies = Nested, 6
	c.Reply = c.Clauses[decider].Reply
	c.Reply[5] = int64(decider)
	return NoError
}

// decider returns the index of the clause that decides: of the limited clauses the one with
// the longest wait in its reply, where never is the longest; if none is limited, the clause with the
// least remaining. Of equals it is the first.
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
		case longest < 0 && r[2] < least:
			decider, least = i, r[2]
		}
	}
	return decider
}

// fillGaps writes each absent cell that stands before a cell that is set: loadHash refuses a
// hash with a gap.
func (c *Call) fillGaps() {
	for i := range c.Clauses {
		cl := &c.Clauses[i]
		if cl.cell == 0 || c.cells(&c.Keys[cl.Key])[cl.cell].Set == 0 {
			continue
		}
		k := &c.Keys[cl.Key]
		for j := i - int(cl.cell); j < i; j++ { // the clauses of one key stand together
			before := &c.Clauses[j]
			if cell := &c.cells(k)[before.cell]; cell.Found|cell.Set == 0 {
				k.setCell(cell, &before.throttle.next, cl.throttle.slackBase())
			}
		}
	}
}

package commands

import (
	"strconv"

	"gothrottle/funnel"
)

// maxLimits is how many limits one call can have, wordsPerLimit how many words each has.
const (
	maxLimits     = 128
	wordsPerLimit = 4
)

// GO.MTHROTTLE numkeys key [key ...] max_burst count period quantity
//              [max_burst count period quantity ...] [MS]

var mthrottle = Command{
	Name:       "GO.MTHROTTLE",
	Summary:    "Takes units from several rate limiters (GCRA), from all of them or from none.",
	Complexity: "O(N) with N the number of limits, at most 128",
	Since:      "0.1.0",
	Flags:      "write deny-oom",
	Arity:      -7,
	Args: []Arg{
		{Name: "numkeys", Type: ArgInteger, Summary: "How many keys follow."},
		{Name: "key", Type: ArgKey, Multiple: true, Summary: "The limiters. A key that stands again means a further cell of it."},
		{Name: "limit", Type: ArgBlock, Multiple: true, Summary: "One for each key, in the same order.",
			Sub: []Arg{argMaxBurst, argCount, argPeriod,
				{Name: "quantity", Type: ArgInteger, Summary: "Units to take; 0 peeks, a negative number gives back."}}},
		argMS,
	},
	State:       KindHash,
	WordsPerKey: wordsPerLimit,
	Handler:     runMThrottle,
}

func runMThrottle(c *Call) Error {
	if len(c.Keys) == 0 {
		return numkeysError(c.Args)
	}
	asked := int(c.Asked)
	words := c.Args[1+asked:]
	opts, _, err := parseOptions(words[wordsPerLimit*asked:], optMS)
	if err != NoError {
		return err
	}
	now, unit := c.Now*microsecond, opts.unit()
	decider, retryAfter := -1, int64(0)
	for i := range asked {
		v, err := c.decide(i, words[wordsPerLimit*i:], unit, now)
		if err != NoError {
			return err
		}
		if v.Limited && (decider < 0 || longer(v.RetryAfter, retryAfter)) {
			decider, retryAfter = i, v.RetryAfter
		}
	}
	admitted := decider < 0
	if admitted {
		retryAfter = funnel.Never
	}
	for i := range asked {
		cell := &c.Cells[i]
		if !admitted && cell.Reply[0] == 0 {
			c.peek(cell, unit, now)
		}
		if cell.next.change != funnel.Keep {
			c.fillGap(i)
			c.setGCRA(cell, cell.next.state, cell.next.window)
		}
	}
	for k := range c.Keys {
		c.settleGCRA(int32(k), now)
	}
	c.Limited, c.Shape, c.Replies = boolInt(!admitted), Nested, 3
	c.Reply = [6]int64{int64(c.Limited), waitOf(retryAfter, unit), int64(decider)}
	return NoError
}

// decided is what is to become of a cell if all limits admit.
type decided struct {
	state  funnel.State
	window int64 // ns; of the limit
	change funnel.Change
}

// decide reads the four words of limit i and decides for it alone: what it leaves in
// the cell is its reply and the state to set.
func (c *Call) decide(i int, words []string, unit, now int64) (v funnel.Verdict, err Error) {
	period, err := periodArg(words[2], unit)
	if err != NoError {
		return v, err
	}
	l, err := newGCRALimit(words[0], words[1], period)
	if err != NoError {
		return v, err
	}
	quantity, err := quantityArg(words[3])
	if err != NoError {
		return v, err
	}
	cell := &c.Cells[i]
	if cell.Index == 0 { // decided before the key's other ones
		if err := c.checkGCRA(cell.Key); err != NoError {
			return v, err
		}
	}
	cell.next.state, v = funnel.Throttle(now, c.gcraState(cell), l.limit, l.rate, quantity)
	cell.next.window, cell.next.change = l.window, v.Change
	putReply(&cell.Reply, &v, l.limit, unit)
	return v, NoError
}

// peek decides again for a limit that admits, where another one does not: nothing is taken.
func (c *Call) peek(cell *Cell, unit, now int64) {
	limit := cell.Reply[1]
	state, v := funnel.Throttle(now, c.gcraState(cell), limit, cell.next.state.Rate, 0)
	v.Limited, v.RetryAfter = false, funnel.Never // what was asked for would fit
	cell.next.state, cell.next.change = state, v.Change
	putReply(&cell.Reply, &v, limit, unit)
}

// fillGap writes the absent cells before cell i of its key: a hash has no gaps (see
// checkHash). They are void, but for the first one of an adopted key.
func (c *Call) fillGap(i int) {
	for j := range i {
		if cell := &c.Cells[j]; cell.Key == c.Cells[i].Key && cell.Found|cell.Set == 0 {
			c.setGCRA(cell, cell.next.state, c.Cells[i].next.window)
		}
	}
}

// longer reports whether retry_after a is longer than b; the longest is never.
func longer(a, b int64) bool {
	return b != funnel.Never && (a == funnel.Never || a > b)
}

// numkeysError tells why the host did not find the keys.
func numkeysError(words []string) Error {
	n, err := intArg(words[0], 1, maxLimits, ErrNumkeysNotInteger, ErrNumkeysRange)
	switch {
	case err != NoError:
		return err
	case words[0] != strconv.FormatInt(n, 10):
		return ErrNumkeysNotInteger // the server reads it so: no sign, no leading zero
	}
	return ErrArity
}

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
		d, err := c.decide(i, words[wordsPerLimit*i:], unit, now)
		if err != NoError {
			return err
		}
		if d.Limited && (decider < 0 || longer(d.RetryAfter, retryAfter)) {
			decider, retryAfter = i, d.RetryAfter
		}
	}
	admitted := decider < 0
	if admitted {
		retryAfter = funnel.Never
	}
	// Decided again, now that it is known what becomes of it: nothing was changed before.
	for i := range asked {
		d, _ := c.decide(i, words[wordsPerLimit*i:], unit, now)
		if !admitted && !d.Limited {
			_, d.Verdict = funnel.Throttle(now, d.state, d.limit, d.rate, 0)
			d.Limited, d.RetryAfter = false, funnel.Never
		}
		reply := replyOf(&d.Verdict, d.limit, unit)
		c.Cells[i].Reply = [5]int64(reply[:5])
		if d.Change != funnel.Keep {
			c.fillGap(i, words, unit, now)
			c.setGCRA(&c.Cells[i], d.next)
			c.settleGCRA(c.Cells[i].Key, now, d.window)
		}
	}
	c.Limited, c.Shape, c.Replies = boolInt(!admitted), Nested, 3
	c.Reply = [6]int64{int64(c.Limited), waitOf(retryAfter, unit), int64(decider)}
	return NoError
}

// decision is what becomes of one limit.
type decision struct {
	gcraLimit
	state, next funnel.State
	funnel.Verdict
}

// decide reads the four words of limit i and decides for it alone.
func (c *Call) decide(i int, words []string, unit, now int64) (d decision, err Error) {
	period, err := periodArg(words[2], unit)
	if err != NoError {
		return d, err
	}
	if d.gcraLimit, err = newGCRALimit(words[0], words[1], period); err != NoError {
		return d, err
	}
	quantity, err := quantityArg(words[3])
	if err != NoError {
		return d, err
	}
	if d.state, err = c.gcraState(&c.Cells[i]); err != NoError {
		return d, err
	}
	d.next, d.Verdict = funnel.Throttle(now, d.state, d.limit, d.rate, quantity)
	return d, NoError
}

// fillGap writes the absent cells before cell i of its key: a hash has no gaps (see
// checkHash). They are void, but for the first one of an adopted key.
func (c *Call) fillGap(i int, words []string, unit, now int64) {
	for j := range i {
		if cell := &c.Cells[j]; cell.Key == c.Cells[i].Key && cell.Found|cell.Set == 0 {
			d, _ := c.decide(j, words[wordsPerLimit*j:], unit, now)
			c.setGCRA(cell, funnel.State{TAT: max(now, d.state.TAT), Rate: d.rate.Reduced()})
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

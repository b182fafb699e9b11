package commands

import (
	"math"

	"gothrottle/funnel"
)

// A GCRA limiter is one cell of a hash: up to MaxFields fields, all integers, whose names
// are numbers. Those of the first cell are these, those of the second go on from there. The
// server keeps a small number in two bytes and a letter in three, which is what brings
// nearly all limiters into a block of memory one size smaller.
const (
	fieldTAT    = iota // the TAT (theoretical arrival time), ns since the Unix epoch
	fieldPeriod        // the period of the rate in lowest terms: see storedPeriod
	fieldFrac          // the rest of the TAT, in 1/count ns
	fieldCount         // the count of that rate
)

// The last two are there only if the count is not 1: if the one given does not divide the
// period in ns.
const (
	wholeFields = 1<<fieldTAT | 1<<fieldPeriod
	fracFields  = 1<<fieldFrac | 1<<fieldCount
)

// gcraLimit is one limit of a call.
type gcraLimit struct {
	limit  int64
	rate   funnel.Rate
	window int64 // ns; what the slack of an expiry is a part of
}

// newGCRALimit reads max_burst and count; period is in ns.
func newGCRALimit(maxBurst, count string, period int64) (l gcraLimit, err Error) {
	if l.limit, err = intArg(maxBurst, 0, maxLimit-1, ErrMaxBurstNotInteger, ErrMaxBurstRange); err != NoError {
		return l, err
	}
	l.limit++
	if l.rate.Count, err = intArg(count, 1, maxLimit, ErrCountNotInteger, ErrCountRange); err != NoError {
		return l, err
	}
	l.rate.Period = period
	drain := l.rate.Drain(l.limit)
	if drain > maxPeriod {
		return l, ErrWindowTooLong
	}
	l.window = min(drain, period)
	return l, NoError
}

// checkGCRA makes sure that a key holds limiters and nothing else, or nothing at all.
func (c *Call) checkGCRA(key int32) Error {
	switch k := &c.Keys[key]; k.Kind {
	case KindAbsent:
		return NoError
	case KindString:
		if _, ok := adopt(k.Text); ok {
			return NoError
		}
	case KindHash:
		return c.checkHash(key)
	}
	return ErrWrongType
}

// gcraState returns the state that a cell holds. checkGCRA was called for its key.
func (c *Call) gcraState(cell *Cell) (s funnel.State) {
	switch k := &c.Keys[cell.Key]; {
	case cell.Found != 0:
		s, _ = cell.state(0)
	case k.Kind == KindString && cell.Index == 0: // redis-cell knows one cell
		s.TAT, _ = adopt(k.Text)
	}
	return s
}

// state returns the state in the fields of a cell, and whether it is one, with a TAT of at
// least from.
func (cell *Cell) state(from int64) (s funnel.State, ok bool) {
	s.TAT = cell.Value[fieldTAT]
	s.Rate = funnel.Rate{Period: loadedPeriod(cell.Value[fieldPeriod]), Count: 1}
	ok = cell.Bad == 0 && s.TAT >= from && s.Rate.Period != 0
	if cell.Found&fracFields != 0 {
		s.Frac, s.Rate.Count = cell.Value[fieldFrac], cell.Value[fieldCount]
		ok = ok && s.Rate.Count >= 2 && s.Rate.Count <= maxLimit && s.Frac >= 0 && s.Frac < s.Rate.Count
	}
	return s, ok
}

// storedPeriod returns a period in ns as it is stored: whole seconds as such, other ones as
// ns with the sign turned. Both fit a small block of memory mostly, and ns alone would not.
func storedPeriod(ns int64) int64 {
	if ns%second == 0 {
		return ns / second
	}
	return -ns
}

// loadedPeriod is the other way round. It returns 0 for what is no period.
func loadedPeriod(stored int64) int64 {
	switch {
	case 0 < stored && stored <= maxPeriod/second:
		return stored * second
	case -maxPeriod < stored && stored < 0 && stored%second != 0:
		return -stored
	}
	return 0
}

// checkHash makes sure that a hash holds limiters and nothing else: whole cells,
// without a gap, that account for every field. Someone's hash may well have fields
// named 0 and 1; unless those are a TAT and a period it must not be given an expiry, let
// alone be deleted.
func (c *Call) checkHash(key int32) Error {
	fields, cells, last := int64(0), int32(0), int32(-1)
	from := int64(minTAT)
	if c.Now*microsecond < minTAT { // a server whose clock starts in 1970
		from = 0
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		if cell.Key != key || cell.Found == 0 {
			continue
		}
		switch cell.Found {
		case wholeFields:
			fields += 2
		case wholeFields | fracFields:
			fields += 4
		default:
			return ErrForeignHash
		}
		if _, ok := cell.state(from); !ok {
			return ErrDamaged
		}
		cells++
		last = max(last, cell.Index)
	}
	if fields != c.Keys[key].Length || last+1 != cells {
		return ErrForeignHash
	}
	return NoError
}

// minTAT is in 2001: what is less is some other number.
const minTAT = 1e18

// AdoptedLen is how many digits redis-cell's TAT has: minTAT to 2^63-1.
const AdoptedLen = 19

// adopt reads the value of a redis-cell key: a TAT in ns, canonical decimal.
func adopt(text string) (tat int64, ok bool) {
	if len(text) != AdoptedLen || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	tat, form := parseInt(text)
	return tat, form == integer
}

// setGCRA writes a state into a cell, naming only the fields that change. window is the
// limit's, in ns. settleGCRA must be called for the key when all its cells are set.
func (c *Call) setGCRA(cell *Cell, s funnel.State, window int64) {
	value := [MaxFields]int64{s.TAT, storedPeriod(s.Rate.Period), s.Frac, s.Rate.Count}
	wanted := uint32(wholeFields)
	if s.Rate.Count != 1 {
		wanted |= fracFields
	}
	for i := range value {
		bit := uint32(1) << i
		if wanted&bit != 0 && (cell.Found&bit == 0 || cell.Value[i] != value[i]) {
			cell.Set |= bit
		}
	}
	cell.Unset = cell.Found &^ wanted
	cell.Value = value
	k := &c.Keys[cell.Key]
	if k.Window == 0 || window < k.Window {
		k.Window = window
	}
}

// settleGCRA sees to a key some of whose cells were set: to its expiry, which is as exact
// as the smallest of their windows asks for, or to its removal when nothing in it is in use.
func (c *Call) settleGCRA(key int32, now int64) {
	k := &c.Keys[key]
	if k.Window == 0 {
		return
	}
	end := int64(0)
	for i := range c.Cells {
		if cell := &c.Cells[i]; cell.Key == key {
			tat := cell.Value[fieldTAT]
			if cell.Value[fieldFrac] > 0 && tat < math.MaxInt64 {
				tat++ // a rest is a part of one ns
			}
			end = max(end, tat)
		}
	}
	if end <= now {
		k.Remove = 1
		return
	}
	k.Remove = boolInt(k.Kind == KindString) // adopted: the string gives way to a hash
	k.expire(end, k.Window)
}

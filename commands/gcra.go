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

// gcraState returns the state that a cell holds.
func (c *Call) gcraState(cell *Cell) (funnel.State, Error) {
	key := &c.Keys[cell.Key]
	switch key.Kind {
	case KindAbsent:
		return funnel.State{}, NoError
	case KindString:
		state, err := adopt(key.Text)
		if cell.Index > 0 { // redis-cell knows one cell
			state = funnel.State{}
		}
		return state, err
	case KindHash:
		if cell.Found == wholeFields && key.Length == 2 {
			break // the common case: one cell, nothing else
		}
		if err := c.checkHash(cell.Key); err != NoError {
			return funnel.State{}, err
		}
		if cell.Found == 0 {
			return funnel.State{}, NoError
		}
	default:
		return funnel.State{}, ErrWrongType
	}
	return cell.gcraState()
}

// gcraState returns the state in the fields of a cell that has all that it needs.
func (cell *Cell) gcraState() (funnel.State, Error) {
	s := funnel.State{
		TAT:  cell.Value[fieldTAT],
		Rate: funnel.Rate{Period: loadedPeriod(cell.Value[fieldPeriod]), Count: 1},
	}
	if cell.Found&fracFields != 0 {
		s.Frac, s.Rate.Count = cell.Value[fieldFrac], cell.Value[fieldCount]
	}
	if cell.Bad != 0 || s.TAT < minTAT || s.Rate.Period == 0 ||
		s.Rate.Count < 1 || s.Rate.Count > maxLimit || s.Frac < 0 || s.Frac >= s.Rate.Count {
		return funnel.State{}, ErrDamaged
	}
	return s, NoError
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
// without a gap, that account for every field. Someone's profile hash may well have
// a field named t; it must not be given an expiry, let alone be deleted.
func (c *Call) checkHash(key int32) Error {
	fields, cells, last := int64(0), int32(0), int32(-1)
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
		if _, err := cell.gcraState(); err != NoError {
			return err
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
func adopt(text string) (funnel.State, Error) {
	if len(text) != AdoptedLen || text[0] < '1' || text[0] > '9' {
		return funnel.State{}, ErrWrongType
	}
	tat, form := parseInt(text)
	if form != integer {
		return funnel.State{}, ErrWrongType
	}
	return funnel.State{TAT: tat}, NoError
}

// setGCRA writes a state into a cell, naming only the fields that change.
func (c *Call) setGCRA(cell *Cell, s funnel.State) {
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
}

// settleGCRA sees to a key after one of its cells was set: to its expiry, or to its
// removal when nothing in it is in use. It may be called again after another cell was
// set; the smallest window then decides how exact the expiry is.
func (c *Call) settleGCRA(key int32, now, window int64) {
	k := &c.Keys[key]
	end := int64(0)
	for i := range c.Cells {
		if cell := &c.Cells[i]; cell.Key == key {
			tat := cell.Value[fieldTAT]
			if cell.Value[fieldFrac] > 0 && tat < math.MaxInt64 {
				tat++ // n is a part of one ns
			}
			end = max(end, tat)
		}
	}
	if end <= now {
		k.Remove, k.ExpireFrom, k.ExpireTo = 1, 0, 0
		return
	}
	k.Remove = boolInt(k.Kind == KindString) // adopted: the string gives way to a hash
	slack := k.ExpireTo - k.ExpireFrom
	k.expire(end, window)
	if slack > 0 {
		k.ExpireTo = min(k.ExpireTo, k.ExpireFrom+slack)
	}
}

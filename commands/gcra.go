package commands

import (
	"math/bits"

	"gothrottle/funnel"
)

// A GCRA limiter is one cell of a hash: up to MaxFields fields, all integers, whose names are numbers. The first cell
// has the fields 0 to 3, the second cell has the next four, and so on. A lockout has a field of its own, whose name is
// 128 for the first cell, 129 for the second. A server keeps a small number in two bytes and a letter in three. That
// byte brings nearly all limiters into a smaller block of memory.
const (
	fieldTAT    = iota // the TAT (theoretical arrival time), ns since the Unix epoch
	fieldPeriod        // the period of the rate in lowest terms: see storedPeriod
	fieldFrac          // the fraction of the TAT, in 1/count ns
	fieldCount         // the count of that rate
	fieldLocked        // the end of the lockout, ns since the Unix epoch
)

// fracFields are present only if the count given does not divide the period in ns. Otherwise the
// count in lowest terms is 1. lockField is present only if a lockout was begun.
const (
	wholeFields = 1<<fieldTAT | 1<<fieldPeriod
	fracFields  = 1<<fieldFrac | 1<<fieldCount
	lockField   = 1 << fieldLocked
)

// cells returns the cells of a key, cell one of them.
func (c *Call) cells(k *Key) []Cell      { return c.Cells[k.FirstCell : k.FirstCell+k.NumCells] }
func (c *Call) cell(k *Key, i int) *Cell { return &c.Cells[int(k.FirstCell)+i] }

// loadCells makes sure that a key holds limiters and nothing else, or nothing at all, and decodes the cells.
func (c *Call) loadCells(k *Key) ErrorCode {
	switch k.Kind {
	case KindAbsent:
		return NoError
	case KindString: // redis-cell's keys have one cell
		if tat, ok := adopt(k.Text); ok {
			c.cell(k, 0).state.TAT = tat
			return NoError
		}
	case KindHash:
		return c.loadHash(k)
	}
	return ErrWrongType
}

// loadHash makes sure that a hash holds limiters and nothing else: whole cells, without a
// gap, that account for every field. A foreign hash may have fields named 0 and 1, too. It must
// neither get an expiry nor be deleted, so field 0 must be a TAT and field 1 a period.
func (c *Call) loadHash(k *Key) ErrorCode {
	least := funnel.Nanos(minTAT)
	if c.Now < minTAT/funnel.Micros(funnel.Microsecond) { // a server whose clock starts in 1970
		least = 0
	}
	fields, found, last := int64(0), int32(0), int32(-1)
	for i := range k.NumCells {
		cell := c.cell(k, int(i))
		switch cell.Found &^ lockField {
		case wholeFields, wholeFields | fracFields:
		default:
			if cell.Found == 0 {
				continue
			}
			return ErrForeignHash
		}
		if !cell.decode(least) {
			return ErrDamaged
		}
		fields += int64(bits.OnesCount32(cell.Found))
		found++
		last = cell.Index
	}
	if fields != k.Length || last+1 != found {
		return ErrForeignHash
	}
	return NoError
}

// decode reads the state from the fields of a cell. It reports whether the state is valid and
// neither its TAT nor its lockout ends before least.
func (cell *Cell) decode(least funnel.Nanos) bool {
	s := &cell.state
	s.TAT = funnel.Nanos(cell.Value[fieldTAT])
	s.Rate = funnel.Rate{Period: loadedPeriod(cell.Value[fieldPeriod]), Count: 1}
	ok := cell.Bad == 0 && s.TAT >= least && s.Rate.Period != 0
	return ok && (cell.Found == wholeFields || cell.decodeRest(least))
}

// decodeRest reads the fields that few cells have. It is not inlined: most calls need none of its code.
//
//go:noinline
func (cell *Cell) decodeRest(least funnel.Nanos) bool {
	s, ok := &cell.state, true
	if cell.Found&fracFields != 0 {
		s.Frac, s.Rate.Count = cell.Value[fieldFrac], cell.Value[fieldCount]
		ok = s.Rate.Count >= 2 && s.Rate.Count <= maxLimit && s.Frac >= 0 && s.Frac < s.Rate.Count
	}
	if cell.Found&lockField != 0 {
		s.Locked = funnel.Nanos(cell.Value[fieldLocked])
		ok = ok && s.Locked >= least
	}
	return ok
}

// storedPeriod returns a period as it is stored: whole seconds as such, other periods in ns with
// the sign turned. Most periods are whole seconds, and small numbers take less memory.
func storedPeriod(p funnel.Nanos) int64 {
	if p%funnel.Second == 0 {
		return int64(p / funnel.Second)
	}
	return -int64(p)
}

// loadedPeriod inverts storedPeriod. It returns 0 for a number that storedPeriod never returns.
func loadedPeriod(stored int64) funnel.Nanos {
	p := funnel.Nanos(stored)
	if 0 < p && p <= maxPeriod/funnel.Second {
		return p * funnel.Second
	}
	return loadedNanos(p)
}

//go:noinline
func loadedNanos(p funnel.Nanos) funnel.Nanos {
	if -maxPeriod < p && p < 0 && p%funnel.Second != 0 {
		return -p
	}
	return 0
}

// minTAT is in 2001, in ns since the Unix epoch. It is before every TAT of today.
const minTAT = 1e18

// AdoptedLen is how many digits redis-cell's TAT has: minTAT to 2^63-1.
const AdoptedLen = 19

// adopt reads the value of a redis-cell key: a TAT in ns, canonical decimal.
func adopt(text string) (tat funnel.Nanos, ok bool) {
	if len(text) != AdoptedLen || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	n, form := parseInt(text)
	return funnel.Nanos(n), form == integer
}

// setCell writes a state into a cell of a key and marks the fields that change. The key gets the smallest slackBase of
// its changed cells. settleCells must be called for the key when all its cells are set.
func (k *Key) setCell(cell *Cell, s *funnel.ThrottleState, slackBase funnel.Nanos) {
	value := [MaxFields]int64{int64(s.TAT), storedPeriod(s.Rate.Period), s.Frac, s.Rate.Count, int64(s.Locked)}
	wanted := uint32(wholeFields)
	if s.Rate.Count != 1 {
		wanted |= fracFields
	}
	if s.Locked != 0 {
		wanted |= lockField
	}
	changed := ^cell.Found
	for i := range value {
		if cell.Value[i] != value[i] {
			changed |= 1 << i
		}
	}
	cell.Value = value // all of them: the host does not set those that it has not found
	cell.Set = wanted & changed
	cell.Unset = cell.Found &^ wanted
	cell.state = *s
	if k.slackBase == 0 || slackBase < k.slackBase {
		k.slackBase = slackBase
	}
	k.Becomes = Hash
}

// settleCells completes what setCell began. A key whose cells are all void is deleted. Any other
// key gets an expiry that is not before the last TAT of its cells, nor the end of a lockout.
func (c *Call) settleCells(k *Key) {
	end := funnel.Nanos(0)
	cells := c.cells(k)
	for i := range cells {
		s := &cells[i].state
		if s.Frac > 0 && s.TAT < maxTAT {
			end = max(end, s.TAT+1) // the fraction is less than one ns
		} else {
			end = max(end, s.TAT)
		}
		end = max(end, s.Locked)
	}
	if end <= c.Now.Nanos() {
		k.Becomes = Absent
		return
	}
	k.expire(end, k.slackBase)
}

const maxTAT funnel.Nanos = 1<<63 - 1

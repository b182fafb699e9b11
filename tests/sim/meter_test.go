package sim

import "slices"

// meter holds what was admitted of a limiter against its limit, by the true time. It knows nothing of the states that
// servers keep. Of a rate it is a bucket that drains at the rate: its level is the most that was admitted in any span that
// ends now, less rate x the span. Of a window or quota it is what was admitted in the last period.
type meter struct {
	kind   kind
	limit  int64 // units
	drain  int64 // of a rate: drains of the level per µs; a unit is unit drains
	unit   int64
	span   int64 // of a window or quota: µs
	level  int64
	last   int64 // µs
	log    []admission
	credit int64 // units that masters admitted and did not replicate
	until  int64 // when the credit ends at the earliest

	waiting []admission // admissions whose order is not known yet
}

type admission struct{ at, n int64 }

// newMeter returns a meter for masters whose clocks may be wrong by skew µs. Then spans differ by twice that.
func newMeter(l *limiter, skew int64) meter {
	m := meter{kind: l.kind, limit: l.limit, drain: l.count, unit: l.period * 1000, span: l.period*1000 - 2*skew}
	switch l.kind {
	case rateKind:
		m.limit += (2*skew*m.drain + m.unit - 1) / m.unit
	case quotaKind:
		m.limit *= 2
	}
	return m
}

// admit notes n units, or a refund of -n units, and returns how many more than allowed were admitted. Beyond the limit
// more units are allowed, and the credit.
func (m *meter) admit(now, n, more int64) (over int64) {
	if now > m.until && m.level == 0 {
		m.credit = 0
	}
	if m.kind == rateKind {
		m.level = max(m.level-max(now-m.last, 0)*m.drain, 0)
		m.last = max(m.last, now)
		m.level = max(m.level+n*m.unit, 0)
		return (m.level - (m.limit+more+m.credit)*m.unit + m.unit - 1) / m.unit
	}
	m.forget(now)
	if n > 0 {
		m.log = append(m.log, admission{now, n})
		m.level += n
	} else {
		m.refund(-n)
	}
	return m.level - m.limit - more - m.credit
}

// forget drops what is a period old.
func (m *meter) forget(now int64) {
	drop := 0
	for drop < len(m.log) && m.log[drop].at <= now-m.span {
		m.level -= m.log[drop].n
		drop++
	}
	m.log = slices.Delete(m.log, 0, drop)
}

// refund takes units from the oldest admissions of a window, and from the newest of a quota: the window that runs now has
// the credit.
func (m *meter) refund(n int64) {
	for n > 0 && len(m.log) > 0 {
		at := 0
		if m.kind == quotaKind {
			at = len(m.log) - 1
		}
		part := min(n, m.log[at].n)
		n -= part
		m.level -= part
		if m.log[at].n -= part; m.log[at].n == 0 {
			m.log = slices.Delete(m.log, at, at+1)
		}
	}
}

// lose notes units that the next master does not know of.
func (m *meter) lose(now, n, hold int64) {
	if n > 0 {
		m.credit += n
		m.until = now + m.span + hold
	}
}

// later notes units that were admitted at a time, maybe in the past.
func (m *meter) later(at, n int64) {
	i := len(m.waiting)
	for i > 0 && m.waiting[i-1].at > at {
		i--
	}
	m.waiting = slices.Insert(m.waiting, i, admission{at, n})
}

// settle admits what was admitted up to a time: nothing earlier can come any more.
func (m *meter) settle(upTo, more int64) (over int64) {
	done := 0
	for ; done < len(m.waiting) && m.waiting[done].at <= upTo; done++ {
		over = max(over, m.admit(m.waiting[done].at, m.waiting[done].n, more))
	}
	m.waiting = slices.Delete(m.waiting, 0, done)
	return over
}

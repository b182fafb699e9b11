package rules

import (
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v3"
)

// Fits is how many units fit together.
func (m *Limit) Fits() int64 {
	if m.Burst != nil {
		return int64(*m.Burst)
	}
	return m.Units
}

// Holds is how long the estimate of a cost is held until a report comes; 0: it is charged.
func (m *Limit) Holds() time.Duration {
	if m.Cost == nil || m.Cost.Estimate == 0 || m.Cost.Unreported == "charge" {
		return 0
	}
	return or(m.Cost.Hold, 10*time.Minute)
}

// Counter begins the keys of a limit, with a colon after it. Limits of one algorithm and period share it, so usage carries over
// when a limit changes. Periods of requests' own limits share it, too: a process keeps each Counter that it has seen.
func (m *Limit) Counter() string {
	if m.own {
		return string(m.Algorithm) + ".own"
	}
	if m.TimeZone.Location != nil && m.Period == Periods["MONTH"] {
		return string(m.Algorithm) + ".month"
	}
	return string(m.Algorithm) + "." + m.Period.String()
}

// Returnable returns how many of n units may be given back that were taken at a time: those that can't have left the limit.
func (m *Limit) Returnable(n int64, at time.Time) int64 {
	now := time.Now()
	switch age := now.Sub(at); {
	case m.Algorithm == GCRA: // they drain from the first moment
		return max(n-int64(math.Ceil(float64(m.Units)*age.Seconds()/m.Period.Seconds())), 0)
	case m.Algorithm == SlidingWindow && age >= m.Period, m.Algorithm == FixedWindow && !m.WindowEnd(at).After(now):
		return 0
	}
	return n
}

// loadNested loads the limit of a descriptor with a share or a reserve. above is the limit around it, or nil.
func (l *loader) loadNested(at *yaml.Node, f *descriptorLevel, rule string, above *Limit, tag tagging) *Limit {
	if wrong := f.mistake(above, tag); wrong != "" {
		l.fail(at, rule, "%s", wrong)
	}
	m := new(*above)
	if given(&f.RateLimit) { // no list
		own := *l
		if own.Algorithm == GCRA { // which a share cannot have
			own.Algorithm = FixedWindow
		}
		m = own.loadLimit(&f.RateLimit, rule, tag, l.late(rule))
		if m.Algorithm == GCRA || !m.countable() {
			l.fail(at, rule, "the rate_limit of a share is a sliding_window or a fixed_window, of more than 0")
		}
	} else {
		m.Path, m.Place, m.Name, m.Replaced = rule, l.place(at), "", nil
		m.narrow(f, above.Fits())
		l.Limits = append(l.Limits, m)
	}
	if f.Share != nil {
		m.Share, m.above = int(*f.Share), above
	}
	m.Shadow = above.Shadow
	return m
}

// narrow makes a copy of the limit around a descriptor the descriptor's own. For a share it is a window as long as that
// limit takes to drain, which never refuses what the limit itself admits.
func (m *Limit) narrow(f *descriptorLevel, fits int64) {
	if f.Share != nil {
		drain := time.Duration(float64(m.Period) * float64(fits) / float64(m.Units)).Truncate(time.Millisecond)
		if m.Algorithm == GCRA {
			m.Period = max(drain, time.Millisecond)
		}
		m.Algorithm, m.Burst, m.Units = SlidingWindow, nil, m.Units+fits
		return
	}
	m.Charge = false // refused hits would use the reserve up
	if m.Algorithm == GCRA {
		m.Burst = new(uint32(fits) - *f.Reserve)
		return
	}
	m.Units -= int64(*f.Reserve)
	m.Reply = m.reply(m.Reply.Name)
}

// countable says whether a limit can have a share or a reserve below it.
func (m *Limit) countable() bool {
	return m.Algorithm != Concurrency && !m.Unlimited && m.Units > 0 && m.Lockout == nil
}

// mistake says what is wrong with a share or a reserve.
func (f *descriptorLevel) mistake(above *Limit, tag tagging) string {
	switch {
	case f.Share != nil && f.Reserve != nil:
		return "share cannot be combined with reserve"
	case above == nil:
		return "share and reserve need a descriptor around this one that has a rate_limit, of one limit"
	case !above.countable():
		return "share and reserve need a limit around them that is more than 0, without concurrency, unlimited or a lockout"
	case f.Share != nil && (*f.Share < 1 || *f.Share > maxWeight):
		return fmt.Sprintf("share is a weight of 1 to %d", maxWeight)
	case f.Share != nil && tag == tagNone:
		return "share needs 'hash_tag: descriptor' or 'hash_tag: domain', which puts its keys into one slot"
	case f.Reserve != nil && given(&f.RateLimit):
		return "reserve is kept of the limit around it: it has no rate_limit of its own"
	case f.Reserve != nil && int64(*f.Reserve) >= above.Fits():
		return fmt.Sprintf("reserve is less than the limit around it, which is %d", above.Fits())
	}
	return ""
}

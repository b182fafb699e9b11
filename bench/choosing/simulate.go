package main

import (
	"slices"

	"gothrottle/funnel"
)

// outcome is what became of a call.
type outcome int

const (
	admitted outcome = iota
	denied
	delayed  // admitted, for later
	charged  // a unit that is charged afterwards, by FORCE
	returned // a unit that is given back afterwards
)

// event is one unit at one instant.
type event struct {
	at funnel.Nanos
	outcome
}

// meter is what is in use of one limit, from instant to instant.
type meter struct {
	limit int64
	name  string
	use   []level
}

type level struct {
	at    funnel.Nanos
	units float64
}

// picture is what one limiter made of the traffic.
type picture struct {
	file, title string
	calls       []event        // what came, with its outcome
	below       []event        // drawn below the calls: when callers act, or what was settled
	belowName   string         // what the events below are
	meters      []meter        // one for each limit
	locked      []span         // lockouts
	ends        []funnel.Nanos // ends of fixed windows
	over        outcome        // what usage above the limit is: delayed or charged; admitted: there is none
}

type span struct{ from, to funnel.Nanos }

// step is the time between two readings of a meter. Everything happens at multiples of it.
const step = 50 * funnel.Millisecond

// cell is a GCRA limiter.
type cell struct {
	state funnel.ThrottleState
	funnel.ThrottleParams
}

func newCell(limit, period int64) *cell {
	return &cell{ThrottleParams: funnel.ThrottleParams{
		Limit: limit, Quantity: 1, Rate: funnel.Rate{Period: at(float64(period)), Count: limit}}}
}

func (c *cell) take(now funnel.Nanos) funnel.Verdict {
	next, v := funnel.Throttle(now, c.state, &c.ThrottleParams)
	c.apply(next, v)
	return v
}

func (c *cell) apply(next funnel.ThrottleState, v funnel.Verdict) {
	switch v.Change {
	case funnel.Store:
		c.state = next
	case funnel.Forget:
		c.state = funnel.ThrottleState{}
	}
}

func (c *cell) inUse(now funnel.Nanos) float64 {
	return float64(max(c.state.TAT-now, 0)) * float64(c.Rate.Count) / float64(c.Rate.Period)
}

// log is a sliding window.
type log struct {
	entries []funnel.WindowEntry
	funnel.WindowParams
}

func (l *log) state(now funnel.Micros) (s funnel.WindowState) {
	l.entries = slices.DeleteFunc(l.entries, func(e funnel.WindowEntry) bool { return s.Gone(e, now, l.Period) })
	if n := len(l.entries); n > 0 {
		s.Oldest, s.Newest = l.entries[0], l.entries[n-1]
	}
	return s
}

func (l *log) take(now funnel.Micros) funnel.Verdict {
	next, v := funnel.Window(now, l.state(now), l.WindowParams)
	if v.Share {
		l.entries = l.entries[:len(l.entries)-1]
	}
	if v.Change == funnel.Store {
		l.entries = append(l.entries, next)
	}
	return v.Verdict
}

func (l *log) inUse(now funnel.Micros) float64 {
	l.state(now)
	used := int64(0)
	for _, e := range l.entries {
		used += e.Weight
	}
	return float64(used)
}

// walk goes along the time axis. At each instant it runs tick, if that is not nil, and asks ask for
// the outcome of each call that comes. It reads each meter before and after that.
func walk(p *picture, tick func(now funnel.Nanos), ask func(now funnel.Nanos) outcome,
	read ...func(now funnel.Nanos) float64) {
	times := arrivals()
	look := func(now funnel.Nanos) {
		for i, r := range read {
			m, l := &p.meters[i], level{now, r(now)}
			if n := len(m.use); n == 0 || m.use[n-1] != l {
				m.use = append(m.use, l)
			}
		}
	}
	for now := funnel.Nanos(0); now <= at(seconds); now += step {
		look(now)
		if tick != nil {
			tick(now)
		}
		for len(times) > 0 && times[0] <= now {
			p.calls = append(p.calls, event{times[0], ask(times[0])})
			times = times[1:]
		}
		look(now)
	}
}

func outcomeOf(v funnel.Verdict) outcome {
	if v.Limited {
		return denied
	}
	return admitted
}

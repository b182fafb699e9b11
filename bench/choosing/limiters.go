package main

import (
	"fmt"

	"gothrottle/funnel"
)

// pictures returns all pictures, in the order of the page.
func pictures() []*picture {
	return []*picture{throttle(), window(), quota(), lease(), force(), reserve(), lockout(), all()}
}

func newPicture(name, title string, meters ...meter) *picture {
	if meters == nil {
		meters = []meter{{limit: limit, name: "units in use"}}
	}
	return &picture{file: "choosing-" + name, title: title, meters: meters}
}

func throttle() *picture {
	p := newPicture("throttle", "GO.THROTTLE key 9 10 20: 10 at once, then one every 2 s")
	c := newCell(limit, period)
	walk(p, nil, func(now funnel.Nanos) outcome { return outcomeOf(c.take(now)) }, c.inUse)
	return p
}

var windowParams = funnel.WindowParams{Limit: limit, Quantity: 1, Period: at(period).Micros()}

func window() *picture {
	p := newPicture("window", "GO.WINDOW key 10 20: at most 10 in any 20 s")
	l := &log{WindowParams: windowParams}
	walk(p, nil, func(now funnel.Nanos) outcome { return outcomeOf(l.take(now.Micros())) },
		func(now funnel.Nanos) float64 { return l.inUse(now.Micros()) })
	return p
}

var quotaParams = funnel.QuotaParams{Limit: limit, Quantity: 1, Period: at(period).Micros(), Align: true}

func quota() *picture {
	p := newPicture("quota", "GO.QUOTA key 10 20 1 ALIGN 0: 10 in each 20 s, anew at every multiple of 20 s")
	var state funnel.QuotaState
	walk(p, nil, func(now funnel.Nanos) outcome {
		next, v := funnel.Quota(now.Micros(), state, quotaParams)
		state = next
		return outcomeOf(v)
	}, func(now funnel.Nanos) float64 {
		if now.Micros() >= state.End {
			return 0
		}
		return float64(state.Used)
	})
	for end := at(period); end < at(seconds); end += at(period) {
		p.ends = append(p.ends, end)
	}
	return p
}

// A job of the picture of GO.LEASE takes 8 s. The holder of the crashed one never releases its
// slot.
const (
	jobTime  = 8
	leaseTTL = 20
	crashed  = 10
)

func lease() *picture {
	p := newPicture("lease", "GO.LEASE key 10 20 id: 10 jobs at once; each runs for 8 s, and one crashes",
		meter{limit: limit, name: "slots held"})
	type slot struct{ lapses, ends funnel.Nanos }
	slots := map[int]slot{}
	params := funnel.LeaseParams{Limit: limit, TTL: at(leaseTTL).Micros()}
	id := 0
	walk(p, func(now funnel.Nanos) {
		for id, s := range slots {
			if s.ends <= now || s.lapses <= now {
				delete(slots, id)
			}
		}
	}, func(now funnel.Nanos) outcome {
		state := funnel.LeaseState{Used: int64(len(slots))}
		for _, s := range slots {
			state.Latest = max(state.Latest, s.lapses.Micros())
		}
		v := funnel.Lease(now.Micros(), state, params)
		if !v.Limited {
			s := slot{lapses: v.Lapse.Nanos(), ends: now + at(jobTime)}
			if id++; id == crashed {
				s.ends = s.lapses
			}
			slots[id] = s
		}
		return outcomeOf(v.Verdict)
	}, func(funnel.Nanos) float64 { return float64(len(slots)) })
	return p
}

// The actual cost of a call is known 3 s after its estimate of 1 unit was taken. The costs of the
// calls take turns.
const settledAfter = 3

var actual = [...]int64{4, 1, 0}

func force() *picture {
	p := newPicture("force", "GO.THROTTLE key 9 10 20: an estimate of 1 unit, settled 3 s later")
	p.belowName, p.over = "settled", charged
	c := newCell(limit, period)
	type bill struct {
		due   funnel.Nanos
		units int64
	}
	var bills []bill
	taken := 0
	walk(p, func(now funnel.Nanos) {
		for len(bills) > 0 && bills[0].due <= now {
			settle := c.ThrottleParams
			settle.Quantity, settle.Force = bills[0].units, bills[0].units > 0
			next, v := funnel.Throttle(now, c.state, &settle)
			c.apply(next, v)
			for range max(v.Granted, 0) {
				p.below = append(p.below, event{now, charged})
			}
			for range max(-v.Granted, 0) {
				p.below = append(p.below, event{now, returned})
			}
			bills = bills[1:]
		}
	}, func(now funnel.Nanos) outcome {
		v := c.take(now)
		if !v.Limited {
			if rest := actual[taken%len(actual)] - 1; rest != 0 {
				bills = append(bills, bill{now + at(settledAfter), rest})
			}
			taken++
		}
		return outcomeOf(v)
	}, c.inUse)
	return p
}

const maxWait = 8 // seconds

func reserve() *picture {
	p := newPicture("reserve", fmt.Sprintf(
		"GO.THROTTLE key 9 10 20000 MS RESERVE %d: a slot, at most %d s ahead", 1000*maxWait, maxWait))
	p.belowName, p.over = "callers act", delayed
	c := newCell(limit, period)
	c.Reserve, c.MaxWait = true, at(maxWait)
	walk(p, nil, func(now funnel.Nanos) outcome {
		v := c.take(now)
		if v.Limited {
			return denied
		}
		if v.Wait == 0 {
			p.below = append(p.below, event{now, admitted})
			return admitted
		}
		p.below = append(p.below, event{now + v.Wait, delayed})
		return delayed
	}, c.inUse)
	return p
}

const lockoutTime = 15 // seconds

func lockout() *picture {
	p := newPicture("lockout", fmt.Sprintf(
		"GO.THROTTLE key 9 10 20 LOCKOUT %d: a denial locks for %d s", lockoutTime, lockoutTime))
	c := newCell(limit, period)
	c.Lockout = at(lockoutTime)
	walk(p, nil, func(now funnel.Nanos) outcome {
		before := c.state.Locked
		v := c.take(now)
		if c.state.Locked > before {
			p.locked = append(p.locked, span{now, c.state.Locked})
		}
		return outcomeOf(v)
	}, c.inUse)
	return p
}

// The second limit of the picture of GO.ALL.
const (
	allLimit  = 16
	allPeriod = 80 // seconds
)

func all() *picture {
	p := newPicture("all", "GO.ALL key THROTTLE 9 10 20 THROTTLE 15 16 80: both limits, or nothing",
		meter{limit: limit, name: "of 10 per 20 s"}, meter{limit: allLimit, name: "of 16 per 80 s"})
	cells := []*cell{newCell(limit, period), newCell(allLimit, allPeriod)}
	walk(p, nil, func(now funnel.Nanos) outcome {
		for _, c := range cells {
			if _, v := funnel.Throttle(now, c.state, &c.ThrottleParams); v.Limited {
				return denied
			}
		}
		for _, c := range cells {
			c.take(now)
		}
		return admitted
	}, cells[0].inUse, cells[1].inUse)
	return p
}

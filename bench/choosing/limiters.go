package main

import (
	"fmt"
	"slices"
	"strings"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Times are in ms. begin is a multiple of every period, so the windows that GO.QUOTA aligns end at multiples on the axis.
const (
	begin   = 1_800_000_000_000
	seconds = 90 // length of the time axis
	tick    = 50 // everything happens at its multiples

	burstAt, burstCalls      = 24, 16
	overloadAt, overloadEnds = 54, 74
)

// arrivals returns when the calls come: some below the rate, a burst at one instant, a pause, an overload of four times the
// rate, and some below the rate again.
func arrivals() (times []int) {
	spread := func(from, to, gap int) {
		for t := from; t < to; t += gap {
			times = append(times, t)
		}
	}
	spread(500, 20_000, 2500)
	times = append(times, slices.Repeat([]int{burstAt*1000 + 500}, burstCalls)...)
	spread(overloadAt*1000+250, overloadEnds*1000, 500)
	spread(overloadEnds*1000+2500, seconds*1000, 2500)
	return times
}

// The outcomes are the colours of the squares.
const (
	admitted = "blue"
	denied   = "orange-line"
	delayed  = "green"       // admitted, for later
	charged  = "purple"      // a unit that is charged afterwards, by FORCE
	returned = "purple-line" // a unit that is given back afterwards
)

type event struct {
	at      int
	outcome string
}

// A meter is what is in use of one limit: a point before and a point after what happens at an instant.
type meter struct {
	limit float64
	name  string
	read  func() float64
	use   [][2]float64 // ms, units
}

// A picture is what one limiter made of the traffic.
type picture struct {
	file, title string
	calls       []event  // what came
	below       []event  // drawn below the calls: when callers act, or what was settled
	belowName   string   // what those are
	meters      []*meter // one for each limit
	locked      [][2]int // lockouts
	ends        []int    // ends of fixed windows
	over        string   // what usage above the limit is: delayed or charged

	server *memory.Server
	now    int
}

func newPicture(name, title string, meters ...*meter) *picture {
	p := &picture{file: "choosing-" + name + ".svg", title: title, meters: meters, server: memory.NewServer()}
	if meters == nil {
		p.meters = []*meter{{limit: 10, name: "units in use", read: p.throttled}}
	}
	return p
}

// do runs a command and returns the integers of its reply, the inner ones too.
func (p *picture) do(command string) (ints []int64) {
	reply, err := p.server.Do(funnel.Micros(1000*(begin+p.now)), strings.Fields(command)...)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", command, err)) // the commands of this file are right
	}
	var flatten func(any)
	flatten = func(reply any) {
		if n, ok := reply.(int64); ok {
			ints = append(ints, n)
			return
		}
		for _, r := range reply.([]any) {
			flatten(r)
		}
	}
	flatten(reply)
	return ints
}

// throttled returns the units in use of the limit of most pictures. One drains in 2 s.
func (p *picture) throttled() float64 {
	return float64(p.do("GO.THROTTLE_RO k 9 10 20000 0 MS")[4]) / 2000
}

// left returns the units in use that a peek tells.
func (p *picture) left(peek string) func() float64 {
	return func() float64 {
		reply := p.do(peek)
		return float64(reply[1] - reply[2])
	}
}

func verdict(reply []int64) string {
	if reply[0] != 0 {
		return denied
	}
	return admitted
}

// run goes along the time axis. At each instant it runs before, if that is not nil, and then ask for each call that comes.
func (p *picture) run(before func(), ask func() string) *picture {
	times := arrivals()
	look := func() {
		for _, m := range p.meters {
			m.use = append(m.use, [2]float64{float64(p.now), m.read()})
		}
	}
	for ; p.now <= seconds*1000; p.now += tick {
		look()
		if before != nil {
			before()
		}
		for ; len(times) > 0 && times[0] <= p.now; times = times[1:] {
			p.calls = append(p.calls, event{p.now, ask()})
		}
		look()
	}
	return p
}

// simple runs a limiter that only admits or denies.
func (p *picture) simple(command string) *picture {
	return p.run(nil, func() string { return verdict(p.do(command)) })
}

// pictures returns all pictures, in the order of the page.
func pictures() []*picture {
	throttle := newPicture("throttle", "GO.THROTTLE key 9 10 20: 10 at once, then one every 2 s").simple("GO.THROTTLE k 9 10 20")
	window := newPicture("window", "GO.WINDOW key 10 20: at most 10 in any 20 s")
	window.meters[0].read = window.left("GO.WINDOW_RO k 10 20 0")
	quota := newPicture("quota", "GO.QUOTA key 10 20 1 ALIGN 0: 10 in each 20 s, anew at every multiple of 20 s")
	quota.meters[0].read = quota.left("GO.QUOTA_RO k 10 20 0 ALIGN 0")
	quota.ends = []int{20_000, 40_000, 60_000, 80_000}
	all := newPicture("all", "GO.ALL key THROTTLE 9 10 20 THROTTLE 15 16 80: both limits, or nothing",
		&meter{limit: 10, name: "of 10 per 20 s"}, &meter{limit: 16, name: "of 16 per 80 s"})
	peek := func() []int64 { return all.do("GO.ALL_RO k THROTTLE 9 10 20000 0 THROTTLE 15 16 80000 0 MS") }
	all.meters[0].read = func() float64 { return float64(peek()[10]) / 2000 }
	all.meters[1].read = func() float64 { return float64(peek()[15]) / 5000 }
	return []*picture{throttle, window.simple("GO.WINDOW k 10 20"), quota.simple("GO.QUOTA k 10 20 1 ALIGN 0"), lease(), force(),
		reserve(), lockout(), all.simple("GO.ALL k THROTTLE 9 10 20 THROTTLE 15 16 80")}
}

// A job takes 8 s. The tenth crashes: it never gives its slot back, which lapses after 20 s.
func lease() *picture {
	p := newPicture("lease", "GO.LEASE key 10 20 id: 10 jobs at once; each runs for 8 s, and one crashes",
		&meter{limit: 10, name: "slots held"})
	var ends []int // of the jobs that were admitted; the id is the place
	p.meters[0].read = func() (held float64) {
		for _, end := range ends {
			if end > p.now {
				held++
			}
		}
		return held
	}
	return p.run(func() {
		for id, end := range ends {
			if end == p.now {
				p.do(fmt.Sprint("GO.RELEASE k ", id))
			}
		}
	}, func() string {
		outcome := verdict(p.do(fmt.Sprint("GO.LEASE k 10 20 ", len(ends))))
		if outcome == admitted {
			ends = append(ends, p.now+8000)
			if len(ends) == 10 {
				ends[9] = p.now + 20_000
			}
		}
		return outcome
	})
}

// The cost of a call is known 3 s after its estimate of 1 unit was taken. The costs are 4, 1 and 0 in turns.
func force() *picture {
	p := newPicture("force", "GO.THROTTLE key 9 10 20: an estimate of 1 unit, settled 3 s later")
	p.belowName, p.over = "settled", charged
	var due []int // one for each admitted call
	return p.run(func() {
		for i, at := range due {
			switch {
			case at == p.now && i%3 == 0:
				p.do("GO.THROTTLE k 9 10 20 3 FORCE")
				p.below = append(p.below, slices.Repeat([]event{{p.now, charged}}, 3)...)
			case at == p.now && i%3 == 2:
				p.do("GO.THROTTLE k 9 10 20 -1")
				p.below = append(p.below, event{p.now, returned})
			}
		}
	}, func() string {
		outcome := verdict(p.do("GO.THROTTLE k 9 10 20"))
		if outcome == admitted {
			due = append(due, p.now+3000)
		}
		return outcome
	})
}

func reserve() *picture {
	p := newPicture("reserve", "GO.THROTTLE key 9 10 20000 MS RESERVE 8000: a slot, at most 8 s ahead")
	p.belowName, p.over = "callers act", delayed
	return p.run(nil, func() string {
		reply := p.do("GO.THROTTLE k 9 10 20000 MS RESERVE 8000")
		outcome := verdict(reply)
		if outcome == admitted && reply[5] > 0 {
			outcome = delayed
		}
		if outcome != denied {
			p.below = append(p.below, event{p.now + int(reply[5]), outcome})
		}
		return outcome
	})
}

func lockout() *picture {
	p := newPicture("lockout", "GO.THROTTLE key 9 10 20 LOCKOUT 15: a denial locks for 15 s")
	ends := 0
	return p.run(nil, func() string {
		outcome := verdict(p.do("GO.THROTTLE k 9 10 20 1 LOCKOUT 15"))
		if outcome == denied && p.now >= ends {
			ends = p.now + 15_000
			p.locked = append(p.locked, [2]int{p.now, ends})
		}
		return outcome
	})
}

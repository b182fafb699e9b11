package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Times are in ms. begin is a multiple of every period, so the windows that GO.QUOTA aligns end at multiples on the axis.
const begin, axis, tick = 1_800_000_000_000, 90_000, 50 // everything happens at multiples of tick

const burstAt, overloadAt, overloadEnds = 24_500, 54_000, 74_000

// arriving returns how many calls come at an instant: some below the rate, a burst, a pause, an overload of four times the
// rate, and some below the rate again.
func arriving(now int) int {
	switch {
	case now == burstAt:
		return 16
	case now < 20_000 && now%2500 == 500, now >= overloadAt && now < overloadEnds && now%500 == 250,
		now > overloadEnds && now < axis && now%2500 == 1500:
		return 1
	}
	return 0
}

// The outcomes are the colours of the squares: delayed is admitted, for later; charged and returned are units that are settled
// afterwards.
const admitted, denied, delayed, charged, returned = "blue", "orange-line", "green", "purple", "purple-line"

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
	file, title, belowName string
	calls, below           []event // below the calls: when callers act, or what was settled
	meters                 []*meter
	locked                 [][2]int // lockouts
	ends                   []int    // ends of fixed windows
	over                   string   // what usage above the limit is: delayed or charged
	server                 *memory.Server
	now                    int
	later                  map[int][]func() // what happens at an instant, before the calls
}

func newPicture(name, title string) *picture {
	p := &picture{file: "choosing-" + name + ".svg", title: title, server: memory.NewServer(), later: map[int][]func(){}}
	throttled := func() float64 { return float64(p.do("GO.THROTTLE_RO k 9 10 20000 0 MS")[4]) / 2000 } // a unit drains in 2 s
	p.meters = []*meter{{limit: 10, name: "units in use", read: throttled}}
	return p
}

// do runs a command and returns the integers of its reply, the inner ones too.
func (p *picture) do(command string) (ints []int64) {
	reply, err := p.server.Do(funnel.Micros(1000*(begin+p.now)), strings.Fields(command)...)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", command, err)) // the commands of this file are right
	}
	for word := range strings.FieldsSeq(fmt.Sprint(reply)) {
		n, _ := strconv.ParseInt(strings.Trim(word, "[]"), 10, 64)
		ints = append(ints, n)
	}
	return ints
}

// peek sets what the meter reads: the units that a peek does not leave.
func (p *picture) peek(command string) *picture {
	p.meters[0].read = func() float64 {
		reply := p.do(command)
		return float64(reply[1] - reply[2])
	}
	return p
}

// after sees to it that f runs so many ms later.
func (p *picture) after(ms int, f func()) { p.later[p.now+ms] = append(p.later[p.now+ms], f) }

// run goes along the time axis and asks for each call that comes.
func (p *picture) run(ask func() (outcome string)) *picture {
	look := func() {
		for _, m := range p.meters {
			m.use = append(m.use, [2]float64{float64(p.now), m.read()})
		}
	}
	for ; p.now <= axis; p.now += tick {
		look()
		for _, f := range p.later[p.now] {
			f()
		}
		for range arriving(p.now) {
			p.calls = append(p.calls, event{p.now, ask()})
		}
		look()
	}
	return p
}

// ask is a call that is admitted or denied. If it is admitted, then runs.
func (p *picture) ask(command string, then ...func()) string {
	if p.do(command)[0] != 0 {
		return denied
	}
	for _, f := range then {
		f()
	}
	return admitted
}

// simple runs a limiter that only admits or denies.
func (p *picture) simple(command string) *picture {
	return p.run(func() string { return p.ask(command) })
}

// pictures returns all pictures, in the order of the page.
func pictures() []*picture {
	quota := newPicture("quota", "GO.QUOTA key 10 20 1 ALIGN 0: 10 in each 20 s, from every multiple of 20 s").peek("GO.QUOTA_RO k 10 20 0 ALIGN 0")
	quota.ends = []int{20_000, 40_000, 60_000, 80_000}
	return []*picture{
		newPicture("throttle", "GO.THROTTLE key 9 10 20: 10 at once, then one every 2 s").simple("GO.THROTTLE k 9 10 20"),
		newPicture("window", "GO.WINDOW key 10 20: at most 10 in any 20 s").peek("GO.WINDOW_RO k 10 20 0").simple("GO.WINDOW k 10 20"),
		quota.simple("GO.QUOTA k 10 20 1 ALIGN 0"), lease(), force(), reserve(), lockout(), all()}
}

// A job takes 8 s. The tenth crashes: it never gives its slot back, which lapses after 20 s.
func lease() *picture {
	p, job := newPicture("lease", "GO.LEASE key 10 20 id: 10 jobs at once; each runs for 8 s, and one crashes"), 1
	p.meters[0].name = "slots held"
	p.meters[0].read = func() float64 { // an admitted peek counts the slot that it asks for as taken
		reply := p.do("GO.LEASE_RO k 10 20 peek")
		return float64(reply[1] - reply[2] - (1 - reply[0]))
	}
	return p.run(func() string {
		return p.ask(fmt.Sprint("GO.LEASE k 10 20 ", job), func() {
			if id := job; id != 10 {
				p.after(8000, func() { p.do(fmt.Sprint("GO.RELEASE k ", id)) })
			}
			job++
		})
	})
}

// The cost of a call is known 3 s after its estimate of 1 unit was taken. The costs are 4, 1 and 0 in turns.
func force() *picture {
	p, turn := newPicture("force", "GO.THROTTLE key 9 10 20: an estimate of 1 unit, settled 3 s later"), 0
	p.belowName, p.over = "settled", charged
	settle := func(command, outcome string, units int) func() {
		return func() {
			p.do(command)
			p.below = append(p.below, slices.Repeat([]event{{p.now, outcome}}, units)...)
		}
	}
	settlements := []func(){settle("GO.THROTTLE k 9 10 20 3 FORCE", charged, 3), func() {}, settle("GO.THROTTLE k 9 10 20 -1", returned, 1)}
	return p.run(func() string {
		return p.ask("GO.THROTTLE k 9 10 20", func() {
			p.after(3000, settlements[turn%3])
			turn++
		})
	})
}

func reserve() *picture {
	p := newPicture("reserve", "GO.THROTTLE key 9 10 20000 MS RESERVE 8000: a slot, at most 8 s ahead")
	p.belowName, p.over = "callers act", delayed
	return p.run(func() string {
		wait := p.do("GO.THROTTLE k 9 10 20000 MS RESERVE 8000")[5]
		outcome := []string{denied, admitted, delayed}[min(wait, 1)+1]
		if outcome != denied {
			p.below = append(p.below, event{p.now + int(wait), outcome})
		}
		return outcome
	})
}

func lockout() *picture {
	p := newPicture("lockout", "GO.THROTTLE key 9 10 20 LOCKOUT 15: a denial locks for 15 s")
	return p.run(func() string {
		outcome := p.ask("GO.THROTTLE k 9 10 20 1 LOCKOUT 15")
		if n := len(p.locked); outcome == denied && (n == 0 || p.now >= p.locked[n-1][1]) {
			p.locked = append(p.locked, [2]int{p.now, p.now + 15_000})
		}
		return outcome
	})
}

func all() *picture {
	p := newPicture("all", "GO.ALL key THROTTLE 9 10 20 THROTTLE 15 16 80: both limits, or nothing")
	resetAfter := func(place int) float64 {
		return float64(p.do("GO.ALL_RO k THROTTLE 9 10 20000 0 THROTTLE 15 16 80000 0 MS")[place])
	}
	p.meters = []*meter{{limit: 10, name: "of 10 per 20 s", read: func() float64 { return resetAfter(10) / 2000 }},
		{limit: 16, name: "of 16 per 80 s", read: func() float64 { return resetAfter(15) / 5000 }}}
	return p.simple("GO.ALL k THROTTLE 9 10 20 THROTTLE 15 16 80")
}

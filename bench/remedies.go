package main

import (
	"fmt"
	"math/rand/v2"

	"gothrottle/funnel"
)

// The simulated limit: 100 requests at once and 100 per second, on one key. 10 processes ask
// for 60 s. The requests come at random instants. 20 users share them unequally: user i sends
// 1/i of what the first user sends.
const (
	hotLimit     = 100
	processes    = 10
	users        = 20
	simulated    = 60 * funnel.Second
	calmLoad     = 80   // requests per second
	overload     = 1000 // requests per second
	batchSize    = 10
	batchKeeps   = funnel.Second      // units of a batch that were not spent by then are lost
	shareTTL     = 10 * funnel.Second // a process renews its lease twice in this time
	startOfTimes = 1_800_000_000 * funnel.Second
)

// A gcra is a limiter of the server, or one inside a process.
type gcra struct {
	state funnel.ThrottleState
	limit int64 // at once and per second
}

// take asks for 1 unit, or for up to n.
func (g *gcra) take(now funnel.Nanos, n int64) funnel.Verdict {
	p := funnel.ThrottleParams{Limit: g.limit, Quantity: n, UpTo: n > 1,
		Rate: funnel.Rate{Count: 1, Period: funnel.Second / funnel.Nanos(g.limit)}}
	next, v := funnel.Throttle(now, g.state, &p)
	switch v.Change {
	case funnel.Store:
		g.state = next
	case funnel.Forget:
		g.state = funnel.ThrottleState{}
	}
	return v
}

// An arrival is a request that comes at an instant to one process, from one user.
type arrival struct {
	at            funnel.Nanos
	process, user int
}

// arrivals returns the same requests at each call.
func arrivals(perSecond float64) (list []arrival) {
	random := rand.New(rand.NewPCG(10, uint64(perSecond)))
	total := 0.0
	for i := range users {
		total += 1 / float64(i+1)
	}
	for at := 0.0; ; {
		at += random.ExpFloat64() / perSecond
		r := arrival{at: startOfTimes + funnel.Nanos(at*float64(funnel.Second)), process: random.IntN(processes)}
		if r.at >= startOfTimes+simulated {
			return list
		}
		for pick := random.Float64() * total; ; r.user++ {
			if pick -= 1 / float64(r.user+1); pick < 0 || r.user == users-1 {
				break
			}
		}
		list = append(list, r)
	}
}

// A remedy decides requests for one key. Each decide counts its calls of the server.
type remedy struct {
	name string
	make func(calls *int) (decide func(arrival) bool)
}

func remedies() []remedy {
	return []remedy{
		{"one call for each request", func(calls *int) func(arrival) bool {
			return split(calls, 1, func(arrival) int { return 0 })
		}},
		{"denials remembered", func(calls *int) func(arrival) bool { return batches(calls, 1, untilRetry) }},
		{"batches of 10", func(calls *int) func(arrival) bool { return batches(calls, batchSize, forgotten) }},
		{"batches of 10, denials remembered", func(calls *int) func(arrival) bool { return batches(calls, batchSize, untilRetry) }},
		{"batches of 10, denials hold 100 ms", func(calls *int) func(arrival) bool { return batches(calls, batchSize, 100*funnel.Millisecond) }},
		{"split in 4, at random", func(calls *int) func(arrival) bool {
			return split(calls, 4, atRandom(4))
		}},
		{"split in 20, at random", func(calls *int) func(arrival) bool {
			return split(calls, 20, atRandom(20))
		}},
		{"split in 4, by user", func(calls *int) func(arrival) bool {
			return split(calls, 4, func(r arrival) int { return r.user % 4 })
		}},
		{"a tenth for each process, by lease", shares},
	}
}

func atRandom(n int) func(arrival) int {
	random := rand.New(rand.NewPCG(1, 2))
	return func(arrival) int { return random.IntN(n) }
}

// split divides the limit by n. Each part is a limiter of its own.
func split(calls *int, n int, choose func(arrival) int) func(arrival) bool {
	parts := make([]gcra, n)
	for i := range parts {
		parts[i].limit = int64(hotLimit / n)
	}
	return func(r arrival) bool {
		*calls++
		return !parts[choose(r)].take(r.at, 1).Limited
	}
}

// How long a process denies without a call after a denial: not at all, or for the
// retry_after of the reply in ms. Longer than retry_after is any other time.
const (
	forgotten  funnel.Nanos = -1
	untilRetry funnel.Nanos = 0
)

// batches takes up to size units by one call. The process spends them without a call. A
// denial holds for retry_after, and at least for the time hold, unless it is forgotten.
func batches(calls *int, size int64, hold funnel.Nanos) func(arrival) bool {
	limiter := gcra{limit: hotLimit}
	var local [processes]struct {
		units       int64
		until, deny funnel.Nanos
	}
	return func(r arrival) bool {
		own := &local[r.process]
		if own.units > 0 && r.at < own.until {
			own.units--
			return true
		}
		if hold != forgotten && r.at < own.deny {
			return false
		}
		*calls++
		v := limiter.take(r.at, size)
		if v.Limited {
			retry := (v.RetryAfter + funnel.Millisecond - 1) / funnel.Millisecond * funnel.Millisecond
			own.deny = r.at + max(retry, hold)
			return false
		}
		own.units, own.until = v.Granted-1, r.at+batchKeeps
		return true
	}
}

// shares gives each process a tenth of the limit, which the process counts itself. The
// server is called for the lease and for its renewals.
func shares(calls *int) func(arrival) bool {
	var local [processes]gcra
	for i := range local {
		local[i].limit = hotLimit / processes
	}
	*calls = processes * int(simulated/(shareTTL/2))
	return func(r arrival) bool { return !local[r.process].take(r.at, 1).Limited }
}

// A simulation is what a remedy made of the requests.
type simulation struct {
	requests, calls, admitted int
	most                      int // the most admitted within a second
}

func simulate(r remedy, list []arrival) simulation {
	s := simulation{requests: len(list)}
	decide := r.make(&s.calls)
	var times []funnel.Nanos
	for _, q := range list {
		if decide(q) {
			times = append(times, q.at)
		}
	}
	s.admitted = len(times)
	first := 0
	for i, at := range times {
		for at-times[first] > funnel.Second {
			first++
		}
		s.most = max(s.most, i-first+1)
	}
	return s
}

// exactly is how many of some requests the limit admits.
func exactly(list []arrival) int { return simulate(remedies()[0], list).admitted }

func remedyTable() table {
	t := table{{"", "calm: calls per 1,000 requests", "wrongly denied", "overload: calls per 1,000 requests", "admitted of what fits", "most within 1 s"}}
	calm, over := arrivals(calmLoad), arrivals(overload)
	fitsCalm, fitsOver := exactly(calm), exactly(over)
	for _, r := range remedies() {
		c, o := simulate(r, calm), simulate(r, over)
		t = append(t, []string{r.name, perThousand(c), percent(fitsCalm-c.admitted, c.requests), perThousand(o), percent(o.admitted, fitsOver),
			fmt.Sprint(max(c.most, o.most))})
	}
	return t
}

func perThousand(s simulation) string {
	return fmt.Sprintf("%.0f", 1000*float64(s.calls)/float64(s.requests))
}

func percent(part, whole int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

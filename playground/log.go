package main

import (
	"cmp"
	"slices"

	"gothrottle/funnel"
)

// traffic is the calls of a log.
type traffic struct {
	calls  []logged // by user, then by time
	first  []int    // of each user the place of the first call; one more for the end
	rate   funnel.Rate
	peaks  []int64         // of each user the smallest limit that denies no call at the rate
	denied map[int64]int64 // denied calls by limit, as far as decided at the rate
	hits   []int64         // denied calls by user, of the last limit that was decided
}

type logged struct {
	at   funnel.Nanos
	user int32
}

// newTraffic takes calls, in any order, of the users 0 to users-1.
func newTraffic(calls []logged, users int) *traffic {
	t := &traffic{calls: make([]logged, len(calls)), first: make([]int, users+1), peaks: make([]int64, users), hits: make([]int64, users)}
	for _, c := range calls {
		t.first[c.user+1]++
	}
	for user := range users {
		t.first[user+1] += t.first[user]
	}
	place := slices.Clone(t.first)
	for _, c := range calls {
		t.calls[place[c.user]] = c
		place[c.user]++
	}
	for user := range users {
		byTime := func(a, b logged) int { return cmp.Compare(a.at, b.at) }
		if own := t.calls[t.first[user]:t.first[user+1]]; !slices.IsSortedFunc(own, byTime) {
			slices.SortFunc(own, byTime)
		}
	}
	return t
}

// most is the greatest limit that GO.THROTTLE takes at a rate: a full limiter drains within 100 years.
func most(rate funnel.Rate) int64 {
	return int64(min(float64(funnel.MaxPeriod/rate.Period)*float64(rate.Count), funnel.MaxLimit))
}

// setRate makes a rate that of all that follows. It returns the smallest limit that denies no call.
func (t *traffic) setRate(rate funnel.Rate) (limit int64) {
	t.rate, t.denied = rate, map[int64]int64{}
	limit = 1
	for user := range t.peaks {
		_, t.peaks[user] = t.ask(user, most(rate))
		limit = max(limit, t.peaks[user])
	}
	return limit
}

// ask asks a limiter for the calls of one user, as GO.THROTTLE would at their times. It returns how many were denied, and the
// most units in use. Calls at one instant are one call with UPTO, which grants what they would get one after another.
func (t *traffic) ask(user int, limit int64) (denied, used int64) {
	p := funnel.ThrottleParams{Limit: limit, Rate: t.rate, UpTo: true}
	var cell funnel.ThrottleState
	calls := t.calls[t.first[user]:t.first[user+1]]
	for i := 0; i < len(calls); i += int(p.Quantity) {
		for p.Quantity = 1; i+int(p.Quantity) < len(calls) && calls[i+int(p.Quantity)].at == calls[i].at; p.Quantity++ {
		}
		next, v := funnel.Throttle(calls[i].at, cell, &p)
		if v.Change != funnel.Keep {
			cell = next
		}
		denied += p.Quantity - v.Granted
		used = max(used, limit-v.Remaining)
	}
	return denied, used
}

// decide returns how many calls and how many users a limit denies.
func (t *traffic) decide(limit int64) (denied, users int64) {
	limit = min(limit, most(t.rate))
	for user, peak := range t.peaks {
		t.hits[user] = 0
		if peak > limit {
			t.hits[user], _ = t.ask(user, limit)
			denied += t.hits[user]
			users++
		}
	}
	t.denied[limit] = denied
	return denied, users
}

// smallest returns the smallest limit that denies at most this many calls. A greater limit denies no more calls than a
// smaller one. Limits in between are guessed in turn by the share of denied calls and by halves.
func (t *traffic) smallest(allowed int64) int64 {
	low, high := int64(0), max(slices.Max(t.peaks), 1) // low denies too many
	t.denied[low], t.denied[high] = int64(len(t.calls))+1, 0
	for limit, denied := range t.denied {
		if denied > allowed {
			low = max(low, limit)
		} else {
			high = min(high, limit)
		}
	}
	for halve := false; high-low > 1; halve = !halve {
		guess := (low + high) / 2
		if !halve {
			over, all := t.denied[low]-allowed, t.denied[low]-t.denied[high]+1
			guess = min(max(low+(high-low)*over/all, low+1), high-1)
		}
		if denied, _ := t.decide(guess); denied > allowed {
			low = guess
		} else {
			high = guess
		}
	}
	return high
}

// worst returns the users with the most denied calls, the first few of those that have any.
func (t *traffic) worst(few int) (users []int) {
	for user, n := range t.hits {
		if n > 0 {
			users = append(users, user)
		}
	}
	slices.SortFunc(users, func(a, b int) int { return cmp.Or(cmp.Compare(t.hits[b], t.hits[a]), a-b) })
	return users[:min(few, len(users))]
}

package main

import (
	"slices"

	"gothrottle/funnel"
)

// traffic is the calls of a log.
type traffic struct {
	calls [][]funnel.Nanos // of each user the times of its calls, in their order
	rate  funnel.Rate
	peaks []int64 // of each user the smallest limit that denies no call at the rate
}

// newTraffic takes the calls of each user, in any order, and keeps them.
func newTraffic(calls [][]funnel.Nanos) *traffic {
	for _, own := range calls {
		slices.Sort(own)
	}
	return &traffic{calls: calls, peaks: make([]int64, len(calls))}
}

// most is the greatest limit that GO.THROTTLE takes at a rate: a full limiter drains within 100 years.
func most(rate funnel.Rate) int64 {
	return int64(min(float64(funnel.MaxPeriod/rate.Period)*float64(rate.Count), funnel.MaxLimit))
}

// setRate makes a rate that of all that follows. It returns the smallest limit that denies no call.
func (t *traffic) setRate(rate funnel.Rate) (limit int64) {
	t.rate, limit = rate, 1
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
	calls := t.calls[user]
	for i := 0; i < len(calls); i += int(p.Quantity) {
		for p.Quantity = 1; i+int(p.Quantity) < len(calls) && calls[i+int(p.Quantity)] == calls[i]; p.Quantity++ {
		}
		next, v := funnel.Throttle(calls[i], cell, &p)
		if v.Change != funnel.Keep {
			cell = next
		}
		denied += p.Quantity - v.Granted
		used = max(used, limit-v.Remaining)
	}
	return denied, used
}

// decide returns how many calls and how many users a limit denies, the user with the most denied calls, and how many these are.
func (t *traffic) decide(limit int64) (denied, users int64, worst int, hits int64) {
	for user, peak := range t.peaks {
		if peak > limit {
			own, _ := t.ask(user, limit)
			denied += own
			users++
			if own > hits {
				worst, hits = user, own
			}
		}
	}
	return denied, users, worst, hits
}

// recommend returns the smallest limit that denies at most a share of the users, in %, and the robots, who have no say in it.
func (t *traffic) recommend(percent float64) (limit int64, robots []int) {
	robots = t.robots()
	peaks := []int64{1}
	for user, peak := range t.peaks {
		if !slices.Contains(robots, user) {
			peaks = append(peaks, peak)
		}
	}
	slices.Sort(peaks)
	users := len(peaks) - 1
	return peaks[users-int(percent*float64(users)/100)], robots
}

// robots returns users that no burst suits, those with the most calls first. Each makes 5 % or more of the calls that the ones
// before it leave, and needs a limit of 100 or more, ten times that of the median user.
func (t *traffic) robots() (robots []int) {
	users, left := make([]int, len(t.calls)), 0
	for user, own := range t.calls {
		users[user] = user
		left += len(own)
	}
	peaks := slices.Sorted(slices.Values(t.peaks))
	least := 10 * max(10, peaks[(len(peaks)-1)/2])
	slices.SortFunc(users, func(a, b int) int { return len(t.calls[b]) - len(t.calls[a]) })
	for _, user := range users {
		if own := len(t.calls[user]); own*20 >= left && t.peaks[user] >= least {
			robots = append(robots, user)
			left -= own
		}
	}
	return robots
}

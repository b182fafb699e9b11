package main

import (
	"cmp"
	"slices"

	"gothrottle/funnel"
)

// traffic is the calls of a log.
type traffic struct {
	calls []logged // in order of time
	users int
	most  int64 // the greatest number of calls of one user
	cells []funnel.ThrottleState
	hits  []int64 // denied calls by user
}

type logged struct {
	at   funnel.Nanos
	user int32 // 0 to users-1
}

func newTraffic(calls []logged, users int) *traffic {
	t := &traffic{calls: calls, users: users, cells: make([]funnel.ThrottleState, users), hits: make([]int64, users)}
	if byTime := func(a, b logged) int { return cmp.Compare(a.at, b.at) }; !slices.IsSortedFunc(calls, byTime) {
		slices.SortStableFunc(calls, byTime)
	}
	for _, c := range calls {
		t.hits[c.user]++
		t.most = max(t.most, t.hits[c.user])
	}
	return t
}

// decide asks a limiter for each call, as GO.THROTTLE would at the call's time with a key for each user, and returns how
// many calls and how many users were denied. hits has the denied calls of each user until the next decide.
func (t *traffic) decide(limit int64, rate funnel.Rate) (denied, users int64) {
	clear(t.cells)
	clear(t.hits)
	p := funnel.ThrottleParams{Limit: limit, Rate: rate, Quantity: 1}
	for _, c := range t.calls {
		next, v := funnel.Throttle(c.at, t.cells[c.user], &p)
		if v.Change != funnel.Keep {
			t.cells[c.user] = next
		}
		if v.Limited {
			if denied++; t.hits[c.user] == 0 {
				users++
			}
			t.hits[c.user]++
		}
	}
	return denied, users
}

// smallest returns the smallest limit that denies at most this many calls. A greater limit denies no more calls than a
// smaller one.
func (t *traffic) smallest(most int64, rate funnel.Rate) int64 {
	low, high := int64(0), int64(1) // low denies too many
	for denied, _ := t.decide(high, rate); denied > most; denied, _ = t.decide(high, rate) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		middle := (low + high) / 2
		if denied, _ := t.decide(middle, rate); denied > most {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// worst returns the users with the most denied calls, the first few of those that have any.
func (t *traffic) worst(few int) (users []int) {
	for user, n := range t.hits {
		if n == 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(users, n, func(u int, n int64) int { return cmp.Compare(n-1, t.hits[u]-1) })
		if at < few {
			users = slices.Insert(users, at, user)
			users = users[:min(few, len(users))]
		}
	}
	return users
}

package oracle

import (
	"math"
	"sort"

	"gothrottle/funnel"
)

// Link is one of the clauses of a call as shares see it.
type Link struct {
	Limit  int64
	Weight int64  // 0: no share
	Front  []Link // the clauses that have what this one shares: as much as the least that one of them has left
	// InUse returns the units in use at an instant, or for a link without a share Limit minus what it has left, if no call
	// comes until then. The link must not change.
	InUse func(at funnel.Nanos) int64
}

// least returns the least of a number of links.
func least(front []Link, number func(*Link) int64) int64 {
	all := int64(math.MaxInt64)
	for i := range front {
		all = min(all, number(&front[i]))
	}
	return all
}

// Most returns how many units a link can ever have left.
func (l *Link) Most() int64 {
	if l.Weight == 0 {
		return l.Limit
	}
	return min(l.Limit, l.Weight*least(l.Front, (*Link).Most))
}

// Left returns what a link has left at an instant.
func (l *Link) Left(at funnel.Nanos) int64 {
	left := l.Limit - l.InUse(at)
	if l.Weight > 0 {
		left = min(left, l.room(at)-l.InUse(at))
	}
	return max(left, 0)
}

// room returns how many units a share lets a link use at an instant.
func (l *Link) room(at funnel.Nanos) int64 {
	return l.Weight * least(l.Front, func(f *Link) int64 { return f.Left(at) })
}

// Fits reports whether a link's share lets a call take quantity units at an instant.
func (l *Link) Fits(quantity int64, at funnel.Nanos) bool { return l.InUse(at)+quantity <= l.room(at) }

// Wait returns how long it takes from now until a link's share lets a call take quantity units, or Never. What is in use
// only falls, so Wait bisects time.
func (l *Link) Wait(quantity int64, now funnel.Nanos) funnel.Nanos {
	if quantity > l.Weight*least(l.Front, (*Link).Most) {
		return funnel.Never
	}
	const longest = 2 * int(funnel.MaxPeriod)
	return funnel.Nanos(sort.Search(longest, func(ns int) bool { return l.Fits(quantity, now+funnel.Nanos(ns)) }))
}

package oracle

import (
	"sort"

	"gothrottle/funnel"
)

// Link is one of the clauses of a call as shares see it. A chain of links begins with one that has no share. Each other link
// has a share of what the link before it has left.
type Link struct {
	Limit  int64
	Weight int64 // 0: no share
	// InUse returns the units in use at an instant, or for a link without a share Limit minus what it has left, if no call
	// comes until then. The link must not change.
	InUse func(at funnel.Nanos) int64
}

// Left returns what the last link of a chain has left at an instant.
func Left(chain []Link, at funnel.Nanos) int64 {
	last := len(chain) - 1
	l := &chain[last]
	left := l.Limit - l.InUse(at)
	if l.Weight > 0 {
		left = min(left, l.Weight*Left(chain[:last], at)-l.InUse(at))
	}
	return max(left, 0)
}

// Fits reports whether the share of the last link lets a call take quantity units at an instant.
func Fits(chain []Link, quantity int64, at funnel.Nanos) bool {
	last := len(chain) - 1
	return chain[last].InUse(at)+quantity <= chain[last].Weight*Left(chain[:last], at)
}

// Wait returns how long it takes from now until the last link's share lets a call take quantity units, or Never. What is in
// use only falls, so Wait bisects time.
func Wait(chain []Link, quantity int64, now funnel.Nanos) funnel.Nanos {
	most := chain[0].Limit
	for _, l := range chain[1 : len(chain)-1] {
		most = min(most*l.Weight, l.Limit)
	}
	if quantity > most*chain[len(chain)-1].Weight {
		return funnel.Never
	}
	const longest = 2 * int(funnel.MaxPeriod)
	return funnel.Nanos(sort.Search(longest, func(ns int) bool { return Fits(chain, quantity, now+funnel.Nanos(ns)) }))
}

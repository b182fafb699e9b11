package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// An admission is units that were admitted, and when this process knew of it.
type admission struct {
	at    time.Duration
	units int64
}

// The plan of an excess measurement: a few calls let a budget take units. In the pause the
// server forgets them. Then many goroutines ask at once.
const (
	excessCalls = 10
	excessPause = 700 * time.Millisecond // below Budget.Hold
	excessTime  = 300 * time.Millisecond
)

// measureExcess measures how many units above the limit a contender admits.
func (b *bench) measureExcess(s *server, c *clientContender, row *clientRow) error {
	return b.with(s, c, bitingPace, func(l limiter) error {
		began := time.Now()
		keys := visits(1)
		told := make([][]admission, row.Goroutines+1)
		tell := func(g int, a answer) {
			if a.admitted > 0 {
				told[g] = append(told[g], admission{time.Since(began), a.admitted})
			}
		}
		for range excessCalls {
			tell(row.Goroutines, l.ask(context.Background(), keys[:1]))
		}
		time.Sleep(excessPause)
		sum, _ := b.asks(l, c.depth, row.Goroutines, keys, excessTime, tell)
		if sum.denied == 0 && sum.failed > 0 {
			return nil // so many calls failed that the limit was not reached
		}
		if sum.admitted == 0 || sum.denied == 0 {
			return errors.New("the limit does not bite")
		}
		row.Excess = append(row.Excess, rounded(excessOf(slices.Concat(told...), bitingPace)))
		return nil
	})
}

// excessOf returns the largest number of units by which the admissions of any span of time
// exceed burst + rate x span; 0 if none does. It plays the admissions to a bucket that has no
// upper end.
func excessOf(list []admission, p pace) float64 {
	slices.SortFunc(list, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	var level, highest float64
	var last time.Duration
	for _, a := range list {
		level = max(0, level-p.perSecond()*(a.at-last).Seconds()) + float64(a.units)
		last = a.at
		highest = max(highest, level)
	}
	return max(0, highest-float64(p.burst))
}

package funnel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachSeed runs f on n reproducible walks; a failure's name tells the seed.
func eachSeed(t *testing.T, n uint64, f func(*testing.T, *walk)) {
	for seed := range n {
		w := &walk{Rand: rand.New(rand.NewPCG(seed, 0)), now: origin}
		w.newRate()
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, w) }) {
			return
		}
	}
}

// walk makes up a schedule of calls: instants, parameters and quantities.
type walk struct {
	*rand.Rand
	now, limit int64
	rate       Rate
	last       Verdict
}

// logUniform returns 1 to top, every order of magnitude as often.
func (w *walk) logUniform(top int64) int64 {
	n := int64(math.Exp(w.Float64() * math.Log(float64(top))))
	return min(max(n, 1), top)
}

// change gives new parameters, about once in so many times.
func (w *walk) change(once int) {
	switch w.IntN(once) {
	case 0:
		w.newRate()
	case 1:
		w.newLimit()
	}
}

func (w *walk) newRate() {
	old := w.rate
	switch w.IntN(4) {
	case 0: // as people write them
		periods := []int64{1e6, 1e9, 60e9, 3600e9, 86400e9, MaxPeriod}
		w.rate = Rate{periods[w.IntN(len(periods))], 1 + w.Int64N(100)}
	case 1: // a little off the old one, or the same in other terms
		near := [][2]int64{
			{0, 1}, {1, 0}, {old.Period, old.Count}, {old.Period, 0}, {0, 9 * old.Count},
		}[w.IntN(5)]
		w.rate = Rate{min(old.Period+near[0], MaxPeriod), min(old.Count+near[1], MaxLimit)}
		w.rate.Period, w.rate.Count = max(w.rate.Period, 1), max(w.rate.Count, 1)
	default:
		w.rate = Rate{w.logUniform(MaxPeriod), w.logUniform(MaxLimit)}
	}
	if !w.rate.Fits(max(w.limit, 1)) || w.limit == 0 {
		w.newLimit()
	}
}

func (w *walk) newLimit() {
	top := int64(MaxLimit)
	if w.IntN(2) == 0 {
		top = 30
	}
	w.limit = w.logUniform(top)
	for w.limit > 1 && !w.rate.Fits(w.limit) {
		w.limit = (w.limit + 1) / 2
	}
}

// wait lets time pass, by the last reply or at random; never past the last instant.
func (w *walk) wait() {
	var d int64
	switch w.IntN(10) {
	case 0, 1:
		d = w.last.RetryAfter
	case 2:
		d = w.last.RetryAfter - 1
	case 3:
		d = 1
	case 4, 5:
		d = w.Int64N(max(w.rate.Drain(w.logUniform(w.limit)), 1))
	case 6:
		d = w.last.ResetAfter - w.Int64N(2)
	case 7:
		if w.IntN(4) == 0 {
			d = w.logUniform(1 << 58)
		}
	}
	if d > 0 && d < math.MaxInt64-w.now {
		w.now += d
	}
}

func (w *walk) quantity() int64 {
	switch w.IntN(12) {
	case 0:
		return 0
	case 1:
		return -w.logUniform(w.limit)
	case 2:
		return []int64{-MaxLimit - 1, MaxLimit + 1, w.limit + 1, -w.limit}[w.IntN(4)]
	case 3:
		return w.limit
	case 4, 5:
		return min(w.last.Remaining+w.Int64N(2), w.limit)
	case 6, 7, 8:
		return 1
	}
	return w.logUniform(w.limit)
}

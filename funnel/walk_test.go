package funnel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// eachSeed runs f with n reproducible sources of random numbers. A failure's name tells the
// seed.
func eachSeed(t *testing.T, n uint64, f func(*testing.T, *rand.Rand)) {
	for seed := range n {
		r := rand.New(rand.NewPCG(seed, 0))
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, r) }) {
			return
		}
	}
}

// logUniform returns 1 to top, each order of magnitude equally often.
func logUniform[N ~int64](r *rand.Rand, top N) N {
	n := N(math.Exp(r.Float64() * math.Log(float64(top))))
	return min(max(n, 1), top)
}

// randomQuantity makes up a quantity for a call with limit, after the verdict last.
func randomQuantity(r *rand.Rand, limit int64, last funnel.Verdict) int64 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return -logUniform(r, limit)
	case 2:
		return []int64{-funnel.MaxLimit - 1, funnel.MaxLimit + 1, limit + 1, -limit}[r.IntN(4)]
	case 3:
		return limit
	case 4, 5:
		return min(last.Remaining+r.Int64N(2), limit)
	case 6, 7, 8:
		return 1
	}
	return logUniform(r, limit)
}

// walk makes up calls of GCRA limiters: instants, parameters and quantities.
type walk struct {
	*rand.Rand
	now  funnel.Nanos
	p    funnel.ThrottleParams
	last funnel.Verdict // of the last call; the test sets it
}

// eachWalk runs f on n reproducible walks.
func eachWalk(t *testing.T, n uint64, f func(*testing.T, *walk)) {
	eachSeed(t, n, func(t *testing.T, r *rand.Rand) {
		w := &walk{Rand: r, now: origin}
		w.newRate()
		f(t, w)
	})
}

// change makes a new rate or a new limit, each about once in this many calls of change.
func (w *walk) change(once int) {
	switch w.IntN(once) {
	case 0:
		w.newRate()
	case 1:
		w.newLimit()
	}
}

func (w *walk) newRate() {
	old := w.p.Rate
	rate := funnel.Rate{Period: logUniform(w.Rand, funnel.MaxPeriod), Count: logUniform[int64](w.Rand, funnel.MaxLimit)}
	switch w.IntN(4) {
	case 0: // as people write them
		periods := []funnel.Nanos{1e6, 1e9, 60e9, 3600e9, 86400e9, funnel.MaxPeriod}
		rate = funnel.Rate{Period: periods[w.IntN(len(periods))], Count: 1 + w.Int64N(100)}
	case 1: // a little off the old one, or the same in other terms
		period, count := int64(old.Period), old.Count
		near := [][2]int64{{0, 1}, {1, 0}, {period, count}, {period, 0}, {0, 9 * count}}[w.IntN(5)]
		rate.Period = max(min(old.Period+funnel.Nanos(near[0]), funnel.MaxPeriod), 1)
		rate.Count = max(min(count+near[1], funnel.MaxLimit), 1)
	}
	w.p.Rate = rate
	if !rate.Fits(max(w.p.Limit, 1)) || w.p.Limit == 0 {
		w.newLimit()
	}
}

func (w *walk) newLimit() {
	top := int64(funnel.MaxLimit)
	if w.IntN(2) == 0 {
		top = 30
	}
	w.p.Limit = logUniform(w.Rand, top)
	for w.p.Limit > 1 && !w.p.Rate.Fits(w.p.Limit) {
		w.p.Limit = (w.p.Limit + 1) / 2
	}
}

// wait lets time pass, by the last verdict or at random; never past the last instant.
func (w *walk) wait() {
	var d funnel.Nanos
	switch w.IntN(10) {
	case 0, 1:
		d = w.last.RetryAfter
	case 2:
		d = w.last.RetryAfter - 1
	case 3:
		d = 1
	case 4, 5:
		d = funnel.Nanos(w.Int64N(max(int64(w.p.Rate.Drain(logUniform(w.Rand, w.p.Limit))), 1)))
	case 6:
		d = w.last.ResetAfter - funnel.Nanos(w.IntN(2))
	case 7:
		if w.IntN(4) == 0 {
			d = logUniform[funnel.Nanos](w.Rand, 1<<58)
		}
	}
	if d > 0 && d < math.MaxInt64-w.now {
		w.now += d
	}
}

// anyCall returns the parameters of the next call, at times with an option.
func (w *walk) anyCall() funnel.ThrottleParams {
	p := w.call()
	if p.UpTo {
		return p
	}
	switch w.IntN(8) {
	case 0, 1:
		p.Force = true
	case 2, 3:
		p.Reserve, p.MaxWait = true, w.length()
	case 4:
		p.Lockout = shortened(max(w.length(), funnel.Millisecond), w.now)
	}
	return p
}

// shortened returns lockout, or what is left until the last instant of Nanos if that is less.
func shortened(lockout, now funnel.Nanos) funnel.Nanos { return min(lockout, math.MaxInt64-now) }

// length returns a length of time: what units take to drain, about the last wait, or at random.
func (w *walk) length() funnel.Nanos {
	lengths := []funnel.Nanos{
		0, w.p.Rate.Drain(1), w.p.Rate.Drain(w.p.Limit), w.p.Rate.Drain(logUniform(w.Rand, 3*w.p.Limit)),
		w.last.RetryAfter, w.last.RetryAfter - 1, w.last.ResetAfter, logUniform(w.Rand, funnel.MaxPeriod),
	}
	if w.IntN(20) == 0 {
		return funnel.MaxPeriod
	}
	return min(max(lengths[w.IntN(len(lengths))], 0), funnel.MaxPeriod)
}

// call returns the parameters of the next call: a new quantity, at times with UPTO.
func (w *walk) call() funnel.ThrottleParams {
	w.p.Quantity, w.p.UpTo = randomQuantity(w.Rand, w.p.Limit, w.last), w.IntN(5) == 0
	return w.p
}

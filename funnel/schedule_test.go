package funnel_test

import (
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// schedule makes up calls of limiters that count in microseconds: windows, quotas and leases.
type schedule struct {
	*rand.Rand
	now      funnel.Micros
	earliest funnel.Micros // the clock is never set back behind this
	limit    int64
	period   funnel.Micros
	longest  funnel.Micros // what a period is at most
	offset   funnel.Micros
	last     funnel.Verdict // of the last call; the test sets it

	exact      bool
	upTo       bool // some calls say UPTO
	force      bool // some calls say FORCE
	refundsToo bool // some calls give back
	setsBack   bool // at times the clock is set back

	newPeriods, newLimits, newExact int // each parameter changes once in this many calls; 0: never
}

// lastMicros is the last instant of a call for which a double holds every time that it stores.
const lastMicros = 1<<53 - maxPeriodMicros

// eachSchedule runs f on n reproducible schedules.
func eachSchedule(t *testing.T, n uint64, f func(*testing.T, *schedule)) {
	eachSeed(t, n, func(t *testing.T, r *rand.Rand) {
		s := &schedule{Rand: r, now: originMicros + funnel.Micros(r.IntN(1_000_000)), longest: maxPeriodMicros}
		s.newLimit()
		s.newPeriod()
		f(t, s)
	})
}

// oneIn is true once in n times; never if n is 0.
func (s *schedule) oneIn(n int) bool { return n > 0 && s.IntN(n) == 0 }

// next brings new parameters and lets time pass.
func (s *schedule) next() {
	if s.oneIn(s.newPeriods) {
		s.newPeriod()
	}
	if s.oneIn(s.newLimits) {
		s.newLimit()
	}
	if s.oneIn(s.newExact) {
		s.exact = !s.exact
	}
	s.wait()
	if s.setsBack && s.oneIn(25) {
		s.now = max(s.now-logUniform(s.Rand, 2*s.period), s.earliest)
	}
}

func (s *schedule) newPeriod() {
	usual := []funnel.Micros{1000, 1007, 1e6, 7_000_003, 60e6, 120e6, 3600e6, 86400e6, s.longest, logUniform(s.Rand, s.longest)}
	s.period = min(max(usual[s.IntN(len(usual))], 1000), s.longest)
	s.offset = logUniform(s.Rand, maxPeriodMicros) * funnel.Micros(1-2*s.IntN(2))
}

func (s *schedule) newLimit() {
	usual := []int64{
		1, 2, 100, funnel.WindowParts, funnel.WindowParts + 1, 150, 10_000, funnel.MaxLimit,
		logUniform[int64](s.Rand, funnel.MaxLimit), logUniform[int64](s.Rand, 30),
	}
	s.limit = usual[s.IntN(len(usual))]
}

// wait lets time pass: by the last reply, by parts of the period, or at random.
func (s *schedule) wait() {
	retry, reset := s.last.RetryAfter.Micros(), s.last.ResetAfter.Micros()
	part := max(s.period/funnel.WindowParts, 1)
	waits := []funnel.Micros{
		0, 0, 1, retry, retry - 1, reset - funnel.Micros(s.IntN(2)), part - 1, part, part + 1, logUniform(s.Rand, part),
		s.below(3 * part), s.below(s.period), logUniform(s.Rand, 2*s.period),
		part - s.now*funnel.WindowParts%s.period/funnel.WindowParts,
	}
	d := waits[s.IntN(len(waits))]
	if d > 0 && s.now+d <= lastMicros {
		s.now += d
	}
}

// below returns 0 to n-1.
func (s *schedule) below(n funnel.Micros) funnel.Micros { return funnel.Micros(s.Int64N(int64(n))) }

// quantity is a random one, or a small part of the limit so that many calls fit.
func (s *schedule) quantity() int64 {
	quantity := randomQuantity(s.Rand, s.limit, s.last)
	if s.IntN(3) == 0 {
		quantity = max(s.Int64N(max(s.limit/20, 2)), 1)
	}
	if quantity < 0 && !s.refundsToo {
		return -quantity
	}
	return quantity
}

package funnel

import "testing"

// schedule makes up calls of limiters that count in microseconds: windows and quotas.
// Of the walk, now is in µs here and rate is unused.
type schedule struct {
	*walk
	period, offset int64
	longest        int64 // what a period is at most
	exact          bool
	upTo           bool // some calls say UPTO
	refundsToo     bool // some give back
	setsBack       bool // at times the clock is set back

	newPeriods, newLimits, newExact int // one in so many calls brings one; 0: none does
}

// eachSchedule runs f on n reproducible schedules.
func eachSchedule(t *testing.T, n uint64, f func(*testing.T, *schedule)) {
	eachSeed(t, n, func(t *testing.T, w *walk) {
		s := &schedule{walk: w, longest: MaxPeriod / micro}
		w.now = originMicros + w.Int64N(1_000_000)
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
		s.now = max(s.now-s.logUniform(2*s.period), 0)
	}
}

func (s *schedule) newPeriod() {
	usual := []int64{1000, 1007, 1e6, 7_000_003, 60e6, 120e6, 3600e6, 86400e6, s.longest, s.logUniform(s.longest)}
	s.period = min(max(usual[s.IntN(len(usual))], 1000), s.longest)
	s.offset = s.logUniform(MaxPeriod/micro) * int64(1-2*s.IntN(2))
}

func (s *schedule) newLimit() {
	usual := []int64{1, 2, 100, WindowParts, WindowParts + 1, 150, 10_000, MaxLimit, s.logUniform(MaxLimit), s.logUniform(30)}
	s.limit = usual[s.IntN(len(usual))]
}

// wait lets time pass: by the last reply, by parts of the period, or at random.
func (s *schedule) wait() {
	retry, reset := s.last.RetryAfter/micro, s.last.ResetAfter/micro
	part := max(s.period/WindowParts, 1)
	waits := []int64{
		0, 0, 1, retry, retry - 1, reset - s.Int64N(2), part - 1, part, part + 1, s.logUniform(part),
		s.Int64N(3 * part), s.Int64N(s.period), s.logUniform(2 * s.period), part - s.now*WindowParts%s.period/WindowParts,
	}
	d := waits[s.IntN(len(waits))]
	if d > 0 && s.now+d <= 1<<52 {
		s.now += d
	}
}

// quantity is the walk's, or a small part of the limit so that many calls fit.
func (s *schedule) quantity() int64 {
	quantity := s.walk.quantity()
	if s.IntN(3) == 0 {
		quantity = max(s.Int64N(max(s.limit/20, 2)), 1)
	}
	if quantity < 0 && !s.refundsToo {
		return -quantity
	}
	return quantity
}

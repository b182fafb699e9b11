package funnel_test

// This file makes up random calls, which no transcript holds, and checks what every verdict promises.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

const (
	// origin is the instant of the first call, unless a test says otherwise.
	origin funnel.Nanos = 1_700_000_000_000_000_000
	// originMicros is origin in the unit of windows, quotas and leases.
	originMicros = funnel.Micros(origin / funnel.Microsecond)

	maxPeriodMicros = funnel.Micros(funnel.MaxPeriod / funnel.Microsecond)
	// lastMicros is the last instant of a call for which a double holds every time that it stores.
	lastMicros = 1<<53 - maxPeriodMicros
)

// sample returns n, or in short runs a quarter of it.
func sample(n int) int {
	if testing.Short() {
		n /= 4
	}
	return n
}

// eachSeed runs f with a sample of n reproducible sources of random numbers. A failure's name has the seed.
func eachSeed(t *testing.T, n int, f func(*testing.T, *rand.Rand)) {
	for seed := range uint64(sample(n)) {
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

// tally counts how often random calls did what a test is about.
type tally map[string]int

func (n tally) count(what string, when bool) {
	if when {
		n[what]++
	}
}

// atLeast fails a test whose random calls prove nothing, because too few of them did what the test is about.
func (n tally) atLeast(t *testing.T, least int, what ...string) {
	t.Helper()
	for _, w := range what {
		if n[w] < sample(least) && !t.Failed() {
			t.Errorf("only %d times %s: %v", n[w], w, n)
		}
	}
}

// partial reports whether a call with UPTO got a part of its quantity.
func partial(quantity int64, v funnel.Verdict) bool {
	return v.Granted > 0 && v.Granted < quantity
}

// inRange checks what holds for every verdict on a call with limit and quantity. anyQuantity says
// that the call has UPTO or FORCE, so that no quantity is too large for ever.
func inRange(t testing.TB, limit, quantity int64, anyQuantity bool, v funnel.Verdict) {
	t.Helper()
	wait := v.RetryAfter > 0
	never := quantity > limit && !anyQuantity
	switch {
	case v.Remaining < 0 || v.Remaining > limit || v.ResetAfter < 0 || v.RetryAfter < funnel.Never,
		(v.RetryAfter == funnel.Never) != never || never && !v.Limited,
		wait != (v.Limited && !never || partial(quantity, v)),
		v.Limited && v.Granted != 0, partial(quantity, v) && (!anyQuantity || v.Remaining != 0):
		t.Fatalf("out of range with limit %d, quantity %d, UPTO or FORCE %v: %+v", limit, quantity, anyQuantity, v)
	}
}

// agree reports whether a verdict is what the oracle wants. Of a call with TooMuch only
// that it changes nothing is compared.
func agree(v, want funnel.Verdict) bool {
	if v.TooMuch && want.TooMuch {
		return v.Change == funnel.Keep && v.Granted == 0 && !v.Limited
	}
	return v == want
}

// promises checks what a verdict says of later instants: from ResetAfter on the model is void, and after RetryAfter the same
// call is admitted. Both are so 1 us sooner in no case.
func promises(t testing.TB, now funnel.Micros, v funnel.Verdict, void func(at funnel.Micros) bool, again func(at funnel.Micros) funnel.Verdict) {
	t.Helper()
	if empty := now + v.ResetAfter.Micros(); !v.TooMuch && (!void(empty) || empty > now && void(empty-1)) {
		t.Fatalf("%d: %+v: the model is not void from %d on", now, v, empty)
	}
	if v.RetryAfter <= 0 {
		return
	}
	at := now + v.RetryAfter.Micros()
	if v := again(at); v.Limited {
		t.Fatalf("%d: waited, and %+v", at, v)
	}
	if v := again(at - 1); !v.Limited {
		t.Fatalf("%d: 1 us early, and %+v", at-1, v)
	}
}

// schedule makes up calls of windows, quotas and leases, which count in microseconds. It makes them as commands of a server
// in memory, whose keys never expire: so the clock can be set back.
type schedule struct {
	*rand.Rand
	*memory.Server
	now      funnel.Micros
	earliest funnel.Micros // the clock is never set back behind this
	limit    int64
	period   funnel.Micros // whole ms
	longest  funnel.Micros // what a period is at most
	offset   funnel.Micros
	last     funnel.Verdict // of the last call; the test sets it

	exact, refunds, force bool // some calls are so
	setsBack              bool // at times the clock is set back

	newPeriods, newLimits, newExact int // each parameter changes once in this many calls; 0: never
}

// eachSchedule runs f on a sample of n reproducible schedules.
func eachSchedule(t *testing.T, n int, f func(*testing.T, *schedule)) {
	eachSeed(t, n, func(t *testing.T, r *rand.Rand) {
		s := &schedule{Rand: r, Server: memory.NewServer(), longest: maxPeriodMicros}
		s.SetLag(1 << 60)
		s.now = originMicros + funnel.Micros(r.IntN(1_000_000))
		s.refunds, s.setsBack, s.force = s.IntN(4) > 0, s.IntN(3) == 0, s.IntN(2) == 0
		switch s.IntN(16) {
		case 0, 1:
			s.now = lastMicros - logUniform(r, maxPeriodMicros)
		case 2, 3:
			s.now = logUniform(r, originMicros) // in front of most offsets
		case 4:
			s.now = 0
		}
		s.newLimit()
		s.newPeriod()
		f(t, s)
	})
}

// ask makes a call whose times are in ms. Its reply must be what the model's verdict says. After a call that takes or gives
// back units the key expires when nothing is in use, or by up to the slack later.
func (s *schedule) ask(t testing.TB, line string, limit int64, want funnel.Verdict, sixth ...int64) {
	t.Helper()
	reply, err := s.Do(s.now, strings.Fields(line)...)
	retry := int64(-1)
	if want.RetryAfter > 0 {
		retry = millis(want.RetryAfter)
	}
	text := fmt.Sprint(append([]int64{one(want.Limited), limit, want.Remaining, retry, millis(want.ResetAfter)}, sixth...))
	if want.TooMuch && err != nil && err.Error() == commands.ErrTooMuchInUse.Text() {
		return
	}
	if fmt.Sprint(reply) != text || err != nil {
		t.Fatalf("%d: %s: %v, %v, want %s", s.now, line, reply, err, text)
	}
	if want.Change == funnel.Store && want.ResetAfter < math.MaxInt64 {
		end := millis((s.now + want.ResetAfter.Micros()).Nanos())
		if at := s.Get("k").Expire; at < end || at > end+max(int64(s.period)/4000, 1000) {
			t.Fatalf("%d: %s: the key expires at %d, and nothing is in use from %d on", s.now, line, at, end)
		}
	}
}

// millis returns a length of time in ms, rounded up.
func millis(n funnel.Nanos) int64 {
	return int64((n-1)/funnel.Millisecond) + one(n > 0)
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// params are those of a random call of a window, or but for Exact of a quota.
type params = funnel.WindowParams

// askFor makes a call for units, with an option of its command or "".
func (s *schedule) askFor(t testing.TB, command string, p params, option string, want funnel.Verdict) {
	t.Helper()
	line := fmt.Sprint(command, " k ", p.Limit, " ", int64(p.Period)/1000, " ", p.Quantity, " MS ", option)
	switch {
	case p.UpTo:
		s.ask(t, line+" UPTO", p.Limit, want, want.Granted)
	case p.Force:
		s.ask(t, line+" FORCE", p.Limit, want)
	default:
		s.ask(t, line, p.Limit, want)
	}
	s.last = want
}

// entries returns how many entries or slots the key has.
func (s *schedule) entries() int {
	if v := s.Get("k"); v != nil {
		return len(v.Set)
	}
	return 0
}

// oneIn is true once in n times; never if n is 0.
func (s *schedule) oneIn(n int) bool { return n > 0 && s.IntN(n) == 0 }

// call makes up the next call: new parameters, time that passes, and a quantity.
func (s *schedule) call() params {
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
	p := params{Limit: s.limit, Period: s.period, Quantity: s.quantity(), Exact: s.exact, UpTo: s.IntN(3) == 0}
	p.Force = s.force && !p.UpTo && s.IntN(4) == 0
	return p
}

func (s *schedule) newPeriod() {
	usual := []funnel.Micros{1000, 7000, 1e6, 7_001_000, 60e6, 120e6, 3600e6, 86400e6, s.longest, logUniform(s.Rand, s.longest)}
	s.period = min(max(usual[s.IntN(len(usual))], 1000), s.longest) / 1000 * 1000
	s.offset = logUniform(s.Rand, maxPeriodMicros) / 1000 * funnel.Micros(1000-2000*s.IntN(2))
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
	if quantity < 0 && !s.refunds {
		return -quantity
	}
	return quantity
}

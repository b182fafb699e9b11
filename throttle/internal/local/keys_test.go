package local

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rate is a limit of some units, of which count drain each second.
type rate struct{ units, count int64 }

func (r rate) Part(within time.Duration) float64 {
	return float64(r.count) * within.Seconds() / float64(r.units)
}

var (
	first  = rate{1000, 1000}
	second = rate{2000, 2000}
	plenty = Reply{Allowed: true, Remaining: 1000}
)

// newKeys returns the keys of a client with a clock of its own.
func newKeys(units int64, hold time.Duration) *Keys[rate] {
	return &Keys[rate]{Units: units, Hold: hold, Closed: new(atomic.Bool), Grew: func() {}}
}

// at returns a clock that stands still.
func at(now time.Duration) func() time.Duration { return func() time.Duration { return now } }

// Units that come while a call waits for their key are spent, and not of a time to come.
func TestTake_unitsOfMeanwhile(t *testing.T) {
	k, now := newKeys(5, time.Hour), time.Duration(0)
	k.Keep("bob", &first, 0, 0, 1, &plenty)
	spent, s := make(chan int64), k.lock("bob")
	go func() {
		_, n, _ := k.Take("bob", &first, 3, func() time.Duration { return now })
		spent <- n
	}()
	awaitLocked(1)
	now = time.Minute
	k.keep(s, &first, now, now, 2, &plenty)
	s.mu.Unlock()
	require.EqualValues(t, 3, <-spent)
}

// Units of a grant are spent once, however many ask at the same time, and nobody spends those that are left when it ends.
func TestGrant_spentOnce(t *testing.T) {
	require.EqualValues(t, 2, newGrant(nil, first, 9, 0, &plenty).spend(2))
	for range 100 {
		g := newGrant(nil, first, 1000, 0, &plenty)
		var spent atomic.Int64
		var wg sync.WaitGroup
		for i := range int64(8) {
			wg.Go(func() {
				for range 200 {
					spent.Add(g.spend(i%3 + 1))
				}
			})
		}
		left := g.end()
		wg.Wait()
		require.EqualValues(t, 1000, spent.Load()+left)
		require.Equal(t, spent.Load(), g.units)
		require.Zero(t, g.spend(5))
	}
}

// A key that was idle for long asks for as much as a new one. So calls do not notice that idle keys are dropped. A key of
// which less was granted than asked takes nothing in advance.
func TestTake_forgetsTheRate(t *testing.T) {
	const hold = time.Second
	k := newKeys(100, hold)
	more := func(name string, of rate, now time.Duration) int64 {
		_, _, more := k.Take(name, &of, 1000, at(now))
		return more
	}
	busy := func(name string, of rate) string {
		for i := range 10 {
			sent := time.Hour + time.Duration(i)*10*time.Millisecond
			k.Keep(name, &of, sent, sent, more(name, of, sent), &plenty)
		}
		return name
	}
	now := time.Hour + 90*time.Millisecond + hold + rateKnown
	require.NotZero(t, more(busy("busy", first), first, now))
	slow := rate{1000, 10} // of which a hundredth drains within hold
	require.EqualValues(t, 1, more(busy("slow", slow), slow, now))
	require.Equal(t, more("fresh", first, now+1), more(busy("late", first), first, now+1))
	require.Equal(t, k.find("fresh").use, k.find("late").use)
	k.Keep(busy("scarce", first), &first, now, now, 0, &Reply{Allowed: true, Remaining: 1000, RetryAfter: 1})
	require.Zero(t, more("scarce", first, now))
}

// Units are forgotten after their time, by a clock that may jump.
func TestSpend_unitsGetOld(t *testing.T) {
	k := newKeys(10, time.Second)
	k.Keep("bob", &first, 0, time.Millisecond, 10, &Reply{Remaining: 50, ResetAfter: time.Second})
	u, spent := k.Spend("bob", &first, at(time.Second))
	require.True(t, spent)
	require.Equal(t, Unit[rate]{Remaining: 59, ResetAfter: time.Second}, u)
	for _, now := range []time.Duration{-time.Minute, time.Second + 1, time.Minute} {
		_, spent = k.Spend("bob", &first, at(now))
		require.False(t, spent)
	}
}

// One limit of a name holds units of a key, until the units of the last take are old. No sweep drops the key before.
func TestTake_claim(t *testing.T) {
	k := newKeys(5, time.Second)
	more := func(of rate, now time.Duration) bool { // than one unit
		if s := k.find("bob"); s != nil && s.use.rate > 0 {
			s.use.rate, s.use.remaining = 100, 1000
		}
		_, _, more := k.Take("bob", &of, 1, at(now))
		return more > 0
	}
	require.False(t, more(second, 0)) // nothing is known
	require.True(t, more(second, time.Millisecond))
	k.Sweep(0)
	require.False(t, more(first, time.Millisecond+time.Second))
	require.True(t, more(second, time.Millisecond+time.Second))
	require.False(t, more(first, 2*time.Second+time.Millisecond))
	require.False(t, more(first, 2*time.Second+2*time.Millisecond)) // it holds, and nothing is known
	require.True(t, more(first, 2*time.Second+3*time.Millisecond))
	require.False(t, more(second, 3*time.Second+3*time.Millisecond))
	s, late := k.find("bob"), 2*time.Second+2*time.Millisecond+time.Second+rateKnown
	require.True(t, more(first, late))
	k.Sweep(late + 1)
	require.Same(t, s, k.find("bob"))
	require.False(t, more(second, 0)) // the clock was set back
	require.True(t, more(second, time.Millisecond))
}

// Units that are taken ahead belong to the limit that took them. With those that are left they never exceed the budget.
func TestAhead(t *testing.T) {
	k := newKeys(10, time.Second)
	k.Keep("bob", &first, 0, 0, 4, &plenty)
	s := k.find("bob")
	g := s.grant.Load()
	s.use.rate = 1000
	require.EqualValues(t, 6, k.Ahead(g, time.Millisecond))
	require.Zero(t, k.Ahead(g, time.Millisecond)) // the first call is under way
	k.Came(g, 0, 0, 0, nil)
	require.EqualValues(t, 6, k.Ahead(g, time.Millisecond), "the first call has failed")
	k.Came(g, 0, 0, 6, &plenty)
	require.Zero(t, k.Ahead(g, time.Millisecond), "they have come")
	_, spent, _ := k.Take("bob", &second, 1, at(time.Millisecond))
	require.Zero(t, spent)
	require.Same(t, g, s.grant.Load())
	_, spent, _ = k.Take("bob", &first, 10, at(time.Millisecond))
	require.EqualValues(t, 10, spent)
}

// awaitLocked waits until n goroutines wait for a mutex: a bubble's clock would stand still meanwhile.
func awaitLocked(n int) {
	text := make([]byte, 1<<20)
	for tries := 0; tries < 10_000 && bytes.Count(text[:runtime.Stack(text, true)], []byte(" [sync.Mutex.Lock")) < n; tries++ {
		runtime.Gosched()
	}
}

// A call that waits for a key which a sweep drops meanwhile gets another one.
func TestSweep_whileACallWaits(t *testing.T) {
	k := newKeys(0, 0)
	for range 30 {
		s := k.lock("bob")
		var wg sync.WaitGroup
		wg.Go(func() { k.Sweep(0) })
		wg.Go(func() {
			s := k.lock("bob")
			defer s.mu.Unlock()
			if k.find("bob") != s {
				t.Error("the key is nobody's")
			}
		})
		awaitLocked(2)
		s.mu.Unlock()
		wg.Wait()
	}
}

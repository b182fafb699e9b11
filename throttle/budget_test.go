package throttle

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Units of a grant are spent once, whoever asks at the same time, and what is left when it ends is nobody's.
func TestGrant_spentOnce(t *testing.T) {
	require.EqualValues(t, 2, newGrant(bounds{}, 9, 0, &Result{}).spend(2))
	for range 100 {
		g := newGrant(bounds{}, 1000, 0, &Result{})
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
func TestBudget_forgetsItsRate(t *testing.T) {
	const hold = time.Second
	c := open(t, ints{}, Clock(time.Now), Budget(100, hold))
	l := c.Rate("t", PerSecond(1000)).l
	busy := func(key string) *state {
		s := l.lock(key)
		s.mu.Unlock()
		for i := range 10 {
			sent := time.Hour + time.Duration(i)*10*time.Millisecond
			l.keep(key, sent, l.refill(s, sent), &Result{Allowed: true, Remaining: 1000})
		}
		return s
	}
	now := time.Hour + 90*time.Millisecond + hold + rateKnown
	require.NotZero(t, l.refill(busy("busy"), now))
	l.count = 10 // of which a hundredth drains within hold
	require.EqualValues(t, 1, l.refill(busy("slow"), now))
	late, fresh := busy("late"), new(state)
	require.Equal(t, l.refill(fresh, now+1), l.refill(late, now+1))
	require.Equal(t, fresh.use, late.use)
	scarce := busy("scarce")
	l.keep("scarce", now, 0, &Result{Allowed: true, Remaining: 1000, RetryAfter: 1})
	require.Zero(t, l.refill(scarce, now))
}

// Units are forgotten after their time: by a timer, and by a clock of the caller's, which may jump.
func TestBudget_unitsGetOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		for _, now := range []func() time.Time{nil, func() time.Time { return time.Now().Add(ahead) }} {
			c := open(t, ints{}, Clock(now), Budget(10, time.Second))
			l, r := c.Rate("t", PerSecond(100)).l, Result{Remaining: 50, ResetAfter: time.Second}
			sent := c.conn.Now()
			time.Sleep(time.Millisecond) // until the reply
			l.keep("", sent, 10, &r)
			s := l.find("")
			time.Sleep(time.Second - time.Millisecond - 1)
			require.True(t, l.spend(s, &r))
			require.Equal(t, Result{Allowed: true, Limit: 100, Remaining: 59, Granted: 1, ResetAfter: time.Second, Source: FromBudget}, r)
			for _, ahead = range []time.Duration{-time.Minute, time.Minute} {
				require.Equal(t, now == nil, l.spend(s, &r))
			}
			ahead = 0
			time.Sleep(2)
			require.False(t, l.spend(s, &r))
		}
	})
}

type wrongType struct{}

func (wrongType) Error() string { return "WRONGTYPE" }
func (wrongType) RedisError()   {}

// Units that one key refuses do not keep the units of others from going back. A server that does not answer does.
func TestGiveBack_errors(t *testing.T) {
	const keys = 5000
	for fails, want := range map[error]int64{wrongType{}: keys, io.EOF: 256 * (5 + 4)} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			c := open(t, process(func(context.Context, redis.Cmder) error { sent.Add(1); return fails }), Budget(5, time.Hour))
			l := c.Rate("t", PerHour(10)).l
			for i := range keys {
				l.keep(fmt.Sprint(i), c.conn.Now(), 1, &Result{})
			}
			require.ErrorIs(t, c.Close(), fails)
			require.LessOrEqual(t, sent.Load(), want)
			require.GreaterOrEqual(t, sent.Load(), min(want, 256*5/2))
		})
	}
}

// Units that got old by a clock of the caller's stay taken: others may have been admitted in their place.
func TestGiveBack_old(t *testing.T) {
	for ahead, want := range map[time.Duration]int64{0: 1, time.Minute: 0} {
		var sent atomic.Int64
		started := time.Now()
		now := func() time.Time { return started }
		c := open(t, process(func(context.Context, redis.Cmder) error { sent.Add(1); return nil }), Clock(func() time.Time { return now() }), Budget(5, time.Second))
		l := c.Rate("t", PerHour(10)).l
		l.keep("bob", c.conn.Now(), 1, &Result{})
		l.sweep()
		now = func() time.Time { return started.Add(ahead) }
		_ = c.Close() // the reply is empty
		require.Equal(t, want, sent.Load(), ahead)
	}
}

// Nothing holds a grant that has ended, or a client that was closed: no timer waits any more. The heap of the
// runtime holds up to a quarter of stopped timers.
func TestClose_leavesNothing(t *testing.T) {
	const clients, times = 40, 40
	var closed []weak.Pointer[Client]
	for range clients {
		c, err := New(ints{0, 10, 0, 1, 1000, 1}, Budget(5, time.Hour), DenyCache(true))
		require.NoError(t, err)
		var grants []weak.Pointer[grant]
		l := c.Rate("t", PerHour(10)).l
		for range times {
			l.lock("bob").end()
			l.find("bob").mu.Unlock()
			l.keep("bob", c.conn.Now(), 5, &Result{})
			grants = append(grants, weak.Make(l.find("bob").grant.Load()))
		}
		require.Less(t, held(grants), times/2)
		require.NoError(t, c.Close())
		closed = append(closed, weak.Make(c))
	}
	require.Less(t, held(closed), clients/2)
}

// One limit of a name holds units of a key, until the units of the last take are old. No sweep drops the key before.
func TestBudget_claim(t *testing.T) {
	began, at := time.Now(), time.Duration(0)
	first := open(t, ints{}, Clock(func() time.Time { return began.Add(at) }), Budget(5, time.Second)).Rate("t", PerSecond(1000))
	second := first.With(PerSecond(2000))
	more := func(r Rate, now time.Duration) bool { // than one unit
		s := r.l.lock("bob")
		defer s.mu.Unlock()
		if s.use.rate > 0 {
			s.use.rate, s.use.remaining = 100, 1000
		}
		return r.l.refill(s, now) > 0
	}
	require.False(t, more(second, 0)) // nothing is known
	require.True(t, more(second, time.Millisecond))
	first.l.sweep()
	require.False(t, more(first, time.Millisecond+time.Second))
	require.True(t, more(second, time.Millisecond+time.Second))
	require.False(t, more(first, 2*time.Second+time.Millisecond))
	require.False(t, more(first, 2*time.Second+2*time.Millisecond)) // it holds, and nothing is known
	require.True(t, more(first, 2*time.Second+3*time.Millisecond))
	require.False(t, more(second, 3*time.Second+3*time.Millisecond))
	s, late := first.l.find("bob"), 2*time.Second+2*time.Millisecond+time.Second+rateKnown
	require.True(t, more(first, late))
	at = late + 1
	first.l.sweep()
	require.Same(t, s, first.l.find("bob"))
}

// Units that are taken ahead belong to the limit that took them. With those that are left they never exceed the budget.
func TestBudget_ahead(t *testing.T) {
	began := time.Now()
	first := open(t, ints{}, Clock(func() time.Time { return began }), Budget(10, time.Second)).Rate("t", PerSecond(1000))
	l, r := first.l, Result{Allowed: true, Remaining: 1000}
	l.keep("bob", 0, 4, &r)
	s := l.find("bob")
	g := s.grant.Load()
	s.use.rate = 1000
	require.EqualValues(t, 6, l.wantsAhead(s, g, time.Millisecond))
	require.Zero(t, l.wantsAhead(s, g, time.Millisecond)) // the first call is under way
	l.keep("bob", 0, 6, &r)
	other := first.With(PerSecond(2000)).l
	spent, _ := other.take("bob", 1, time.Millisecond, &r)
	require.Zero(t, spent)
	require.Same(t, g, s.grant.Load())
	spent, _ = l.take("bob", 10, time.Millisecond, &r)
	require.EqualValues(t, 10, spent)
}

// Reset waits for a call that spends units of the key.
func TestReset_whileUnitsAreSpent(t *testing.T) {
	l := open(t, process(func(context.Context, redis.Cmder) error { return nil }), Budget(5, time.Hour)).Rate("t", PerHour(10)).l
	l.keep("bob", 0, 5, &Result{})
	s := l.lock("bob")
	var all sync.WaitGroup
	all.Go(func() { _ = l.reset(context.Background(), "bob") })
	awaitLocked(1)
	held := s.grant.Load()
	s.mu.Unlock()
	all.Wait()
	require.NotNil(t, held)
	require.Nil(t, s.grant.Load())
}

// held returns how many of these are held by something.
func held[T any](all []weak.Pointer[T]) (n int) {
	runtime.GC()
	for _, p := range all {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

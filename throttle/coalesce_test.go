package throttle_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// slow delays every command of a server by one round trip.
type slow struct {
	*throttletest.Server
	trip time.Duration
}

func (s slow) Process(ctx context.Context, cmd redis.Cmder) error {
	select {
	case <-time.After(s.trip):
		return s.Server.Process(ctx, cmd)
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// newSlow returns a client whose server is one round trip away.
func newSlow(t *testing.T, trip time.Duration, o throttle.Options, defaults ...throttle.Option) (*throttle.Client, *throttletest.Server) {
	t.Helper()
	s := throttletest.NewServer()
	c := must(throttle.New(slow{s, trip}, o, defaults...))
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, s
}

// Concurrent callers share commands, are granted first come first served, and no more than the limit is admitted.
func TestCoalescing_grantsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond, throttle.Options{})
		limit := throttle.PerHour(30)
		allowed := make([]bool, 100)
		var wg sync.WaitGroup
		for i := range allowed {
			wg.Go(func() {
				time.Sleep(time.Duration(i)) // one after another, all within the first round trip
				r := must(c.Rate("hot", limit).Allow(background, ""))
				allowed[i] = r.Allowed
				switch {
				case i == 0:
					require.Equal(t, throttle.FromServer, r.Source)
				case r.Allowed:
					require.Equal(t, throttle.Result{Allowed: true, Limit: 30, Granted: 1, ResetAfter: r.ResetAfter, Source: throttle.FromBatch}, r)
				default:
					require.InDelta(t, 2*time.Minute, r.RetryAfter, float64(time.Second))
					require.Zero(t, r.Granted)
				}
			})
		}
		wg.Wait()
		for i := range allowed {
			require.Equal(t, i < 30, allowed[i], "caller %d", i)
		}
		require.EqualValues(t, 2, s.Calls())
	})
}

// Each caller pays for a call of its own if coalescing is off.
func TestCoalescing_off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond, throttle.Options{}, throttle.Coalesce(false))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _, _ = c.Rate("hot", throttle.PerHour(3)).Allow(background, "") })
		}
		wg.Wait()
		require.EqualValues(t, 10, s.Calls())
	})
}

// A leader that is cancelled gets its reply and fails nobody. A follower that is cancelled before the command is sent
// takes nothing.
func TestCoalescing_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, 10*time.Millisecond, throttle.Options{})
		limit := throttle.PerHour(10)
		leader, cancelLeader := context.WithCancel(background)
		follower, cancelFollower := context.WithCancel(background)
		var wg sync.WaitGroup
		ask := func(ctx context.Context, after time.Duration, check func(throttle.Result, error)) {
			wg.Go(func() {
				time.Sleep(after)
				check(c.Rate("hot", limit).Allow(ctx, ""))
			})
		}
		cancelled := func(r throttle.Result, err error) {
			require.ErrorIs(t, err, context.Canceled)
			require.False(t, r.Allowed)
		}
		admitted := func(r throttle.Result, err error) {
			require.NoError(t, err)
			require.True(t, r.Allowed)
		}
		ask(leader, 0, admitted)
		ask(follower, 1*time.Millisecond, cancelled)
		ask(background, 2*time.Millisecond, admitted)
		ask(background, 3*time.Millisecond, admitted)
		time.Sleep(4 * time.Millisecond)
		cancelFollower()
		time.Sleep(time.Millisecond)
		cancelLeader()
		wg.Wait()
		r := must(c.Rate("hot", limit).Peek(background, ""))
		require.EqualValues(t, 7, r.Remaining) // the follower was in no command
	})
}

// A follower that gives up after the command was sent takes nobody's place: others get its unit.
func TestCoalescing_cancelledAfterSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, 10*time.Millisecond, throttle.Options{})
		limit := throttle.PerHour(3)
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for i := range 4 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				caller := background
				if i == 1 {
					caller = ctx
				}
				if r, err := c.Rate("hot", limit).Allow(caller, ""); err == nil && r.Allowed {
					admitted.Add(1)
				}
			})
		}
		time.Sleep(15 * time.Millisecond) // the batch of the last three is under way
		cancel()
		wg.Wait()
		require.EqualValues(t, 3, admitted.Load())
	})
}

// A failed command fails those who waited for it, each within the time limit.
func TestCoalescing_failure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 10*time.Millisecond, throttle.Options{})
		s.Fail(serverError("LOADING"))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				began := time.Now()
				_, err := c.Rate("hot", throttle.PerHour(3)).Allow(background, "")
				require.ErrorIs(t, err, throttle.ErrUnavailable)
				require.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
			})
		}
		wg.Wait()
	})
}

// Nobody waits longer than the time limit, whatever the server does.
func TestTimeout_holdsForFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, time.Hour, throttle.Options{})
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond / 3)
				began := time.Now()
				_, err := c.Rate("hot", throttle.PerHour(3)).Allow(background, "")
				require.ErrorIs(t, err, throttle.ErrUnavailable)
				require.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
			})
		}
		wg.Wait()
	})
}

// Calls for many keys wait for their turn in pipelines, and none waits longer than the time limit.
func TestTimeout_holdsForManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 5*time.Millisecond, throttle.Options{}, throttle.Timeout(20*time.Millisecond))
		var wg sync.WaitGroup
		var admitted, failed atomic.Int64
		for i := range 1000 {
			wg.Go(func() {
				began := time.Now()
				r, err := c.Rate("t", throttle.PerHour(3)).Allow(background, "key"+string(rune('A'+i)))
				require.LessOrEqual(t, time.Since(began), 20*time.Millisecond)
				if err == nil && r.Allowed {
					admitted.Add(1)
				} else {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1000, admitted.Load()+failed.Load())
		require.GreaterOrEqual(t, int64(s.Keys()), admitted.Load()) // who gave up may have been charged
	})
}

// A denial is remembered for its RetryAfter, for its own quantity, and no longer.
func TestDenyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{}, throttle.DenyCache(true))
		limit := throttle.PerMinute(1)
		for range 2 {
			must(c.Rate("a", limit).Allow(background, ""))
		}
		s.Advance(20 * time.Second)
		calls := s.Calls()
		r := must(c.Rate("a", limit).Allow(background, ""))
		require.Equal(t, throttle.FromDenials, r.Source)
		require.False(t, r.Allowed)
		require.InDelta(t, 40*time.Second, r.RetryAfter, float64(100*time.Millisecond))
		require.InDelta(t, 40*time.Second, r.ResetAfter, float64(100*time.Millisecond))
		require.Equal(t, calls, s.Calls())
		must(c.Rate("a", limit).AllowN(background, "", 2))
		require.Equal(t, calls+1, s.Calls())
		s.Advance(40 * time.Second)
		r = must(c.Rate("a", limit).Allow(background, ""))
		require.Equal(t, throttle.FromServer, r.Source)
	})
}

// A budget is spent in the process, is bounded, is forgotten after its time, and comes back at Close.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{}, throttle.Budget(20, 10*time.Second))
		limit := throttle.PerSecond(10).Burst(1000)
		local := 0
		for range 200 {
			s.Advance(time.Millisecond)
			r := must(c.Rate("a", limit).Allow(background, ""))
			require.True(t, r.Allowed)
			if r.Source == throttle.FromBudget {
				local++
			}
		}
		require.Less(t, s.Calls(), int64(20))
		require.EqualValues(t, 200, s.Calls()+int64(local))
		r := must(c.Rate("a", limit).Peek(background, ""))
		require.LessOrEqual(t, r.Remaining, int64(802))
		require.GreaterOrEqual(t, r.Remaining, int64(780))
		s.Advance(11 * time.Second)
		r = must(c.Rate("a", limit).Allow(background, ""))
		require.Equal(t, throttle.FromServer, r.Source)
		before := must(c.Rate("a", limit).Peek(background, ""))
		require.NoError(t, c.Close())
		other := must(throttle.New(s, throttle.Options{}))
		after := must(other.Rate("a", limit).Peek(background, ""))
		require.GreaterOrEqual(t, after.Remaining, before.Remaining)
		_, err := c.Rate("a", limit).Allow(background, "")
		require.ErrorIs(t, err, throttle.ErrClosed)
	})
}

// slowReply delays every reply.
type slowReply struct{ *throttletest.Server }

func (s slowReply) Process(ctx context.Context, cmd redis.Cmder) error {
	err := s.Server.Process(ctx, cmd)
	time.Sleep(20 * time.Millisecond)
	return err
}

// A denial is not remembered longer than the server denies: a slow reply, and a clock that is set back.
func TestDenyCache_notLongerThanTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := must(throttle.New(slowReply{s}, throttle.Options{Now: s.Now}, throttle.DenyCache(true)))
		began := time.Now()
		for _, n := range []int64{1, 2} {
			limiter := c.Rate(string(rune('a'+n)), throttle.PerSecond(n))
			for range 2 {
				must(limiter.AllowN(background, "", n))
			}
		}
		time.Sleep(time.Until(began.Add(time.Second)))
		r := must(c.Rate("b", throttle.PerSecond(1)).AllowN(background, "", 1))
		require.True(t, r.Allowed)
		time.Sleep(20 * time.Millisecond)
		r = must(c.Rate("c", throttle.PerSecond(2)).AllowN(background, "", 2))
		require.True(t, r.Allowed)
		r = must(c.Rate("b", throttle.PerSecond(1)).AllowN(background, "", 1))
		require.False(t, r.Allowed)
		s.Advance(-time.Hour)
		r = must(c.Rate("b", throttle.PerSecond(1)).AllowN(background, "", 1))
		require.Equal(t, throttle.FromServer, r.Source)
	})
}

// Callers that wait together and get units of the budget are told so.
func TestBudget_sourceOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, time.Millisecond, throttle.Options{}, throttle.Budget(20, time.Second))
		limit := throttle.PerSecond(1000)
		for range 60 { // so that the client knows that the limiter is busy
			must(c.Rate("a", limit).Allow(background, ""))
		}
		time.Sleep(2 * time.Second) // nothing is held any more
		var wg sync.WaitGroup
		calls := s.Calls()
		var fromBudget atomic.Int64
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i))
				r := must(c.Rate("a", limit).Allow(background, ""))
				require.True(t, r.Allowed)
				require.EqualValues(t, 1, r.Granted)
				if r.Source == throttle.FromBudget {
					fromBudget.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, s.Calls()-calls)
		require.EqualValues(t, 4, fromBudget.Load())
	})
}

// A batch that gets a part of its units from the budget asks for the rest, and all are granted.
func TestBudget_partOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlow(t, time.Millisecond, throttle.Options{}, throttle.Budget(20, time.Second))
		quota := c.Quota("a", 1e6, time.Hour)
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			must(quota.Allow(background, ""))
		}
		time.Sleep(2 * time.Second) // nothing is held any more
		r := must(quota.Peek(background, ""))
		must(quota.AllowN(background, "", r.Remaining-12))
		var fromBudget atomic.Int64
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				time.Sleep(time.Duration(i))
				r := must(quota.Allow(background, ""))
				require.True(t, r.Allowed)
				if r.Source == throttle.FromBudget {
					fromBudget.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 2, fromBudget.Load())
	})
}

// Close gives back what is held: afterwards just what was admitted is in use.
func TestBudget_closeGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{}, throttle.Budget(20, time.Minute))
		other := must(throttle.New(s, throttle.Options{}))
		used := func() int64 {
			r := must(other.Quota("a", 10000, time.Hour).Peek(background, ""))
			return 10000 - r.Remaining
		}
		quota := c.Quota("a", 10000, time.Hour)
		admitted := int64(0)
		for admitted < 3 || used() == admitted {
			s.Advance(time.Millisecond)
			r := must(quota.Allow(background, ""))
			require.True(t, r.Allowed)
			admitted++
		}
		require.NoError(t, c.Close())
		require.Equal(t, admitted, used())
	})
}

// A caller that leaves the queue of a lane before its command is sent takes nothing.
func TestLane_whoLeavesTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 10*time.Millisecond, throttle.Options{})
		var wg sync.WaitGroup
		for _, key := range []string{"{x}a", "{x}b", "{x}c", "{x}d"} { // one lane; as many as are under way at once
			wg.Go(func() { _, _ = c.Rate("t", throttle.PerHour(1)).Allow(background, key) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
		defer cancel()
		_, err := c.Rate("t", throttle.PerHour(1)).Allow(ctx, "{x}late")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		time.Sleep(time.Second)
		require.Equal(t, 4, s.Keys())
	})
}

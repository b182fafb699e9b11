package throttle_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// Callers that wait act one after another, at the rate. One whose context ends before its slot learns so at once, and takes
// nothing. One that is cancelled while it waits gives its slot back.
func TestWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		crawl := c.Rate("crawl", throttle.PerSecond(10).Burst(2))
		began := time.Now()
		var acted [5]time.Duration
		manyAtOnce(len(acted), func(i int) {
			require.NoError(t, crawl.Wait(background, ""))
			acted[i] = time.Since(began).Truncate(time.Millisecond)
		})
		const ms = time.Millisecond
		require.Equal(t, [...]time.Duration{0, 0, 100 * ms, 200 * ms, 300 * ms}, acted)

		two := c.Rate("two", throttle.PerSecond(1).Burst(2))
		require.NoError(t, two.WaitN(background, "", 2))
		require.Zero(t, must(two.Peek(background, "")).Remaining)
		slow := c.Rate("slow", throttle.PerSecond(1))
		require.NoError(t, slow.Wait(background, ""))
		began = time.Now()
		ctx, cancel := context.WithTimeout(background, 500*ms)
		defer cancel()
		calls := s.Calls() + 1
		require.ErrorAs(t, slow.Wait(ctx, ""), new(*throttle.DeniedError))
		require.Equal(t, calls, s.Calls())
		require.Zero(t, time.Since(began))
		ctx, cancel = context.WithCancel(background)
		time.AfterFunc(300*ms, cancel)
		require.ErrorIs(t, slow.Wait(ctx, ""), context.Canceled)
		require.Equal(t, 700*ms, must(slow.Peek(background, "")).ResetAfter)
	})
}

// The reply takes part of the time: a slot that comes after the end of the context is not waited for, and is given back.
func TestWait_slowReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(throttle.New(slowReply(throttletest.NewServer())))
		limit := throttle.PerSecond(1)
		require.NoError(t, c.Rate("a", limit).Wait(background, ""))
		ctx, cancel := context.WithTimeout(background, 990*time.Millisecond) // the slot comes after 980 ms, the reply after 20
		defer cancel()
		began := time.Now()
		var denied *throttle.DeniedError
		require.ErrorAs(t, c.Rate("a", limit).Wait(ctx, ""), &denied)
		require.ErrorContains(t, denied, "try again in 980ms")
		require.Equal(t, 40*time.Millisecond, time.Since(began)) // a reservation and its cancellation
		r := must(c.Rate("a", limit).Peek(background, ""))
		require.Less(t, r.ResetAfter, time.Second)
		slot := must(c.Rate("a", limit).Reserve(background, "", 1, time.Minute))
		manyAtOnce(2, func(int) { require.NoError(t, slot.Cancel(background)) })
	})
}

// A reservation that is cancelled before its slot gives its whole quantity back, even if the caller has gone. After the slot
// it gives nothing back, and never twice.
func TestReserve_cancel(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		rate := c.Rate("a", throttle.PerSecond(1).Burst(5))
		must(rate.AllowN(background, "", 5))
		early, late := must(rate.Reserve(background, "", 3, time.Minute)), must(rate.Reserve(background, "", 1, time.Minute))
		require.Equal(t, []time.Duration{3 * time.Second, 4 * time.Second}, []time.Duration{early.Wait, late.Wait})
		denied := must(rate.Reserve(background, "", 5, time.Second))
		require.False(t, denied.Result.Allowed)
		ended, cancel := context.WithCancel(background)
		cancel()
		for _, step := range []struct {
			after time.Duration
			r     *throttle.Reservation
			used  time.Duration
		}{{0, early, 6 * time.Second}, {0, early, 6 * time.Second}, {4 * time.Second, late, 2 * time.Second}, {0, denied, 2 * time.Second}} {
			time.Sleep(step.after)
			require.NoError(t, step.r.Cancel(ended))
			require.Equal(t, step.used, must(rate.Peek(background, "")).ResetAfter)
		}
	})
}

// A cancellation whose reply is lost is not sent again, and returns its error again.
func TestReserve_cancelFails(t *testing.T) {
	c, s := throttletest.New(t, throttle.Logger(quiet))
	must(hourly(c).Allow(background, ""))
	r := must(hourly(c).Reserve(background, "", 1, 2*time.Hour))
	s.Fail(io.EOF)
	for range 2 {
		require.ErrorIs(t, r.Cancel(background), throttle.ErrUnavailable)
	}
	require.EqualValues(t, 3, s.Calls())
}

// Without a server Wait and Acquire return the error, or what the options say.
func TestWait_serverIsAway(t *testing.T) {
	for want, fallback := range map[error]throttle.Option{throttle.ErrUnavailable: throttle.FailClosed(), io.EOF: nil, nil: throttle.FailOpen()} {
		c, s := throttletest.New(t, throttle.Logger(quiet), fallback)
		s.Fail(io.EOF)
		require.ErrorIs(t, c.Rate("a", throttle.PerSecond(1)).Wait(background, ""), want)
		require.ErrorIs(t, only(c.Slots("b", 1, time.Minute).Acquire(background, "")), want)
	}
}

// A lease renews itself, so nobody else gets its slot. Close frees the slot at once.
func TestLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		jobs := c.Slots("jobs", 1, 3*time.Second)
		ctx, cancel := context.WithTimeout(context.WithValue(background, key{}, "value"), time.Second)
		defer cancel()
		lease := must(jobs.Lease(ctx, ""))
		require.True(t, lease.Result.Allowed)
		require.Equal(t, "value", lease.Context().Value(key{}))
		for range 20 {
			time.Sleep(time.Second)
			other, err := jobs.Lease(background, "")
			require.Nil(t, other)
			var denied *throttle.DeniedError
			require.ErrorAs(t, err, &denied)
			require.LessOrEqual(t, denied.Result.RetryAfter, 3*time.Second)
			require.NoError(t, lease.Context().Err())
		}
		for range 2 {
			require.NoError(t, lease.Close())
			require.Equal(t, context.Canceled, context.Cause(lease.Context()))
		}
		must(jobs.Lease(background, ""))
	})
}

type key struct{}

// Acquire waits for a slot until the end of its context. A slot that lapses soon is taken when it lapses, and not at the next
// turn.
func TestAcquire(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		jobs := c.Slots("jobs", 1, time.Minute)
		lease := must(jobs.Acquire(background, ""))
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		began := time.Now()
		err := only(jobs.Acquire(ctx, ""))
		require.ErrorAs(t, err, new(*throttle.DeniedError))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, 10*time.Second, time.Since(began))
		time.AfterFunc(5*time.Second, func() { _ = lease.Close() })
		require.NoError(t, must(jobs.Acquire(background, "")).Context().Err())
		require.LessOrEqual(t, time.Since(began), 16500*time.Millisecond)
		require.NoError(t, s.Process(background, redis.NewCmd(background, "GO.LEASE", "jobs:a", 1, "100ms", "gone")))
		began = time.Now()
		must(jobs.Acquire(background, "a"))
		require.LessOrEqual(t, time.Since(began), 102*time.Millisecond)
	})
}

// A lease whose slot somebody released is lost, and says so through its context. A short outage loses no lease.
func TestLease_lost(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
		for range 5 {
			s.Fail(io.EOF)
			time.Sleep(1500 * time.Millisecond)
			s.Fail(nil)
			time.Sleep(1500 * time.Millisecond)
		}
		require.NoError(t, lease.Context().Err())
		s.Delete("jobs:")
		time.Sleep(1100 * time.Millisecond)
		require.ErrorIs(t, context.Cause(lease.Context()), throttle.ErrLost)
		require.NoError(t, lease.Close())
	})
}

// Close of the client closes its leases, and no goroutine is left. A lease that is asked for meanwhile is none, and leaves
// no slot taken.
func TestClose_closesLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 10*time.Millisecond)
		jobs := c.Slots("jobs", 2, time.Minute)
		held := must(jobs.Lease(background, ""))
		for _, closes := range []func() error{c.Close, held.Close} {
			time.AfterFunc(5*time.Millisecond, func() { require.NoError(t, closes()) })
		}
		for range 2 { // when it is closed in between, and before
			lease, err := jobs.Lease(background, "")
			require.ErrorIs(t, err, throttle.ErrClosed)
			require.Nil(t, lease)
			time.Sleep(20 * time.Millisecond)
			require.Error(t, held.Context().Err())
			require.Zero(t, s.Keys())
		}
		require.NoError(t, c.Close())
		for _, err := range []error{only(c.All(background, jobs.Part("", "me"))), jobs.Reset(background, ""), c.Check(background)} {
			require.ErrorIs(t, err, throttle.ErrClosed)
		}
	})
}

// A second Close waits for the first one.
func TestClose_twice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 10*time.Millisecond)
		must(c.Slots("jobs", 2, time.Minute).Lease(background, ""))
		manyAtOnce(2, func(int) {
			require.NoError(t, c.Close())
			require.Zero(t, s.Keys())
		})
	})
}

// The observer sees every verb once.
func TestObserve(t *testing.T) {
	var verbs []string
	var last throttle.Event
	c, s := throttletest.New(t, throttle.KeyPrefix("p:"), throttle.Observe(func(e throttle.Event) { verbs, last = append(verbs, e.Verb), e }))
	a := c.Rate("a", throttle.PerSecond(2))
	must(a.Allow(background, "bob"))
	require.Equal(t, throttle.Event{Verb: "Allow", Name: "a", Key: "bob", Result: last.Result, Took: last.Took}, last)
	require.True(t, last.Result.Allowed)
	must(a.AllowN(background, "bob", 2))
	require.False(t, last.Result.Allowed)
	must(a.AllowAtMost(background, "bob", 2))
	must(a.Peek(background, "bob"))
	must(a.Refund(background, "bob", 1))
	must(a.Settle(background, "bob", 1))
	must(a.Reserve(background, "bob", 1, 0))
	require.NoError(t, a.Reset(background, "bob"))
	require.Equal(t, throttle.Result{Allowed: true, Source: throttle.FromServer}, last.Result)
	must(c.All(background, a.Part("amy", 1)))
	must(c.SettleAll(background, a.Part("amy", 1)))
	lease := must(c.Slots("l", 1, time.Minute).Lease(background, ""))
	s.Fail(serverError("WRONGTYPE"))
	err := only(a.Allow(background, "bob"))
	require.Equal(t, err, last.Err)
	err = only(c.All(background, a.Part("amy", 1)))
	require.Equal(t, err, last.Err)
	s.Fail(nil)
	require.NoError(t, lease.Close())
	require.Equal(t, []string{"Allow", "Allow", "AllowAtMost", "Peek", "Refund",
		"Settle", "Reserve", "Reset", "All", "SettleAll", "Lease", "Allow", "All"}, verbs)
	require.EqualValues(t, 14, s.Calls())
}

// After a pause, calls for one unit are admitted neither early nor more than the time of one unit late, whatever was in use.
// A pause that is too long, or of a limit that makes no sense, is an error.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) { // else time passes between two calls
		r, plans := rand.New(rand.NewPCG(1, 2)), c.Limits("out")
		for i := range 500 {
			key, count, period := fmt.Sprint(i), 1+r.Int64N(1000), time.Duration(1+r.Int64N(100_000))*time.Millisecond
			rate := plans.Rate(throttle.Per(count, period).Burst(1 + r.Int64N(50)))
			must(rate.AllowAtMost(background, key, 1+r.Int64N(50)))
			s.Advance(time.Duration(r.Int64N(int64(time.Second))))
			pause := time.Duration(1 + r.Int64N(int64(time.Minute)))
			require.True(t, must(rate.Pause(background, key, pause)).Allowed)
			must(rate.Pause(background, key, pause/2))
			wait := must(rate.Allow(background, key)).RetryAfter
			require.GreaterOrEqual(t, wait, pause)
			require.Less(t, wait, pause+period/time.Duration(count)+2*time.Millisecond)
		}
		for _, l := range []throttle.Limit{throttle.Per(1e12, time.Millisecond), throttle.PerHour(0), throttle.PerHour(1)} {
			_, err := plans.Rate(l).Pause(background, "a", 1<<63-1)
			require.Equal(t, l == throttle.PerHour(0), err != nil, err)
		}
		require.ErrorIs(t, only(plans.Rate(throttle.PerHour(1)).Raise(background, "a", -1)), throttle.ErrParams)
		s.Fail(io.EOF)
		require.ErrorIs(t, only(c.Rate("open", throttle.PerHour(1), throttle.FailOpen()).Raise(background, "a", 1)), throttle.ErrUnavailable)
	})
}

// A lease is lost when its time is over, even while a renewal waits for a server that does not answer.
func TestLease_lostInTime(t *testing.T) {
	for _, test := range []struct{ trip, held, lost time.Duration }{
		{0, 0, 3 * time.Second},
		{500 * time.Millisecond, 2 * time.Second, 4500 * time.Millisecond}, // renewed by a command sent after 1.5 s
	} {
		synctest.Test(t, func(t *testing.T) {
			s := throttletest.NewServer()
			var silent atomic.Bool
			c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
				if silent.Load() {
					<-ctx.Done()
				}
				time.Sleep(test.trip)
				return s.Process(ctx, cmd)
			}), throttle.Timeout(10*time.Second))
			began := time.Now()
			lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
			time.Sleep(test.held)
			silent.Store(true)
			<-lease.Context().Done()
			require.Equal(t, test.lost, time.Since(began))
			require.NoError(t, lease.Close()) // nothing is to be released
		})
	}
}

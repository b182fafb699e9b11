package throttle_test

import (
	"context"
	"errors"
	"io"
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

// Callers that wait act one after another, at the rate.
func TestWait_callersQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		began := time.Now()
		var mu sync.Mutex
		var acted []time.Duration
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				require.NoError(t, c.Rate("crawl", throttle.PerSecond(10).Burst(2)).Wait(background, ""))
				mu.Lock()
				defer mu.Unlock()
				acted = append(acted, time.Since(began))
			})
		}
		wg.Wait()
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 0, 100 * ms, 200 * ms, 300 * ms}, acted)
	})
}

// A caller whose context ends before its slot learns so at once, and takes nothing.
func TestWait_deadlineBeforeTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.PerSecond(1)
		require.NoError(t, c.Rate("a", limit).Wait(background, ""))
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorAs(t, c.Rate("a", limit).Wait(ctx, ""), new(*throttle.DeniedError))
		require.Zero(t, time.Since(began))
		r := must(c.Rate("a", limit).Peek(background, ""))
		require.Equal(t, time.Second, r.ResetAfter)
	})
}

// The reply takes part of the time: a slot that comes after the end of the context is not waited for, and is given back.
func TestWait_slowReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(throttle.New(slowReply{throttletest.NewServer()}, throttle.Options{}))
		limit := throttle.PerSecond(1)
		require.NoError(t, c.Rate("a", limit).Wait(background, ""))
		ctx, cancel := context.WithTimeout(background, 990*time.Millisecond) // the slot comes after 980 ms, the reply after 20
		defer cancel()
		began := time.Now()
		require.ErrorAs(t, c.Rate("a", limit).Wait(ctx, ""), new(*throttle.DeniedError))
		require.Equal(t, 40*time.Millisecond, time.Since(began)) // a reservation and its cancellation
		r := must(c.Rate("a", limit).Peek(background, ""))
		require.Less(t, r.ResetAfter, time.Second)
	})
}

// A context that has ended admits nobody, also where a server that is away would.
func TestWait_contextHasEnded(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{}, throttle.FailOpen())
	ctx, cancel := context.WithTimeout(background, 0)
	defer cancel()
	err := c.Rate("a", throttle.PerSecond(1)).Wait(ctx, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, throttle.ErrUnavailable)
	require.Zero(t, s.Calls())
}

// A caller that is cancelled while it waits gives its slot back.
func TestWait_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.PerSecond(1)
		require.NoError(t, c.Rate("a", limit).Wait(background, ""))
		ctx, cancel := context.WithCancel(background)
		go func() {
			time.Sleep(300 * time.Millisecond)
			cancel()
		}()
		require.ErrorIs(t, c.Rate("a", limit).Wait(ctx, ""), context.Canceled)
		r := must(c.Rate("a", limit).Peek(background, ""))
		require.Equal(t, 700*time.Millisecond, r.ResetAfter)
	})
}

// A reservation that is cancelled before its slot gives its whole quantity back, after it nothing, and only once.
func TestReserve_cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		limit := throttle.PerSecond(1).Burst(5)
		must(c.Rate("a", limit).AllowN(background, "", 5))
		early := must(c.Rate("a", limit).Reserve(background, "", 3, time.Minute))
		require.Equal(t, 3*time.Second, early.Wait)
		late := must(c.Rate("a", limit).Reserve(background, "", 1, time.Minute))
		require.Equal(t, 4*time.Second, late.Wait)
		used := func() time.Duration {
			r := must(c.Rate("a", limit).Peek(background, ""))
			return r.ResetAfter
		}
		require.Equal(t, 9*time.Second, used())
		for range 2 {
			require.NoError(t, early.Cancel(background))
			require.Equal(t, 6*time.Second, used())
		}
		time.Sleep(4 * time.Second)
		require.NoError(t, late.Cancel(background))
		require.Equal(t, 2*time.Second, used())
		denied := must(c.Rate("a", limit).Reserve(background, "", 5, time.Second))
		require.False(t, denied.Result.Allowed)
		require.NoError(t, denied.Cancel(background))
		require.Equal(t, 2*time.Second, used())
	})
}

// Without a server Wait returns the error, or what the options say.
func TestWait_serverIsAway(t *testing.T) {
	for want, fallback := range map[error]throttle.Option{throttle.ErrUnavailable: throttle.FailClosed(), io.EOF: nil, nil: throttle.FailOpen()} {
		c, s := throttletest.New(t, throttle.Options{Logger: quiet}, fallback)
		s.Fail(io.EOF)
		require.ErrorIs(t, c.Rate("a", throttle.PerSecond(1)).Wait(background, ""), want)
	}
}

// A lease renews itself, so nobody else gets its slot; Close frees the slot at once.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
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
		require.NoError(t, lease.Close())
		require.ErrorIs(t, lease.Context().Err(), context.Canceled)
		require.NotErrorIs(t, context.Cause(lease.Context()), throttle.ErrLost)
		require.NoError(t, lease.Close())
		other := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
		require.NotNil(t, other)
	})
}

type key struct{}

// Acquire waits for a slot until the end of its context.
func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := throttletest.New(t, throttle.Options{})
		jobs := c.Slots("jobs", 1, time.Minute)
		lease := must(jobs.Acquire(background, ""))
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := jobs.Acquire(ctx, "")
		require.ErrorAs(t, err, new(*throttle.DeniedError))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(began))
		time.AfterFunc(5*time.Second, func() { _ = lease.Close() })
		next := must(jobs.Acquire(background, ""))
		require.NoError(t, next.Context().Err())
		require.LessOrEqual(t, time.Since(began), 16500*time.Millisecond)
	})
}

// A lease that is lost says so through its context: when somebody released it, and when the server is away for its time.
func TestLease_lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{Logger: quiet})
		lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
		s.Delete("jobs:")
		<-lease.Context().Done()
		require.ErrorIs(t, context.Cause(lease.Context()), throttle.ErrLost)
		require.NoError(t, lease.Close())

		lease = must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
		time.Sleep(1500 * time.Millisecond)
		s.Fail(errors.New("no route to host"))
		began := time.Now()
		<-lease.Context().Done()
		require.ErrorIs(t, context.Cause(lease.Context()), throttle.ErrLost)
		require.Equal(t, 2500*time.Millisecond, time.Since(began)) // 3 s after the renewal that succeeded at 1 s
		require.NoError(t, lease.Close())
	})
}

// A short outage loses no lease.
func TestLease_survivesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t, throttle.Options{Logger: quiet})
		lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
		for range 5 {
			s.Fail(io.EOF)
			time.Sleep(1500 * time.Millisecond)
			s.Fail(nil)
			time.Sleep(1500 * time.Millisecond)
		}
		require.NoError(t, lease.Context().Err())
	})
}

// Close of the client closes its leases, and no goroutine is left.
func TestClose_closesLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := must(throttle.New(s, throttle.Options{}))
		lease := must(c.Slots("jobs", 1, time.Minute).Lease(background, ""))
		require.NoError(t, c.Close())
		require.Error(t, lease.Context().Err())
		require.Zero(t, s.Keys())
		require.NoError(t, c.Close())
		_, err := c.Slots("jobs", 1, time.Minute).Lease(background, "")
		require.ErrorIs(t, err, throttle.ErrClosed)
		_, err = c.All(background, c.Rate("a", throttle.PerSecond(1)).Part("", 1))
		require.ErrorIs(t, err, throttle.ErrClosed)
	})
}

// The observer sees every verb once.
func TestObserve(t *testing.T) {
	var events []throttle.Event
	c, s := throttletest.New(t, throttle.Options{KeyPrefix: "p:", Observe: func(e throttle.Event) { events = append(events, e) }})
	a := c.Rate("a", throttle.PerSecond(2))
	_, _ = a.Allow(background, "bob")
	_, _ = a.AllowN(background, "bob", 2)
	_, _ = a.AllowAtMost(background, "bob", 2)
	_, _ = a.Peek(background, "bob")
	_, _ = a.Refund(background, "bob", 1)
	_, _ = a.Settle(background, "bob", 1)
	_, _ = a.Reserve(background, "bob", 1, 0)
	_ = a.Reset(background, "bob")
	_, _ = c.All(background, a.Part("amy", 1))
	_, _ = c.SettleAll(background, a.Part("amy", 1))
	lease, _ := c.Slots("l", 1, time.Minute).Lease(background, "")
	s.Fail(serverError("WRONGTYPE"))
	_, _ = a.Allow(background, "bob")
	s.Fail(nil)
	require.NoError(t, lease.Close())
	var verbs []throttle.Verb
	for _, e := range events {
		verbs = append(verbs, e.Verb)
	}
	require.Equal(t, []throttle.Verb{"Allow", "Allow", "AllowAtMost", "Peek", "Refund",
		"Settle", "Reserve", "Reset", "All", "SettleAll", "Lease", "Allow"}, verbs)
	require.Equal(t, "a", events[0].Name)
	require.Equal(t, "bob", events[0].Key)
	require.True(t, events[0].Result.Allowed)
	require.False(t, events[1].Result.Allowed)
	require.ErrorIs(t, events[11].Err, throttle.ErrParams)
	require.EqualValues(t, 13, s.Calls())
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
			}), throttle.Options{}, throttle.Timeout(10*time.Second))
			began := time.Now()
			lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(background, ""))
			time.Sleep(test.held)
			silent.Store(true)
			<-lease.Context().Done()
			require.Equal(t, test.lost, time.Since(began))
			silent.Store(false)
			require.NoError(t, lease.Close())
		})
	}
}

// A client that is closed while a lease is asked for returns no lease, and leaves no slot taken.
func TestLease_whileTheClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newSlow(t, 10*time.Millisecond, throttle.Options{})
		time.AfterFunc(5*time.Millisecond, func() { _ = c.Close() })
		lease, err := c.Slots("jobs", 1, time.Minute).Lease(background, "")
		require.ErrorIs(t, err, throttle.ErrClosed)
		require.Nil(t, lease)
		require.Zero(t, s.Keys())
	})
}

// A cancellation whose reply is lost is not sent again, and returns its error again.
func TestReserve_cancelFails(t *testing.T) {
	c, s := throttletest.New(t, throttle.Options{Logger: quiet})
	limit := throttle.PerHour(1)
	must(c.Rate("a", limit).Allow(background, ""))
	r := must(c.Rate("a", limit).Reserve(background, "", 1, 2*time.Hour))
	s.Fail(io.EOF)
	for range 2 {
		require.ErrorIs(t, r.Cancel(background), throttle.ErrUnavailable)
	}
	require.EqualValues(t, 3, s.Calls())
}

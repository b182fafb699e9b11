package throttle_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// One whose context ends before its slot learns so at once, and takes nothing. One that is cancelled while it waits gives its
// slot back. Without a deadline it waits for as long as it takes.
func TestWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		slow, began := c.Rate("slow", throttle.PerHour(1)), time.Now()
		for _, want := range []time.Duration{0, time.Hour} {
			require.NoError(t, slow.WaitN(background, "", 1))
			require.Equal(t, want, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(background, 59*time.Minute)
		defer cancel()
		require.ErrorAs(t, slow.Wait(ctx, ""), new(*throttle.DeniedError))
		require.Equal(t, time.Hour, time.Since(began))
		ctx, cancel = context.WithCancel(background)
		time.AfterFunc(20*time.Minute, cancel)
		require.ErrorIs(t, slow.Wait(ctx, ""), context.Canceled)
		require.Equal(t, 40*time.Minute, must(slow.Peek(background, "")).ResetAfter)
	})
}

// A slot that is cancelled before it comes gives its whole quantity back once, even if the caller has gone, and none after it
// has come. One that comes after the deadline, because the reply took part of the time, is given back, too.
func TestReserve_cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		c := newReal(t, slowReply(s))
		rate := c.Rate("a", throttle.PerSecond(1).Burst(5))
		used := func() time.Duration { return must(rate.Peek(background, "")).ResetAfter.Round(100 * time.Millisecond) }
		must(rate.AllowN(background, "", 5))
		early, late := must(rate.Reserve(background, "", 3, time.Minute)), must(rate.Reserve(background, "", 1, time.Minute))
		require.False(t, must(rate.Reserve(background, "", 5, time.Second)).Result.Allowed)
		ended, cancel := context.WithCancel(background)
		cancel()
		manyAtOnce(2, func(int) { require.NoError(t, early.Cancel(ended)) })
		require.Equal(t, 5900*time.Millisecond, used())
		time.Sleep(4 * time.Second)
		require.NoError(t, late.Cancel(ended))
		require.Equal(t, 1900*time.Millisecond, used())
		require.NoError(t, c.Rate("b", throttle.PerSecond(1)).Wait(background, ""))
		ctx, cancel := context.WithTimeout(background, 990*time.Millisecond) // the slot comes after 980 ms, the reply after 20
		defer cancel()
		began := time.Now()
		require.ErrorContains(t, c.Rate("b", throttle.PerSecond(1)).Wait(ctx, ""), "try again in 980ms")
		require.Equal(t, 40*time.Millisecond, time.Since(began)) // a reservation and its cancellation
		r, calls := must(rate.Reserve(background, "", 5, time.Minute)), s.Calls()
		s.Fail(io.EOF)
		for range 2 { // it is not sent again
			require.ErrorIs(t, r.Cancel(background), throttle.ErrUnavailable)
		}
		require.Equal(t, calls+1, s.Calls())
	})
}

// A renewal that fails is tried again. A lease is lost one ttl after the last command that got a reply was sent, even while a
// renewal waits for one. The values of its context are the caller's.
func TestLease_lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := throttletest.NewServer(), time.Now()
		at := func() time.Duration { return time.Since(began) }
		c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
			sent := at()
			time.Sleep(500 * time.Millisecond)
			if sent == 1500*time.Millisecond {
				return io.EOF
			} else if sent > 3*time.Second {
				<-ctx.Done()
				return ctx.Err()
			}
			return s.Process(ctx, cmd)
		}), throttle.Timeout(10*time.Second))
		lease := must(c.Slots("jobs", 1, 3*time.Second).Lease(context.WithValue(background, key{}, "value"), ""))
		require.Equal(t, "value", lease.Context().Value(key{}))
		<-lease.Context().Done()
		require.Equal(t, 5300*time.Millisecond, at()) // the second renewal was sent after 2.3 s
		require.ErrorIs(t, context.Cause(lease.Context()), throttle.ErrLost)
		require.NoError(t, lease.Close()) // nothing is to be released
	})
}

type key struct{}

// Acquire waits for a slot until the end of its context. A slot that lapses soon is taken when it lapses, and not at the next
// turn.
func TestAcquire(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		jobs, began := c.Slots("jobs", 1, time.Minute), time.Now()
		must(jobs.Take(background, "", "gone"))
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		err := only(jobs.Acquire(ctx, ""))
		require.ErrorAs(t, err, new(*throttle.DeniedError))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(began))
		time.Sleep(49900 * time.Millisecond)
		must(jobs.Acquire(background, ""))
		require.LessOrEqual(t, time.Since(began), 60002*time.Millisecond)
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
			require.ErrorIs(t, err, redis.ErrClosed)
			require.Nil(t, lease)
			time.Sleep(20 * time.Millisecond)
			require.Error(t, held.Context().Err())
			require.Zero(t, s.Keys())
		}
		require.NoError(t, c.Close())
		for _, err := range []error{only(c.All(background, jobs.Part("", "me"))), jobs.Reset(background, ""), c.Check(background)} {
			require.ErrorIs(t, err, redis.ErrClosed)
		}
		other, s := newSlow(t, 10*time.Millisecond)
		must(other.Slots("jobs", 2, time.Minute).Lease(background, ""))
		manyAtOnce(2, func(int) { // a second Close waits for the first one
			require.NoError(t, other.Close())
			require.Zero(t, s.Keys())
		})
	})
}

// Each holder of a slot has a larger token than those before, whether they released their slots or lost them, and keeps it.
func TestLease_token(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		jobs, last := c.Slots("jobs", 1, 3*time.Second), time.Now().UnixMicro()-1
		for i := range 6 {
			lease := must(jobs.Acquire(background, ""))
			if i == 5 { // after a renewal
				time.Sleep(1500 * time.Millisecond)
			}
			token := must(lease.Token(background))
			require.Greater(t, token, last)
			require.LessOrEqual(t, token, time.Now().UnixMicro())
			last = token
			if time.Sleep(5 * time.Second); i%2 == 0 {
				s.Delete("jobs:")
			}
			require.Equal(t, token, must(lease.Token(background)))
			require.NoError(t, lease.Close())
		}
		lost := must(jobs.Lease(background, ""))
		s.Fail(io.EOF)
		require.ErrorIs(t, only(lost.Token(background)), throttle.ErrUnavailable)
		s.Fail(nil)
		s.Delete("jobs:")
		require.ErrorIs(t, only(lost.Token(background)), throttle.ErrLost)
		time.Sleep(1100 * time.Millisecond) // until it would be renewed
		require.ErrorIs(t, context.Cause(lost.Context()), throttle.ErrLost)
		require.NoError(t, lost.Close())
		known := must(jobs.Lease(background, ""))
		must(known.Token(background))
		s.Delete("jobs:")
		time.Sleep(1100 * time.Millisecond)
		require.ErrorIs(t, only(known.Token(background)), throttle.ErrLost, "it was known before")
		require.Zero(t, s.Keys(), "the renewal has taken the slot again, and given it up")
		asks, ends := context.WithCancel(background)
		held := must(jobs.Lease(asks, ""))
		ends()
		require.NoError(t, held.Context().Err(), "it does not end with the context that asked")
		require.NoError(t, held.Close())
	})
}

// A reply that is lost does not keep Acquire from the slot that the call took. With FailClosed it waits while the server is
// unavailable, until its context ends.
func TestAcquire_outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := far(time.Millisecond)
		c := newReal(t, clientOf(t, s))
		jobs, hasty := c.Slots("jobs", 1, time.Minute, throttle.FailClosed()), c.Slots("hasty", 1, time.Minute)
		s.CutAfter(1)
		began := time.Now()
		require.NoError(t, must(jobs.Acquire(background, "")).Close())
		require.Less(t, time.Since(began), 2*time.Second)
		s.Stall(10 * time.Second)
		require.ErrorIs(t, only(hasty.Acquire(background, "")), throttle.ErrUnavailable)
		hurry, cancel := context.WithTimeout(background, 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, only(jobs.Acquire(hurry, "a")), context.DeadlineExceeded)
		must(jobs.Acquire(background, "b"))
		require.Less(t, time.Since(began), 15*time.Second)
	})
}

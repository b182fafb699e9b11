package throttle_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

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

// A reply that is lost does not keep Acquire from the slot that the call took. With AwaitServer it waits while the server is
// away, until its context ends.
func TestAcquire_outage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := far(time.Millisecond)
		c := newReal(t, clientOf(t, s))
		jobs, hasty := c.Slots("jobs", 1, time.Minute, throttle.AwaitServer()), c.Slots("hasty", 1, time.Minute)
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

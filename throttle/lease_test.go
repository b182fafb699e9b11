package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
		require.NoError(t, lost.Close())
	})
}

// A reply that is lost does not keep Acquire from the slot that the call took.
func TestAcquire_lostReply(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		calls := 0
		c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
			err := s.Process(ctx, cmd)
			if calls++; calls == 1 {
				err = io.EOF
				cmd.SetErr(err)
			}
			return err
		}), throttle.AwaitServer())
		began := time.Now()
		require.NoError(t, must(c.Slots("jobs", 1, time.Minute).Acquire(background, "")).Close())
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// Acquire waits through a restart if it is asked to. Afterwards it finds the slots that the server kept, and tokens grow.
func TestServer_acquireThroughARestart(t *testing.T) {
	for _, kept := range []string{"no", "yes"} {
		s := startServer(t, "--appendonly", kept, "--appendfsync", "always")
		c := newReal(t, goRedis(t, s.Addr), throttle.Timeout(patient))
		jobs, hasty := c.Slots("jobs", 1, 6*time.Second, throttle.AwaitServer()), c.Slots("hasty", 1, time.Minute)
		first := must(jobs.Acquire(background, ""))
		token := must(first.Token(background))
		s.Kill()
		require.ErrorIs(t, only(hasty.Acquire(background, "")), throttle.ErrUnavailable)
		hurry, cancel := context.WithTimeout(background, 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, only(jobs.Acquire(hurry, "")), context.DeadlineExceeded)
		var second *throttle.Lease
		var err error
		var all sync.WaitGroup
		all.Go(func() {
			ctx, cancel := context.WithTimeout(background, time.Minute)
			defer cancel()
			second, err = jobs.Acquire(ctx, "")
		})
		require.NoError(t, s.Restart())
		if kept == "yes" {
			require.Eventually(t, func() bool {
				held, err := jobs.Peek(background, "", first.Holder)
				return err == nil && held.Renewed
			}, time.Minute, 10*time.Millisecond)
		} else {
			<-first.Context().Done()
			require.ErrorIs(t, context.Cause(first.Context()), throttle.ErrLost)
		}
		require.NoError(t, first.Close())
		all.Wait()
		require.NoError(t, err)
		require.Greater(t, must(second.Token(background)), token)
		require.NoError(t, second.Close())
	}
}

// once does a day's job unless a process has done it, or is at it: see docs/go.md.
func once(ctx context.Context, c *throttle.Client, day string, job func(context.Context, int64) error) error {
	done, running := c.Quota("report", 1, 48*time.Hour), c.Slots("reporting", 1, time.Minute)
	lease, err := running.Lease(ctx, day)
	if err != nil {
		return err // a *DeniedError: another process is at it
	}
	defer lease.Close()
	if r, err := done.Peek(ctx, day); err != nil || !r.Allowed {
		return err
	}
	token, err := lease.Token(ctx)
	if err != nil {
		return err
	}
	if err := job(lease.Context(), token); err != nil {
		return err
	}
	_, err = done.Allow(ctx, day)
	return err
}

// Five processes try every few minutes, and a day's job is done once, although every third try fails. The storage refuses the
// process that was stopped for so long that its slot had lapsed.
func TestOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		const days = 4
		began := time.Now()
		day := func() string { return fmt.Sprint(int(time.Since(began).Hours() / 24)) }
		var mu sync.Mutex
		largest, tries, refused, written := int64(0), 0, 0, map[string]int{}
		manyAtOnce(5, func(i int) {
			c, stopped, random := newReal(t, s), i == 0, rand.New(rand.NewPCG(1, uint64(i)))
			time.Sleep(time.Duration(i) * time.Minute)
			for day() != fmt.Sprint(days) {
				today := day()
				_ = once(background, c, today, func(_ context.Context, token int64) error {
					if stopped {
						stopped = false
						s.Delete("reporting:" + today)
						time.Sleep(2 * time.Hour)
					}
					mu.Lock()
					defer mu.Unlock()
					switch tries++; {
					case token < largest:
						refused++
						return errors.New("refused")
					case tries%3 != 0:
						return errors.New("failed")
					}
					largest = token
					written[today]++
					return nil
				})
				time.Sleep(time.Minute + time.Duration(random.Int64N(int64(time.Hour))))
			}
		})
		require.Equal(t, map[string]int{"0": 1, "1": 1, "2": 1, "3": 1}, written)
		require.Equal(t, 1, refused)
	})
}

package throttle

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// opened returns a circuit that opened at base, and whose pause has passed.
func opened(base time.Time) *circuit {
	c := new(circuit)
	for range circuitFailures {
		c.fail(time.Since(base)-time.Second, 0)
	}
	return c
}

func since(base time.Time) func() time.Duration {
	return func() time.Duration { return time.Since(base) }
}

// A trial that fails after another call succeeded does not open the circuit again, unseen by those who count.
func TestCircuit_lateFailureOfATrial(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	ok, trial := c.admits(since(base), 0)
	require.True(t, ok)
	require.NotZero(t, trial)
	require.True(t, c.close())
	require.False(t, c.fail(time.Since(base), trial))
	ok, trial = c.admits(since(base), 0)
	require.True(t, ok)
	require.Zero(t, trial)
	require.False(t, c.close())
}

// The next trial does not begin before the one under way has ended, also if the time limit is longer than the pause.
func TestCircuit_longTrial(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	before := time.Since(base)
	_, trial := c.admits(since(base), time.Hour)
	require.Greater(t, trial-int64(before), int64(time.Hour+shortestPause-1))
}

// A trial that tells nothing leaves the next call to try.
func TestCircuit_trialWithoutAnswer(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	_, trial := c.admits(since(base), time.Hour)
	ok, _ := c.admits(since(base), time.Hour)
	require.False(t, ok)
	c.undecided(time.Since(base), trial)
	ok, trial = c.admits(since(base), time.Hour)
	require.True(t, ok)
	require.NotZero(t, trial)
}

// A circuit stays open if nobody uses its keys any more. The log tells of the end of the outage all the same, and of the
// next outage.
func TestCircuit_keysThatNobodyUsesAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var fails atomic.Bool
		server := process(func(ctx context.Context, cmd redis.Cmder) error {
			if fails.Load() {
				return io.ErrUnexpectedEOF
			}
			return admitting{}.Process(ctx, cmd)
		})
		c, err := New(server, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		used, unused := "a", "b"
		for c.laneOf("t:"+unused) == c.laneOf("t:"+used) {
			unused += "b"
		}
		ask := func(key string) { _, _ = c.Rate("t", PerHour(1)).Allow(context.Background(), key) }
		for outage := 1; outage <= 2; outage++ {
			fails.Store(true)
			for range circuitFailures {
				ask(used)
				if outage == 1 {
					ask(unused)
				}
			}
			require.Equal(t, outage, strings.Count(log.String(), "WARN"), log.String())
			fails.Store(false)
			for range 100 {
				time.Sleep(200 * time.Millisecond)
				ask(used)
			}
			require.Equal(t, outage, strings.Count(log.String(), "INFO"), log.String())
		}
		require.NotZero(t, c.lanes[c.laneOf("t:"+unused)].circuit.until.Load())
	})
}

// While a circuit is open whose keys are used, the log does not tell that the server decides again.
func TestCircuit_oneOfTwoFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		fails := map[string]bool{"a": true}
		server := process(func(ctx context.Context, cmd redis.Cmder) error {
			if key := cmd.(*call).key; fails[key[2:]] {
				return io.ErrUnexpectedEOF
			}
			return admitting{}.Process(ctx, cmd)
		})
		c, err := New(server, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		other := "b"
		for c.laneOf("t:"+other) == c.laneOf("t:a") {
			other += "b"
		}
		fails[other] = true
		ask := func(key string) { _, _ = c.Rate("t", PerHour(1)).Allow(context.Background(), key) }
		for i := range 100 {
			time.Sleep(200 * time.Millisecond)
			fails[other] = i < 20
			ask("a")
			ask(other)
		}
		require.Equal(t, 1, strings.Count(log.String(), "WARN"), log.String())
		require.Zero(t, strings.Count(log.String(), "INFO"), log.String())
		fails["a"] = false
		time.Sleep(time.Second)
		ask("a")
		require.Equal(t, 1, strings.Count(log.String(), "INFO"), log.String())
	})
}

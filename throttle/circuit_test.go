package throttle

import (
	"context"
	"fmt"
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

// A call that began before the circuit opened, or before it was tried again, makes no pause longer, and does not end it.
func TestCircuit_lateFailures(t *testing.T) {
	var now time.Duration
	c, err := New(admitting{}, Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(0, int64(now)) }})
	require.NoError(t, err)
	c.base = time.Unix(0, 0)
	l := &lane{}
	for now = 1; now <= 20; now++ {
		l.fails(c, 0, io.EOF)
	}
	require.EqualValues(t, circuitFailures, l.circuit.failures)
	require.Equal(t, shortestPause, l.circuit.pause)
	require.False(t, l.admits(now, time.Hour))
	now += shortestPause
	require.True(t, l.admits(now, time.Hour))
	require.False(t, l.admits(now+time.Hour, time.Hour), "the trial may last that long")
	l.undecided(now - 1)
	require.False(t, l.admits(now, time.Hour))
	l.undecided(now) // the trial says nothing: the next call may try
	require.True(t, l.admits(now, time.Hour))
	l.fails(c, now, io.EOF)
	require.Equal(t, 2*shortestPause, l.circuit.pause)
	l.works(c)
	for range circuitFailures { // with a success between any two
		l.works(c)
		l.fails(c, now, io.EOF)
		require.True(t, l.admits(now, time.Hour))
	}
}

// A circuit stays open if nobody uses its keys any more. The log reports the end of the outage all the same, and of the
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
		require.True(t, c.lanes[c.laneOf("t:"+unused)].circuit.open())
	})
}

// While a circuit is open whose keys are used, the log does not say that the server decides again.
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

// The keys of a cluster have many lanes: a master that does not answer stops the calls of its slots, not all.
func TestLanes_ofACluster(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true})
	defer rdb.Close()
	c, err := New(rdb, Options{})
	require.NoError(t, err)
	seen := map[int]bool{}
	for i := range 1000 {
		seen[c.laneOf(fmt.Sprint(i))] = true
	}
	require.Len(t, seen, clusterLanes)
	require.NoError(t, c.Close())
}

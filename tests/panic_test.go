package tests

import (
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// No transcript has the command GO.PANIC, which panics: the reply is an error, and the server goes on.
func TestPanic_repliesAnErrorAndTheServerGoesOn(t *testing.T) {
	lasts(t)
	s := start(t, options{module: buildModule(t, "-tags", "gothrottle_panic")})
	require.Equal(t, []int64{0, 2, 1, -1, 3600}, s.throttle("k", 1, 1, 3600))
	before := s.dataset()
	for _, call := range []string{"GO.PANIC k", "GO.PANIC k nil"} {
		require.ErrorContains(t, s.Do(ctx, fields(call)...).Err(), commands.ErrInternal.Text(), call)
		err := s.Eval(ctx, "return redis.pcall(unpack(ARGV))", nil, fields(call)...).Err()
		require.ErrorContains(t, err, commands.ErrInternal.Text(), call)
		require.Equal(t, "PONG", s.Ping(ctx).Val())
	}
	assert.Regexp(t, `panic in GO\.PANIC: GO\.PANIC was called\n(.*\n)+.*panic\.go:\d+`, s.log())
	// The key has not changed, and other calls work.
	same(t, before, s.dataset(), "after the panics")
	assert.Equal(t, []int64{0, 2, 0, -1, 7200}, s.throttle("k", 1, 1, 3600))
	for range 2000 { // many panics have no other effect, and do not fill the log
		require.Error(t, s.Do(ctx, "GO.PANIC", "k", "nil").Err())
	}
	assert.Equal(t, "2004", s.counters()["gothrottle_panics"])
	assert.Less(t, strings.Count(s.log(), "panic in GO.PANIC"), 200)
	assert.Equal(t, []int64{1, 2, 0}, s.throttle("k", 1, 1, 3600)[:3])
}

// A nil pointer in Go stays an error whatever CONFIG SET has done to the handlers of signals, in any order.
func TestPanic_signalSettings(t *testing.T) {
	lasts(t)
	module := buildModule(t, "-tags", "gothrottle_panic")
	s := start(t, options{bare: true, args: []string{"--enable-module-command", "yes"}})
	s.must("MODULE LOAD " + module)
	s.must("MODULE UNLOAD gothrottle")
	s.must("CONFIG SET crash-log-enabled no")
	s.must("MODULE LOAD " + module) // Go started before that CONFIG SET
	settings := []string{"crash-log-enabled no", "crash-log-enabled yes", "watchdog-period 500", "watchdog-period 0"}
	random := rand.New(rand.NewPCG(1, 2))
	alive := func(after string) {
		t.Helper()
		require.ErrorContains(t, s.Do(ctx, "GO.PANIC", "k", "nil").Err(), commands.ErrInternal.Text(), after)
		require.Equal(t, "PONG", s.Ping(ctx).Val(), after)
	}
	alive("a second load")
	for range 40 {
		setting := settings[random.IntN(len(settings))]
		s.must("CONFIG SET " + setting)
		alive(setting)
	}
	// A CONFIG SET that fails sets the handlers twice. The module sees it at the next turn of the server's clock.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	failing := "CONFIG SET crash-log-enabled no port " + port
	s.must("CONFIG SET crash-log-enabled yes hz 100")
	require.ErrorContains(t, s.Do(ctx, fields(failing)...).Err(), "CONFIG SET failed")
	time.Sleep(100 * time.Millisecond)
	s.must("PING")
	alive(failing)
}

// The server's watchdog interrupts Go, whose stack has no room for the watchdog's handler. A handler on that stack would
// damage the memory below it, which ends about every other server at its first garbage collection.
func TestPanic_watchdog(t *testing.T) {
	lasts(t)
	module := buildModule(t, "-tags", "gothrottle_panic")
	for range 6 {
		s := start(t, options{module: module, args: []string{"--hz", "500"}})
		s.must("CONFIG SET watchdog-period 4")
		for n := range 10 {
			require.ErrorContains(t, s.Do(ctx, "GO.PANIC", "k", "long").Err(), commands.ErrInternal.Text())
			for i := range 5 {
				s.setPolicies(manyPolicies(5*n + i))
			}
		}
		assert.Greater(t, strings.Count(s.log(), "WATCHDOG TIMER EXPIRED"), 5)
	}
}

package tests

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// panics checks that GO.PANIC replies an error, and that the server goes on.
func (s *server) panics(call, after string) {
	s.t.Helper()
	require.ErrorContains(s.t, s.Do(ctx, fields(call)...).Err(), commands.ErrInternal.Text(), after)
	require.Equal(s.t, "PONG", s.Ping(ctx).Val(), after)
}

// No transcript has the command GO.PANIC, which panics: a server goes on. The fake server's tests have what such a call leaves.
// The server's watchdog interrupts Go, whose stack has no room for the watchdog's handler: a handler on that stack would damage
// the memory below it, which ends about every other server at its first garbage collection.
func TestPanic(t *testing.T) {
	lasts(t)
	module := buildModule(t, "-tags", "gothrottle_panic")
	s := start(t, options{Module: module})
	s.works()
	for _, call := range []string{"GO.PANIC k", "GO.PANIC k nil"} {
		s.panics(call, "")
		err := s.Eval(ctx, "return redis.pcall(unpack(ARGV))", nil, fields(call)...).Err()
		require.ErrorContains(t, err, commands.ErrInternal.Text(), call)
	}
	assert.Regexp(t, `panic in GO\.PANIC: GO\.PANIC was called\n(.*\n)+.*panic\.go:\d+`, s.run.Log())
	t.Run("signal settings", func(t *testing.T) { testSignalSettings(t, module) })
	policies := ""
	for i := range 200 {
		policies += fmt.Sprintf("; p%d WINDOW 9 1h", i)
	}
	for range 6 {
		s := start(t, options{Module: module, Args: []string{"--hz", "100"}})
		s.must("CONFIG SET watchdog-period 20") // when it interrupts malloc, which it may on a busy machine, Redis 8.0 hangs
		for n := range 10 {
			s.panics("GO.PANIC k long", "the watchdog")
			for i := range 5 {
				s.setPolicies(fmt.Sprintf("p QUOTA %d 1h%s", 1+5*n+i, policies)) // the Go runtime collects the old ones
			}
		}
		assert.Greater(t, strings.Count(s.run.Log(), "WATCHDOG TIMER EXPIRED"), 5)
	}
}

// A nil pointer in Go stays an error whatever CONFIG SET has done to the handlers of signals, in any order.
func testSignalSettings(t *testing.T, module string) {
	s := start(t, options{Bare: true, Args: []string{"--enable-module-command", "yes"}})
	s.must("MODULE LOAD " + module)
	s.must("MODULE UNLOAD gothrottle")
	s.must("CONFIG SET crash-log-enabled no")
	s.must("MODULE LOAD " + module) // Go started before that CONFIG SET
	settings := []string{"crash-log-enabled no", "crash-log-enabled yes", "watchdog-period 500", "watchdog-period 0"}
	random := rand.New(rand.NewPCG(1, 2))
	s.panics("GO.PANIC k nil", "a second load")
	for range 40 {
		setting := settings[random.IntN(len(settings))]
		s.must("CONFIG SET " + setting)
		s.panics("GO.PANIC k nil", setting)
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
	s.panics("GO.PANIC k nil", failing)
}

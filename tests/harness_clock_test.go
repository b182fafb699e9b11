package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// clock is the wall clock of a server that was started with it. The server's monotonic clock
// stays the real one.
type clock struct {
	t testing.TB
	*servers.Clock
}

// newClock returns a clock that shows the real time.
func newClock(t testing.TB) *clock {
	t.Helper()
	if env.image != "" {
		t.Skip("the clock of a container cannot be set; the run with local servers has this test")
	}
	c, err := servers.NewClock(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &clock{t, c}
}

// startStill starts a server whose clock stands still, so that nothing drains while a test compares replies, however slow
// the machine is. The clock of a container runs.
func startStill(t testing.TB) *server {
	t.Helper()
	if env.image != "" {
		return start(t, options{})
	}
	c := newClock(t)
	c.freeze(time.Now())
	return start(t, options{clock: c})
}

// Valkey 9.1 advances a wall clock that stands still by the monotonic clock. So tests read
// states half a second away from the instants at which replies change.
const halfSecond = 500 * time.Millisecond

// sees waits until the server has seen the time of its clock.
func (s *server) sees(at time.Time) {
	s.t.Helper()
	eventually(s.t, "the server has seen the time", func() bool {
		late := s.now() - at.UnixNano()
		return late >= 0 && late < halfSecond.Nanoseconds()
	})
}

// shift makes the clock show the real time plus d.
func (c *clock) shift(d time.Duration) { c.set(false, d.Microseconds()) }

// freeze stops the clock at a time.
func (c *clock) freeze(at time.Time) { c.set(true, at.UnixMicro()) }

func (c *clock) set(frozen bool, wall int64) {
	c.t.Helper()
	c.Frozen, c.Wall = frozen, wall
	require.NoError(c.t, c.Write())
}

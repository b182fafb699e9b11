package tests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clock of a transcript goes forward only. After the server's clock was set back, the module's clock does not go back: it
// runs at half speed until the two agree. INFO shows by how much the module's clock is ahead. After a restart the lead is gone
// (GothrottleClockLead of docs/operating.md), but a limiter that was used while the clock was ahead holds times of that clock,
// until it is deleted.
func TestClock_leadAndRestart(t *testing.T) {
	c := newClock(t)
	s := start(t, options{Clock: c.Clock})
	const ahead = 3 * time.Hour
	lead := func() float64 {
		n, err := strconv.ParseInt(s.info("gothrottle", "gothrottle_clock_lead_us"), 10, 64)
		require.NoError(t, err)
		return float64(n) / 1e6
	}
	calls := []string{"GO.THROTTLE k 9 10 60", "GO.WINDOW k 1 60", "GO.QUOTA k 1 60", "GO.LEASE k 1 60 ID"}
	call := func(i int, id string) []int64 {
		words := fields(strings.NewReplacer(" k ", fmt.Sprintf(" k%d ", i), "ID", id).Replace(calls[i]))
		reply, err := s.Do(ctx, words...).Int64Slice()
		require.NoError(t, err, words)
		return reply
	}
	var first [][]int64
	c.shift(ahead)
	eventually(t, "the server's clock is ahead", func() bool { return s.now() > time.Now().Add(ahead/2).UnixNano() })
	for i := range calls {
		first = append(first, call(i, "a"))
	}
	assert.Zero(t, lead())
	c.shift(0)
	eventually(t, "the server's clock is set back", func() bool { return s.now() < time.Now().Add(ahead/2).UnixNano() })
	assert.InDelta(t, ahead.Seconds(), lead(), 60, "no call since")
	for i, line := range calls { // nothing is admitted too early
		reply := call(i, "b")
		assert.LessOrEqual(t, reply[3], int64(60), line)
		assert.Equal(t, i > 0, reply[0] == 1, "%s: %v", line, reply)
	}
	assert.InDelta(t, ahead.Seconds(), lead(), 60, "after calls")
	s.must("SAVE")
	s = s.restart(options{Clock: c.Clock})
	assert.Zero(t, lead())
	for i, line := range calls {
		reply := call(i, "c")
		assert.Equal(t, int64(1), reply[0], "%s: %v", line, reply)
		assert.InDelta(t, ahead.Seconds(), reply[3], 90, "%s: %v", line, reply)
		s.must(fmt.Sprint("DEL k", i))
		assert.Equal(t, first[i], call(i, "a"), line)
	}
}

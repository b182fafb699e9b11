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
// runs at half speed until the two agree. INFO shows by how much the module's clock is ahead, with calls and without.
func TestClock_setBack(t *testing.T) {
	c := newClock(t)
	s := start(t, options{clock: c})
	lead := func() int64 {
		n, err := strconv.ParseInt(s.counters()["gothrottle_clock_lead_us"], 10, 64)
		require.NoError(t, err)
		return n
	}
	const hour = int64(time.Hour / time.Microsecond)
	anHourAgo := func(what string) {
		t.Helper()
		n := lead()
		assert.True(t, n > hour-patience.Microseconds() && n <= hour, "%s: %d us ahead", what, n)
	}
	require.Equal(t, []int64{0, 5, 0, -1, 18_000}, s.throttle("k", 4, 1, 3600, 5))
	s.must("GO.WINDOW w 5 3600 5")
	assert.Zero(t, lead())
	c.shift(-time.Hour)
	eventually(t, "the server's clock is set back", func() bool { return s.now() < time.Now().Add(-time.Minute).UnixNano() })
	anHourAgo("no call since")
	anHourAgo("no call since, again")
	// Nothing is admitted too early, and no state is wrong.
	assert.Equal(t, []int64{1, 5, 0, 3600, 18_000}, s.throttle("k", 4, 1, 3600))
	assert.Equal(t, "[1 5 0 3600 3600]", s.must("GO.WINDOW w 5 3600"))
	assert.Equal(t, "[0 5 4 -1 3600]", s.must("GO.QUOTA q 5 3600"))
	anHourAgo("after a call")
	// Once the server's clock has caught up, the module follows it at once.
	c.shift(time.Second)
	eventually(t, "the server's clock is set forward", func() bool { return s.now() > time.Now().UnixNano() })
	assert.Zero(t, lead(), "no call since")
	s.must("GO.QUOTA q 5 3600")
	assert.Zero(t, lead())
}

// GothrottleClockLead of docs/operating.md: after a restart the lead is gone, but a limiter that was used while the
// clock was ahead holds times of that clock, until it is deleted.
func TestClock_leadAndRestart(t *testing.T) {
	c := newClock(t)
	s := start(t, options{clock: c})
	const lead = 3 * time.Hour
	calls := []string{"GO.THROTTLE k 9 10 60", "GO.WINDOW k 1 60", "GO.QUOTA k 1 60", "GO.LEASE k 1 60 ID"}
	call := func(i int, id string) []int64 {
		words := fields(strings.NewReplacer(" k ", fmt.Sprintf(" k%d ", i), "ID", id).Replace(calls[i]))
		return ints(t, s.Do(ctx, words...))
	}
	var first [][]int64
	c.shift(lead)
	eventually(t, "the server's clock is ahead", func() bool { return s.now() > time.Now().Add(lead/2).UnixNano() })
	for i := range calls {
		first = append(first, call(i, "a"))
	}
	c.shift(0)
	eventually(t, "the server's clock is set back", func() bool { return s.now() < time.Now().Add(lead/2).UnixNano() })
	for i, line := range calls { // the module's clock is still ahead
		assert.LessOrEqual(t, call(i, "b")[3], int64(60), line)
	}
	s.must("SAVE")
	s = s.restart(options{clock: c})
	assert.Equal(t, "0", s.counters()["gothrottle_clock_lead_us"])
	for i, line := range calls {
		reply := call(i, "c")
		assert.Equal(t, int64(1), reply[0], "%s: %v", line, reply)
		assert.InDelta(t, lead.Seconds(), reply[3], 90, "%s: %v", line, reply)
		s.must(fmt.Sprint("DEL k", i))
		assert.Equal(t, first[i], call(i, "a"), line)
	}
}

package throttle

import (
	"testing"
	"time"

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

// A trial that fails after another call succeeded does not open the circuit again, unseen by those who count.
func TestCircuit_lateFailureOfATrial(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	ok, trial := c.admits(base, 0)
	require.True(t, ok)
	require.NotZero(t, trial)
	require.True(t, c.close())
	require.False(t, c.fail(time.Since(base), trial))
	ok, trial = c.admits(base, 0)
	require.True(t, ok)
	require.Zero(t, trial)
	require.False(t, c.close())
}

// The next trial does not begin before the one under way has ended, also if the time limit is longer than the pause.
func TestCircuit_longTrial(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	before := time.Since(base)
	_, trial := c.admits(base, time.Hour)
	require.Greater(t, trial-int64(before), int64(time.Hour+shortestPause-1))
}

// A trial that tells nothing leaves the next call to try.
func TestCircuit_trialWithoutAnswer(t *testing.T) {
	base := time.Now().Add(-time.Hour)
	c := opened(base)
	_, trial := c.admits(base, time.Hour)
	ok, _ := c.admits(base, time.Hour)
	require.False(t, ok)
	c.undecided(time.Since(base), trial)
	ok, trial = c.admits(base, time.Hour)
	require.True(t, ok)
	require.NotZero(t, trial)
}

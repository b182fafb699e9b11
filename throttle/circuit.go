package throttle

import (
	"sync/atomic"
	"time"
)

// circuit stops asking a server that does not answer, and asks it again by itself. Times are since base.
type circuit struct {
	failures atomic.Int32 // in a row
	until    atomic.Int64 // the end of the pause; 0: no pause, the circuit is closed
	pause    atomic.Int64 // its length
}

// After circuitFailures failures in a row no call is sent for a pause. Then one call is sent: if it fails, the next
// pause is twice as long, and if it succeeds, all calls are sent again.
const (
	circuitFailures = 5
	shortestPause   = 100 * time.Millisecond
	longestPause    = 500 * time.Millisecond
	untried         = 10 * time.Second // after its pause an open circuit counts for the log this long, if nobody tries it
)

// admits reports whether a call with this time limit may be sent now. If the call tries a failing server again, trial is
// not 0, and names it. No other call is sent until the trial has ended, which it does within the time limit. A clock that
// was set back ends a pause.
func (c *circuit) admits(clock func() time.Duration, limit time.Duration) (ok bool, trial int64) {
	until := c.until.Load()
	if until == 0 {
		return true, 0
	}
	now := int64(clock())
	if now < until && until-now <= int64(limit)+2*int64(longestPause) {
		return false, 0
	}
	trial = now + int64(limit) + c.pause.Load()
	return c.until.CompareAndSwap(until, trial), trial
}

// fail notes that a call failed. It reports whether the circuit opened.
func (c *circuit) fail(now time.Duration, trial int64) (opened bool) {
	if trial != 0 {
		pause := max(min(2*c.pause.Load(), int64(longestPause)), int64(shortestPause))
		if c.until.CompareAndSwap(trial, int64(now)+pause) { // otherwise another call succeeded in between
			c.pause.Store(pause)
		}
		return false
	}
	if c.failures.Add(1) < circuitFailures || c.until.Load() != 0 {
		return false
	}
	c.pause.Store(int64(shortestPause))
	return c.until.CompareAndSwap(0, int64(now+shortestPause))
}

// undecided notes that a call ended and nothing is known of the server. The next call may try it.
func (c *circuit) undecided(now time.Duration, trial int64) {
	if trial != 0 {
		c.until.CompareAndSwap(trial, int64(now))
	}
}

// close notes that a call succeeded. It reports whether the circuit was open.
func (c *circuit) close() (closed bool) {
	if c.failures.Load() != 0 {
		c.failures.Store(0)
	}
	if c.until.Load() == 0 {
		return false
	}
	c.pause.Store(0)
	return c.until.Swap(0) != 0
}

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
)

// admits reports whether a call may be sent now, and whether it is the one that tries a failing server again.
func (c *circuit) admits(base time.Time) (ok, trial bool) {
	until := c.until.Load()
	if until == 0 {
		return true, false
	}
	now := time.Since(base)
	ok = int64(now) >= until && c.until.CompareAndSwap(until, int64(now)+c.pause.Load())
	return ok, ok
}

// fail notes that a call failed. It reports whether the circuit opened.
func (c *circuit) fail(now time.Duration, trial bool) (opened bool) {
	if trial {
		pause := min(2*c.pause.Load(), int64(longestPause))
		c.pause.Store(pause)
		c.until.Store(int64(now) + pause)
		return false
	}
	if c.failures.Add(1) < circuitFailures || c.until.Load() != 0 {
		return false
	}
	c.pause.Store(int64(shortestPause))
	return c.until.CompareAndSwap(0, int64(now+shortestPause))
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

package wire

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// circuit stops asking a server that does not answer, and asks it again by itself. The lane's lock guards it. Times are
// those of the client's clock.
type circuit struct {
	failures int           // in a row
	closed   int           // calls since the last reply whose connections were closed in use: see closedInUse
	since    time.Duration // the first of them
	open     bool          // until a reply comes
	tried    time.Duration // since when the calls are sent that may end the pause, or make it longer
	until    time.Duration // the end of the pause
	pause    time.Duration // its length
}

// After circuitFailures failures in a row no call is sent for a pause. Then one call is sent: if it fails, the next
// pause is twice as long, and if it succeeds, all calls are sent again. Calls that got no reply in time fail together when a
// server stalls for a moment, so they open the circuit only if nothing has come for another time limit.
const (
	circuitFailures = 5
	shortestPause   = 100 * time.Millisecond
	longestPause    = 500 * time.Millisecond
	mostInUse       = 64               // connections of a client, more or less
	untried         = 10 * time.Second // after a failure an open circuit counts for the log this long, if nobody tries it
)

// admits reports whether a call with this time limit may be sent now. If it is the one that tries a failing server again,
// no other is sent until it has ended, which it does within the time limit. A clock that was set back ends a pause.
func (l *lane) admits(now, limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.circuit
	if !c.open {
		return true
	}
	if now < c.until && c.until-now <= limit+2*longestPause {
		return false
	}
	c.tried, c.until = now, now+limit+c.pause
	return true
}

// failed notes that a call with this time limit failed, which began at this time. If it began before the circuit opened, or
// was tried again, it says nothing new.
func (l *lane) failed(c *Conn, began, limit time.Duration, err error) {
	if !errors.Is(err, context.DeadlineExceeded) {
		limit = 0
	}
	now := c.Now()
	if l.opens(c, began, now, limit, closedInUse(err) && pooled(c.rdb)) {
		c.failed.Store(int64(now))
		if !c.away.Swap(true) {
			c.logger.Warn("throttle: the server is unavailable", "error", err)
		}
	}
	// A cluster client asks for the masters again when it tries a call on another node, but calls of this package are sent
	// once. It asks in the background, once at a time.
	if rdb, ok := c.rdb.(interface{ ReloadState(context.Context) }); ok {
		rdb.ReloadState(context.Background())
	}
}

// closedInUse reports whether a call failed because its connection was closed. Idle connections may all be closed together, by a
// server that has restarted or a firewall that has forgotten them: that says nothing about new ones.
func closedInUse(err error) bool {
	var far *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &far) && far.Op != "dial" && !far.Timeout()
}

// opens counts a failure, and reports whether the circuit opens, or its pause gets longer. It opens only if the failures in
// a row began at least this long ago. A connection that was closed in use counts after mostInUse others.
func (l *lane) opens(c *Conn, began, now, least time.Duration, inUse bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.circuit
	if o.open && began < o.tried {
		return false
	}
	l.fails.Store(true)
	if inUse && !o.open {
		if o.closed++; o.closed <= mostInUse {
			return false
		}
	}
	if o.failures++; o.failures == 1 {
		o.since = now
	}
	if !o.open && (o.failures < circuitFailures || now-o.since < least) {
		return false
	}
	if !o.open {
		o.open = true
		c.open.Add(1)
	}
	o.pause = max(min(2*o.pause, longestPause), shortestPause)
	o.tried, o.until = now, now+o.pause-rand.N(o.pause/4) // so that processes that failed together don't try together
	return true
}

// undecided notes that a call ended and nothing is known of the server. If it was to try the server, the next call may.
func (l *lane) undecided(began time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.circuit.open && began >= l.circuit.tried {
		l.circuit.until = began
	}
}

// works notes that the server decides. A circuit that nobody has tried for long does not count for the log: perhaps its keys are
// not used any more, and it stays open.
func (l *lane) works(c *Conn) {
	if !c.found.Load() {
		c.found.Store(true)
	}
	if l.fails.Load() {
		l.mu.Lock()
		if l.circuit.open {
			c.open.Add(-1)
		}
		l.circuit = circuit{}
		l.fails.Store(false)
		l.mu.Unlock()
	}
	if c.away.Load() && (c.open.Load() == 0 || int64(c.Now()) > c.failed.Load()+int64(untried)) && c.away.Swap(false) {
		c.logger.Info("throttle: the server decides again")
	}
}

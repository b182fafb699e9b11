package resp

import (
	"context"
	"syscall"
	"time"
)

// Faults says how a server fails. The zero Faults is a server that works. Connections that are being set up fail as commands
// do, but for the replies of their greeting.
type Faults struct {
	Refuse   bool          // nobody listens: a new connection is refused
	Lost     bool          // packets of new connections get lost: setting one up never ends
	Silent   bool          // nothing is read or run; when this ends, what has come meanwhile is run
	Mute     bool          // commands are run, and their replies get lost
	Slow     time.Duration // each command takes so long, one after another
	Far      time.Duration // the round trip: each reply comes so much later, and each new connection, too
	NoModule bool          // only the script runs
	NoScript bool          // EVAL and EVALSHA are unknown

	// Error is what commands reply that are not run, such as "LOADING .."; those of a greeting are. Writes is the same for
	// commands that may write, such as "READONLY ..".
	Error, Writes string

	// Reply, if not nil, replies in place of the server to COMMAND and to commands that aren't part of a greeting; if it says
	// false, the server does.
	Reply func(words []string) (reply any, ok bool)
}

// Change changes the faults: commands that come from now on see them, and so do those that wait.
func (s *Server) Change(f func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.faults)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Stall makes the server silent for this long, as one whose process is stopped or swaps. It returns at once. A
// later Stall replaces it.
func (s *Server) Stall(d time.Duration) {
	var this int
	s.Change(func(f *Faults) {
		s.stalls++
		f.Silent, this = true, s.stalls
	})
	time.AfterFunc(d, func() { s.Change(func(f *Faults) { f.Silent = f.Silent && this != s.stalls }) })
}

// CutBefore closes the connection of the nth limiter's command from now on, and does not run it; the first is 1.
func (s *Server) CutBefore(n int) { s.locked(func() { s.counts[0] = n }) }

// CutAfter is like CutBefore, but the command is run.
func (s *Server) CutAfter(n int) { s.locked(func() { s.counts[1] = n }) }

// Cut closes all connections, and returns how many.
func (s *Server) Cut() int {
	return closeAll(s.connections(true))
}

func closeAll(all []*conn) int {
	for _, c := range all { // first, so that no call goes from a closed connection to the next one
		c.lost.Store(true)
	}
	for _, c := range all {
		c.close()
	}
	return len(all)
}

// HalfOpen makes the server forget its connections without a word, as a NAT table does: what clients send on them vanishes.
func (s *Server) HalfOpen() {
	for _, c := range s.connections(true) {
		c.lost.Store(true)
	}
}

// Restart closes all connections and forgets the script. Keys stay, as with an append-only file that loses nothing.
func (s *Server) Restart() {
	s.locked(func() { clear(s.scripts) })
	s.Cut()
}

func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// connections returns the connections, or those that faults touch.
func (s *Server) connections(touched bool) (all []*conn) {
	s.locked(func() {
		for c, touches := range s.conns {
			if touches || !touched {
				all = append(all, c)
			}
		}
	})
	return all
}

// failing returns the faults, and a channel that is closed when they change.
func (s *Server) failing() (Faults, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults, s.changed
}

// connects waits until a connection is set up.
func (s *Server) connects(ctx context.Context) error {
	for {
		f, changed := s.failing()
		switch {
		case f.Refuse:
			return syscall.ECONNREFUSED
		case !f.Lost:
			select {
			case <-time.After(f.Far):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turn returns how long a command waits until it is run: see Faults.Slow.
func (s *Server) turn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.busy.Before(now) {
		s.busy = now
	}
	s.busy = s.busy.Add(s.faults.Slow)
	return s.busy.Sub(now)
}

// cut reports whether the connection of a limiter's command is cut now, before or after it.
func (s *Server) cut(when int) (now bool) {
	s.locked(func() {
		now = s.counts[when] == 1
		s.counts[when] = max(s.counts[when]-1, 0)
	})
	return now
}

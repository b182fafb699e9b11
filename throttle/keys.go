package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// state is what a limiter knows of a key. Without a DenyCache or a Budget it is there only while a command is under way.
type state struct {
	denial atomic.Pointer[denial]
	grant  atomic.Pointer[grant]

	mu      sync.Mutex
	use     use
	dropped bool     // another state may be in its place
	busy    bool     // a command is under way
	waiting []*group // for the next one
}

// find returns the state of a key, or nil.
func (l *limiter) find(key string) *state {
	v, _ := l.keys.Load(key)
	s, _ := v.(*state)
	return s
}

// lock returns the state of a key, locked.
func (l *limiter) lock(key string) *state {
	for {
		s := l.find(key)
		if s == nil {
			v, _ := l.keys.LoadOrStore(key, new(state))
			s = v.(*state)
			l.sweepLater()
		}
		s.mu.Lock()
		if !s.dropped {
			return s
		}
		s.mu.Unlock()
	}
}

// drop forgets a state, which is locked.
func (l *limiter) drop(key string, s *state) {
	s.dropped = true
	l.keys.Delete(key)
}

const sweepEvery = 10 * time.Second

func (l *limiter) sweepLater() {
	if l.remembers() && !l.c.closed.Load() && l.sweeps.CompareAndSwap(false, true) {
		time.AfterFunc(sweepEvery, l.sweep)
	}
}

// sweep drops the states that mean the same as no state. Calls do not notice.
func (l *limiter) sweep() {
	l.sweeps.Store(false)
	now, left := l.c.now(), false
	l.keys.Range(func(key, v any) bool {
		s := v.(*state)
		s.mu.Lock()
		defer s.mu.Unlock()
		if d := s.denial.Load(); s.busy || d != nil && d.holds(now) || s.use.known(now, l.hold) {
			left = true
		} else {
			l.drop(key.(string), s)
		}
		return true
	})
	if left {
		l.sweepLater()
	}
}

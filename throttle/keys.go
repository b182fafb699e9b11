package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// state is what a limiter with a DenyCache or a Budget knows of a key.
type state struct {
	denial atomic.Pointer[denial]
	grant  atomic.Pointer[grant]

	mu      sync.Mutex
	use     use
	holder  *limiter      // the limiter of the name that may hold units of the key
	since   time.Duration // when it began
	dropped bool          // another state may be in its place
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

const sweepEvery = 10 * time.Second

func (l *limiter) sweepLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.c.closed.Load() && l.sweeper == nil {
		l.sweeper = time.AfterFunc(sweepEvery, l.sweep)
	}
}

// sweep drops the states that mean the same as no state. Calls do not notice.
func (l *limiter) sweep() {
	l.mu.Lock()
	l.sweeper = nil
	l.mu.Unlock()
	now, left := l.c.now(), false
	l.keys.Range(func(key, v any) bool {
		s := v.(*state)
		s.mu.Lock()
		defer s.mu.Unlock()
		if d := s.denial.Load(); d != nil && d.holds(now) || s.use.known(now, l.hold) || s.claimed(now, l.hold) {
			left = true
		} else {
			s.dropped = true
			l.keys.Delete(key)
		}
		return true
	})
	if left {
		l.sweepLater()
	}
}

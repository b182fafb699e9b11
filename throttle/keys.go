package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// state is what a family with a DenyCache or a Budget knows of a key.
type state struct {
	key    string
	denial atomic.Pointer[denial]
	grant  atomic.Pointer[grant]

	mu      sync.Mutex
	next    *grant        // taken ahead of need: spent after grant
	asks    bool          // a call for next is under way
	use     use           // by the holder
	holder  bounds        // the limit that may hold units of the key, one at a time: so Budget bounds the units of the key
	since   time.Duration // when it last asked for some, or became the holder
	dropped bool          // another state may be in its place
}

// find returns the state of a key, or nil.
func (f *family) find(key string) *state {
	v, _ := f.keys.Load(key)
	s, _ := v.(*state)
	return s
}

// lock returns the state of a key, locked.
func (f *family) lock(key string) *state {
	for {
		s := f.find(key)
		if s == nil {
			v, _ := f.keys.LoadOrStore(key, &state{key: key})
			s = v.(*state)
			f.sweepLater()
		}
		s.mu.Lock()
		if !s.dropped {
			return s
		}
		s.mu.Unlock()
	}
}

const sweepEvery = 10 * time.Second

func (f *family) sweepLater() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.c.closed.Load() && f.sweeper == nil {
		f.sweeper = time.AfterFunc(sweepEvery, f.sweep)
	}
}

// sweep drops the states that mean the same as no state. Calls do not notice.
func (f *family) sweep() {
	f.mu.Lock()
	f.sweeper = nil
	f.mu.Unlock()
	now, remain := f.c.conn.Now(), false
	f.keys.Range(func(key, v any) bool {
		s := v.(*state)
		s.mu.Lock()
		defer s.mu.Unlock()
		if d := s.denial.Load(); d != nil && d.holds(now) || s.use.known(now, f.hold) || s.claimed(now, f.hold) {
			remain = true
		} else {
			s.dropped = true
			f.keys.Delete(key)
		}
		return true
	})
	if remain {
		f.sweepLater()
	}
}

// Package local decides what a client can decide without its server: what it knows of the keys of a name, and which calls
// it can send as one. It has no network and no clock. Times that it is given are since any moment, and may jump.
//
// Keys keeps these promises, whatever the order of calls and replies:
//   - A unit that was granted is spent, given back or lost: one of them, once.
//   - A unit is spent by the limit that asked for it, within Hold after the call was sent.
//   - Of a key, one limit at a time holds units, and no more than Units.
//   - A denial is repeated to calls of the same limit for as many units, until its RetryAfter after the call was sent.
//   - After Closed, nothing is kept. A key that was dropped means the same as one that never was.
package local

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limit is what calls for a key have in common if they are equal. The zero value is none.
type Limit interface {
	comparable
	Part(within time.Duration) float64 // of a full limiter: how much drains within a time
}

// Reply is what a server says about a key.
type Reply struct {
	Allowed                bool
	Limit, Remaining       int64
	RetryAfter, ResetAfter time.Duration
}

// Keys is what a client knows of the keys of one name. Its methods may be called concurrently.
type Keys[L Limit] struct {
	Units  int64         // held of a key, at most
	Hold   time.Duration // how long they may be spent
	Closed *atomic.Bool
	Grew   func()   // is called when there is one more key, which a Sweep may drop later
	table  sync.Map // map[string]*Key[L]
}

// Key is what is known of a key.
type Key[L Limit] struct {
	name   string
	denial atomic.Pointer[denial[L]]
	grant  atomic.Pointer[Grant[L]]

	mu      sync.Mutex
	next    *Grant[L]     // taken ahead of need: spent after grant
	asks    bool          // a call for next is under way
	dropped bool          // another Key may be in its place
	use     use           // by the holder
	holder  L             // the limit that may hold units of the key
	since   time.Duration // when it last asked for some, or became the holder
}

// find returns a key, or nil if nothing is known of it.
func (k *Keys[L]) find(name string) *Key[L] {
	v, _ := k.table.Load(name)
	s, _ := v.(*Key[L])
	return s
}

// lock returns a key, locked.
func (k *Keys[L]) lock(name string) *Key[L] {
	for {
		s := k.find(name)
		if s == nil {
			v, _ := k.table.LoadOrStore(name, &Key[L]{name: name})
			s = v.(*Key[L])
			k.Grew()
		}
		s.mu.Lock()
		if !s.dropped {
			return s
		}
		s.mu.Unlock()
	}
}

// Sweep drops the keys that mean the same as none, and reports whether others remain. Calls do not notice.
func (k *Keys[L]) Sweep(now time.Duration) (remain bool) {
	k.table.Range(func(name, v any) bool {
		s := v.(*Key[L])
		s.mu.Lock()
		defer s.mu.Unlock()
		if d := s.denial.Load(); d != nil && d.holds(now) || s.use.known(now, k.Hold) || s.claimed(now, k.Hold) {
			remain = true
		} else {
			s.dropped = true
			k.table.Delete(name)
		}
		return true
	})
	return remain
}

// Forget drops what is known of a key, because it was deleted on the server.
func (k *Keys[L]) Forget(name string) {
	if s := k.find(name); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.denial.Store(nil)
		s.drop()
	}
}

// End ends the units of all keys, and calls back with those that can be given back.
func (k *Keys[L]) End(now time.Duration, back func(name string, of L, n int64)) {
	k.table.Range(func(name, v any) bool {
		s := v.(*Key[L])
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, g := range []*Grant[L]{s.grant.Swap(nil), s.next} {
			if g == nil || !g.fresh(now, k.Hold) {
				continue
			}
			if n := g.end(); n > 0 {
				back(name.(string), g.of, n)
			}
		}
		s.next = nil
		return true
	})
}

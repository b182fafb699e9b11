package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// marks remembers which keys have a refused hit counted, until their window ends, and how many more were refused since.
type marks struct {
	mu         sync.Mutex
	marks      map[string]*mark
	overridden atomic.Bool // a limit came with a request
}

type mark struct {
	until time.Time
	late  int64  // hits that are not counted yet
	limit *limit // that refused them
}

const maxMarks = 1 << 16

func (a *ask) markKey() string { return a.limit.bound.Info().Name + ":" + a.key }

// find returns the mark of a key, or nil. The marks are locked.
func (m *marks) find(a *ask) *mark {
	found := m.marks[a.markKey()]
	if found != nil && time.Now().After(found.until) {
		return nil
	}
	return found
}

// note adds hits to a mark. It returns false if there is none.
func (m *marks) note(a *ask, hits int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.find(a)
	if found != nil {
		found.late += hits
	}
	return found != nil
}

func (m *marks) add(a *ask, lasts time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil || len(m.marks) >= maxMarks {
		m.marks = map[string]*mark{}
	}
	if m.find(a) == nil {
		m.marks[a.markKey()] = &mark{until: time.Now().Add(lasts), limit: a.limit}
	}
}

// late returns the hits that must be counted before the ask is decided: those that another limit of the key has refused,
// if one of both limits came with a request. A limit of the files that was raised admits at once.
func (m *marks) late(a *ask) (hits int64) {
	if a.limit.override {
		m.overridden.Store(true)
	}
	if !m.overridden.Load() || !a.limit.charge {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.find(a); found != nil && found.limit.units != a.limit.units && (found.limit.override || a.limit.override) {
		hits, found.late = found.late, 0
	}
	return hits
}

func (m *marks) forget(a *ask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, a.markKey())
}

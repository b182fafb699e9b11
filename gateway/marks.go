package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// marks remembers which keys have a refused hit counted, until their window ends, and how many more were refused since.
type marks struct {
	mu    sync.Mutex
	marks map[string]*mark
	used  atomic.Bool
}

type mark struct {
	until time.Time
	late  int64  // hits that are not counted yet
	limit *limit // that refused them
}

const maxMarks = 1 << 16

// note adds hits to a mark. It returns false if there is none.
func (m *marks) note(a *ask, hits int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.marks[a.markKey()]
	if found == nil || time.Now().After(found.until) {
		return false
	}
	found.late += hits
	return true
}

func (m *marks) add(a *ask, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil || len(m.marks) >= maxMarks {
		m.marks = map[string]*mark{}
	}
	now := time.Now()
	if found := m.marks[a.markKey()]; found != nil && now.Before(found.until) {
		return
	}
	m.marks[a.markKey()] = &mark{until: now.Add(d), limit: a.limit}
	m.used.Store(true)
}

// late returns the hits that must be counted before the ask is decided: those that another limit of the key has refused,
// if one of both limits came with a request. A limit of the files that was raised admits at once.
func (m *marks) late(a *ask) (hits int64) {
	if !m.used.Load() || !a.limit.charge {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.marks[a.markKey()]
	if found == nil || found.limit.units == a.limit.units || !found.limit.override && !a.limit.override || time.Now().After(found.until) {
		return 0
	}
	hits, found.late = found.late, 0
	return hits
}

func (m *marks) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, key)
}

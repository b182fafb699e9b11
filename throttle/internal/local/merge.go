package local

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Merge makes one call of those that come while a call for the same spot S is under way. If Many callers wait, they don't wait
// for its end: two are then under way. A is the answer to all callers of one call. A caller's place in it says how many came
// before, without those that did not wait.
type Merge[S comparable, A any] struct {
	Ask         func(ctx context.Context, at S, callers int64) A // makes the call
	Start       func(f func()) bool                              // starts a goroutine, or reports that no call follows
	Limit       time.Duration                                    // callers wait for at most this long
	Slack       time.Duration                                    // they may wait for so much less, because they share timers
	Many        int64                                            // 0: two calls are never under way
	Late, Ended error                                            // after Limit, and if no call follows

	mu   sync.Mutex
	busy map[S]*spot[A] // for which calls are under way
}

// spot is what is under way for a spot, and who waits for the next call.
type spot[A any] struct {
	calls  int
	groups []*group[A]
}

// group is callers that wait for one call. They began within Slack of each other, and share a timer.
type group[A any] struct {
	first   context.Context // of the first caller, for its values
	timer   *time.Timer
	full    bool // later callers need another group
	callers int64
	gone    []int64 // the places of callers that did not wait for the answer
	over    bool    // the callers have their answer

	done   chan struct{} // closed when the fields below are set
	before int64         // callers of earlier groups
	answer *A
	err    error
}

// Do makes a call for one caller, whose answer is in own, or waits for one with others. The first call for a spot is made at
// once.
func (m *Merge[S, A]) Do(ctx context.Context, at *S, own *A) (a *A, place int64, err error) {
	m.mu.Lock()
	s := m.busy[*at]
	if s == nil {
		if m.busy == nil {
			m.busy = map[S]*spot[A]{}
		}
		s = &spot[A]{calls: 1}
		m.busy[*at] = s
		m.mu.Unlock()
		defer m.next(*at, s)
		*own = m.Ask(ctx, *at, 1)
		return own, 0, nil
	}
	g := m.group(ctx, s)
	place = g.callers
	g.callers++
	if m.Many > 0 && s.calls == 1 && s.waiting() >= m.Many {
		m.begin(*at, s)
	}
	m.mu.Unlock()
	return m.await(ctx, g, place)
}

// await waits for the answer to a group.
func (m *Merge[S, A]) await(ctx context.Context, g *group[A], place int64) (*A, int64, error) {
	if ctx.Done() == nil {
		<-g.done // a select would take twice as long
		return g.result(place)
	}
	select {
	case <-g.done:
		return g.result(place)
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.over {
		return g.result(place)
	}
	g.gone = append(g.gone, place)
	return nil, 0, fmt.Errorf("throttle: %w", ctx.Err())
}

// group returns the group of a caller that begins now. m.mu is locked.
func (m *Merge[S, A]) group(ctx context.Context, s *spot[A]) *group[A] {
	if n := len(s.groups); n > 0 && !s.groups[n-1].full {
		return s.groups[n-1]
	}
	g := &group[A]{first: ctx, done: make(chan struct{})}
	g.timer = time.AfterFunc(m.Slack, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !g.full {
			g.full = true
			g.timer.Reset(m.Limit - m.Slack)
			return
		}
		g.finish(m.Late)
	})
	s.groups = append(s.groups, g)
	return g
}

// finish lets the callers go, unless their time was over before. The Merge is locked.
func (g *group[A]) finish(err error) {
	if g.over {
		return
	}
	g.err, g.over = err, true
	g.timer.Stop()
	close(g.done)
}

// waiting returns how many callers still wait. The Merge is locked.
func (g *group[A]) waiting() int64 {
	if g.over {
		return 0
	}
	return g.callers - int64(len(g.gone))
}

// result returns the answer, and the caller's place among all that waited. g.done is closed.
func (g *group[A]) result(place int64) (*A, int64, error) {
	at := g.before + place
	for _, gone := range g.gone {
		if gone < place {
			at--
		}
	}
	return g.answer, at, g.err
}

// waiting returns how many callers wait for the next call. The Merge is locked.
func (s *spot[A]) waiting() (callers int64) {
	for _, g := range s.groups {
		callers += g.waiting()
	}
	return callers
}

// begin makes the call of those who wait. If there are none, or no call follows, they are let go. m.mu is locked.
func (m *Merge[S, A]) begin(at S, s *spot[A]) {
	groups, callers := s.groups, s.waiting()
	s.groups = nil
	if callers > 0 && m.Start(func() { m.lead(at, s, groups, callers) }) {
		s.calls++
		return
	}
	for _, g := range groups {
		g.finish(m.Ended)
	}
}

// next notes the end of a call, and begins the next one.
func (m *Merge[S, A]) next(at S, s *spot[A]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.calls--; s.calls == 0 || s.waiting() >= m.Many {
		m.begin(at, s)
	}
	if s.calls == 0 {
		delete(m.busy, at)
	}
}

// lead makes the call of some groups. A caller whose time limit ends earlier returns earlier. The call has a time limit of its
// own, and the values of the first caller's context.
func (m *Merge[S, A]) lead(at S, s *spot[A], groups []*group[A], callers int64) {
	answer := m.Ask(context.WithoutCancel(groups[0].first), at, callers)
	m.mu.Lock()
	before := int64(0)
	for _, g := range groups { // some callers have gone since the call was made: others get their units
		if g.over {
			continue
		}
		g.before, g.answer = before, &answer
		before += g.waiting()
		g.finish(nil)
	}
	m.mu.Unlock()
	regroup(callers)
	m.next(at, s)
}

// regroup lets the callers run that have their answers, so that they join the next call. Otherwise the next call would be
// made with only a few of them. The scheduler comes back to a goroutine that yields after about 60 others.
func regroup(callers int64) {
	for range min(callers/32+1, 8) {
		runtime.Gosched()
	}
}

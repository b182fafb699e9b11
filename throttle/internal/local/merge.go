package local

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Merge makes one call of those that come while a call for the same spot S is under way: there are never two. A is the answer
// to all callers of one call. A caller's place in it says how many came before, without those that did not wait.
type Merge[S comparable, A any] struct {
	Ask         func(ctx context.Context, at S, callers int64) A // makes the call
	Start       func(f func()) bool                              // starts a goroutine, or reports that no call follows
	Limit       time.Duration                                    // callers wait for at most this long
	Slack       time.Duration                                    // they may wait for so much less, because they share timers
	Late, Ended error                                            // after Limit, and if no call follows

	mu   sync.Mutex
	busy map[S][]*group[A] // the calls under way, and who waits for the next one
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
	if groups, busy := m.busy[*at]; busy {
		g := m.group(ctx, at, groups)
		place = g.callers
		g.callers++
		m.mu.Unlock()
		return m.await(ctx, g, place)
	}
	if m.busy == nil {
		m.busy = map[S][]*group[A]{}
	}
	m.busy[*at] = nil
	m.mu.Unlock()
	defer m.next(*at)
	*own = m.Ask(ctx, *at, 1)
	return own, 0, nil
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
func (m *Merge[S, A]) group(ctx context.Context, at *S, groups []*group[A]) *group[A] {
	if n := len(groups); n > 0 && !groups[n-1].full {
		return groups[n-1]
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
	m.busy[*at] = append(groups, g)
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

// next lets those go who waited for the end of a call. If there are none, no call is under way any more.
func (m *Merge[S, A]) next(at S) {
	m.mu.Lock()
	defer m.mu.Unlock()
	groups, callers := m.busy[at], int64(0)
	for _, g := range groups {
		callers += g.waiting()
	}
	if callers > 0 && m.Start(func() { m.lead(at, groups, callers) }) {
		m.busy[at] = nil
		return
	}
	for _, g := range groups {
		g.finish(m.Ended)
	}
	delete(m.busy, at)
}

// lead makes the call of some groups. A caller whose time limit ends earlier returns earlier. The call has a time limit of its
// own, and the values of the first caller's context.
func (m *Merge[S, A]) lead(at S, groups []*group[A], callers int64) {
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
	m.next(at)
}

// regroup lets the callers run that have their answers, so that they join the next call. Otherwise the next call would be
// made with only a few of them. The scheduler comes back to a goroutine that yields after about 60 others.
func regroup(callers int64) {
	for range min(callers/32+1, 8) {
		runtime.Gosched()
	}
}

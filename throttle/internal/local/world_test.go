package local

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"gothrottle/funnel"
)

// A world is some clients with a budget each, and one limiter on the server that drains one unit per tick. All that can
// happen in it is explored: every order of takes, spends, give-backs, crashes, lost replies and ticks.
type world struct {
	limit, units, clients, hold int64
	givesBack                   bool
}

// The most clients of a world.
const mostClients = 3

// worldState is what the future of a world depends on.
type worldState struct {
	used     int8 // units in use on the server
	admitted int8 // the most that was admitted in a span that ends now, less what drains in it
	clients  [mostClients]worldClient
}

type worldClient struct {
	held, age     int8 // units held, and the ticks since they were sent for
	next, nextAge int8 // the same of units that were taken ahead of need
	coming, since int8 // the same of units whose reply has not come
	waits         int8 // 1: for a reply
}

// excess explores a world and returns the most that was admitted above limit + rate x t in any span, and the number of
// states.
func (w world) excess() (most int64, states int) {
	seen := map[worldState]bool{{}: true}
	queue := []worldState{{}}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		most = max(most, int64(s.admitted)-w.limit)
		w.next(s, func(n worldState) {
			slices.SortFunc(n.clients[:w.clients], worldClient.compare)
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		})
	}
	return most, len(seen)
}

// next calls visit with every state that can follow.
func (w world) next(s worldState, visit func(worldState)) {
	visit(w.tick(s))
	for i := range w.clients {
		c := s.clients[i]
		to := func(c worldClient) {
			n := s
			n.clients[i] = c
			visit(n)
		}
		if g := c.grant(); c.held > 0 {
			if g.fresh(now, time.Duration(w.hold)) && g.spend(1) == 1 {
				n := s
				n.admitted++
				n.clients[i] = c.with(g)
				visit(n)
			}
			to(worldClient{coming: c.coming, since: c.since, waits: c.waits}) // a crash
			if w.givesBack && c.waits == 0 {
				n, back := s, c.next
				if g.fresh(now, time.Duration(w.hold)) {
					back += int8(g.end())
				}
				n.used = max(n.used-back, 0)
				n.clients[i] = worldClient{}
				visit(n)
			}
		}
		w.calls(s, i, to, visit)
	}
}

// calls calls visit with every state that follows when a client sends a command, or when its reply comes or is lost.
func (w world) calls(s worldState, i int64, to func(worldClient), visit func(worldState)) {
	c := s.clients[i]
	if c.waits == 1 {
		lost := c
		lost.coming, lost.since, lost.waits = 0, 0, 0
		to(lost)
		came := lost
		if came.next, came.nextAge = c.coming, c.since; c.coming == 0 || int64(c.since) > w.hold {
			came.next, came.nextAge = 0, 0
		}
		to(came.turn())
	}
	n, most := s, w.units-int64(c.held) // ahead of need, the budget bounds both together
	own := int64(1)                     // else a unit is spent at once
	if c.held > 0 {
		own = 0
	}
	switch {
	case c.next > 0 || c.waits == 1 && c.held > 0:
		return
	case c.waits == 1: // no more in advance
		most = 0
	}
	for more := 1 - own; more <= most; more++ {
		if m, granted := w.take(n, own+more); granted > 0 {
			m.admitted += int8(own)
			if c.waits == 0 {
				m.clients[i].waits, m.clients[i].coming = 1, int8(granted-own)
			}
			visit(m)
		}
	}
}

// turn puts the units that were taken ahead in the place of those that are spent.
func (c worldClient) turn() worldClient {
	if c.held == 0 {
		c.held, c.age, c.next, c.nextAge = c.next, c.nextAge, 0, 0
	}
	return c
}

// now is the time of a state. Ages count back from it.
const now = time.Duration(100)

func (c worldClient) compare(d worldClient) int {
	return cmp.Or(int(c.held-d.held), int(c.age-d.age), int(c.next-d.next), int(c.nextAge-d.nextAge), int(c.coming-d.coming), int(c.since-d.since), int(c.waits-d.waits))
}

func (c worldClient) grant() *Grant[rate] {
	return newGrant(nil, rate{}, int64(c.held), now-time.Duration(c.age), &Reply{})
}

func (c worldClient) with(g *Grant[rate]) worldClient {
	c.held, c.age = int8(g.left.Load()), int8(now-g.since)
	if c.held == 0 {
		c.age = 0
	}
	return c.turn()
}

// take asks the server for up to n units.
func (w world) take(s worldState, n int64) (worldState, int64) {
	limit := w.limit
	each := funnel.Rate{Period: funnel.Second, Count: 1}
	state := funnel.ThrottleState{}
	at := funnel.Nanos(1e18)
	if s.used > 0 {
		state = funnel.ThrottleState{TAT: at + funnel.Nanos(s.used)*funnel.Second, Rate: each}
	}
	_, v := funnel.Throttle(at, state, &funnel.ThrottleParams{Limit: limit, Rate: each, Quantity: n, UpTo: true})
	s.used += int8(v.Granted)
	return s, v.Granted
}

// tick lets one unit drain, and drops what is too old to be spent, so that the states are finite.
func (w world) tick(s worldState) worldState {
	s.used, s.admitted = max(s.used-1, 0), max(s.admitted-1, 0)
	for i := range w.clients {
		c := &s.clients[i]
		if c.held > 0 {
			if c.age++; int64(c.age) > w.hold {
				c.held, c.age = 0, 0
			}
		}
		if c.next > 0 {
			if c.nextAge++; int64(c.nextAge) > w.hold {
				c.next, c.nextAge = 0, 0
			}
		}
		*c = c.turn()
		if c.waits == 1 {
			if c.since++; int64(c.since) > w.hold {
				c.coming, c.since = 0, int8(w.hold)+1
			}
		}
	}
	return s
}

// worlds returns all small worlds. With -short a tenth of the states is explored. The limit is never what bounds the excess.
func worlds() (all []world) {
	largest := int64(18)
	if testing.Short() {
		largest = 8
	}
	for clients := int64(1); clients <= mostClients; clients++ {
		for units := int64(1); units <= 3; units++ {
			for hold := int64(1); hold <= 8 && clients*units*hold <= largest; hold++ {
				all = append(all, world{limit: clients*units + 2, clients: clients, units: units, hold: hold})
			}
		}
	}
	return all
}

// The bounds in the documentation of Budget are never passed, in any order of events. A client that takes nothing ahead of
// need spends a unit of every take at once. So k clients that hold units have used k units in the same time, and the excess is
// smaller.
func TestBudget_bounds(t *testing.T) {
	states := 0
	for _, w := range worlds() {
		exact := min(w.clients*w.units, w.hold)
		if w.units == 1 || w.hold == 1 { // nothing is taken ahead
			exact = 0
			for k := int64(1); k <= w.clients; k++ {
				exact = max(exact, min(k*w.units, w.hold-k))
			}
		}
		excess, n := w.excess()
		if excess != exact {
			t.Errorf("%+v: at most %d above the limit, want %d", w, excess, exact)
		}
		w.givesBack = true
		excess, more := w.excess()
		if bound := min(w.clients*w.units, w.hold+(w.clients-1)*w.units); excess > bound {
			t.Errorf("%+v: at most %d above the limit, the bound is %d", w, excess, bound)
		}
		states += n + more
	}
	t.Logf("%d states", states)
	if !testing.Short() && states < 1_000_000 {
		t.Errorf("only %d states were explored", states)
	}
}

package sim

import (
	"maps"
	"reflect"
	"slices"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	exact "gothrottle/tests/world"
)

// node is one server. It is the master, a replica, a deposed master that still takes calls, or dead.
type node struct {
	id      int
	server  *corpus.Memory
	offset  int64 // µs: how far its wall clock is ahead of the true time
	clock   funnel.Clock
	applied int // how many groups of the log it has
	alive   bool
	deposed bool
	models  exact.Keys // of a master, also of a deposed one
}

// group is what a call did. A replica gets its effects together.
type group struct {
	limiter *limiter
	before  *exact.State // of the key, before the call
	granted int64        // units
	holder  string       // who was granted a slot
	effects [][]string
}

// state returns a copy of the state of a limiter's key.
func (n *node) state(l *limiter) *exact.State { return n.models.Clone(l.key)[l.key] }

// clockOf returns the time that a node decides by.
func (w *world) clockOf(n *node) funnel.Micros {
	last := n.clock.Last
	now := n.clock.Now(funnel.Micros(w.now+n.offset), func() funnel.Micros { return funnel.Micros(w.now) })
	if now < last {
		w.fail("the clock of node %d runs back from %d to %d", n.id, last, now)
	}
	return now
}

// publish appends what the master did to the log.
func (w *world) publish(g group) {
	if f := w.planted.effects; f != nil && w.one(10) {
		g.effects = f(w, slices.Clone(g.effects))
	}
	if len(g.effects) > 0 {
		w.log = append(w.log, g)
	}
	w.nodes[w.master].applied = len(w.log)
}

// deliver applies the next group at a replica.
func (w *world) deliver(n *node) bool {
	if !n.alive || n.deposed || n.id == w.master || n.applied == len(w.log) {
		return false
	}
	g := &w.log[n.applied]
	w.note("node %d applies %q", n.id, g.effects)
	for _, words := range g.effects {
		n.apply(w, words)
	}
	n.applied++
	if n.expiry(g.limiter) == 0 {
		w.fail("%s has no expiry at node %d", g.limiter.key, n.id)
	}
	if n.applied == len(w.log) {
		w.checkSame(n, g.limiter)
	}
	return true
}

// apply does what the master replicates. An expired key stays until it is deleted.
func (n *node) apply(w *world, words []string) {
	if _, err := n.server.Do(0, words...); err != nil {
		w.fail("node %d: %q: %v", n.id, words, err)
	}
}

// checkSame holds a replica that has applied everything against the master.
func (w *world) checkSame(n *node, l *limiter) {
	if a, b := w.nodes[w.master].server.Get(l.key), n.server.Get(l.key); !reflect.DeepEqual(a, b) {
		w.fail("%s: the master holds %+v, replica %d has %+v", l.key, a, n.id, b)
	}
}

// expiry returns when a key expires, in ms since the Unix epoch: 0 if it has no expiry, -1 if there is no key.
func (n *node) expiry(l *limiter) int64 {
	if v := n.server.Get(l.key); v != nil {
		return v.Expire
	}
	return -1
}

// failover makes a replica the master, whatever it has applied. The old master is dead, or lives on.
func (w *world) failover() bool {
	old, next := w.nodes[w.master], w.pickReplica()
	if next == nil {
		return false
	}
	lives := w.random.IntN(2) == 0
	w.note("node %d becomes the master, behind by %d groups; the old master lives: %v", next.id, len(w.log)-next.applied, lives)
	if f := w.planted.promote; f != nil {
		f(w, next)
	}
	next.models = old.models.Clone(slices.Collect(maps.Keys(old.models))...)
	for i := len(w.log) - 1; i >= next.applied; i-- {
		g := &w.log[i]
		next.models[g.limiter.key] = g.before.Clone()
		w.lose(g)
	}
	w.log = w.log[:next.applied]
	old.alive, old.deposed = lives, lives
	w.master = next.id
	w.seen["failovers"]++
	for _, n := range w.nodes {
		if n.alive && !n.deposed && n != next && n.applied > len(w.log) {
			w.resync(n)
		}
	}
	return true
}

func (w *world) pickReplica() *node {
	for range 6 {
		if n := w.nodes[w.random.IntN(len(w.nodes))]; n.alive && !n.deposed && n.id != w.master {
			return n
		}
	}
	return nil
}

// lose notes what the next master does not know of.
func (w *world) lose(g *group) {
	l := g.limiter
	w.seen["lost"] += max(g.granted, 0)
	l.charged.lose(w.now, g.granted, 0)
	l.spent.lose(w.now, g.granted, w.hold())
	if h := l.holders[g.holder]; h != nil {
		h.lost = true
	}
}

// resync gives a node all that the master has.
func (w *world) resync(n *node) bool {
	w.note("node %d is synchronised", n.id)
	w.seen["resyncs"]++
	if !n.alive {
		n.clock = funnel.Clock{}
	}
	n.alive, n.deposed = true, false
	n.server, n.applied, n.models = corpus.NewMemory(), len(w.log), nil
	master := w.nodes[w.master].server
	for _, key := range master.Keys() {
		n.server.Put(key, master.Get(key))
	}
	if f := w.planted.resync; f != nil {
		f(w, n)
	}
	return true
}

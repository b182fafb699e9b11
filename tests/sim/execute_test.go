package sim

import (
	"slices"

	"gothrottle/funnel"
	exact "gothrottle/tests/world"
)

// execute runs a request at a node and holds the reply and the state against the oracles.
func (w *world) execute(n *node, m *message) ([]int64, error) {
	master := n.id == w.master
	if !n.alive {
		return nil, errLost
	}
	if !master && !n.deposed {
		return nil, errReadOnly
	}
	now, l := w.clockOf(n), m.limiter
	g := group{limiter: l, before: n.state(l)}
	w.checkExpired(n, l, now)
	n.server.Clock(int64(now))
	got, effects := n.server.Call(m.words)
	err, _ := got.(error)
	reply := integers(got)
	m.decided = w.now
	w.note("node %d runs %q of client %d at %d: %v, %v", n.id, m.words, m.from(), now, reply, err)
	if w.check(n, m, now, &g, reply, err); w.broken != "" {
		return reply, err
	}
	w.checkState(n, l, now)
	if g.effects = effects; master && len(effects) > 0 {
		w.publish(g)
	}
	return reply, err
}

// check holds a call against the oracle of its limiter.
func (w *world) check(n *node, m *message, now funnel.Micros, g *group, reply []int64, err error) {
	c := callOf(m.words)
	want, granted := c.Reply(n.models, now)
	if wrong := want == exact.ErrTooMuch; (err != nil) != wrong || !slices.Equal(reply, integers(want)) {
		w.fail("%q at %d: the reply is %v, %v; the oracle has %v", m.words, now, reply, err, want)
	} else if err == nil {
		w.count(m, c, g, granted, reply, n.id == w.master)
	}
}

// integers returns the integers of a reply, none if it is an error.
func integers(reply any) (all []int64) {
	switch reply := reply.(type) {
	case int64:
		return []int64{reply}
	case []any:
		for _, n := range reply {
			all = append(all, n.(int64))
		}
	}
	return all
}

// checkExpired makes sure that a key that has expired held nothing that is in use. The server forgets it now.
func (w *world) checkExpired(n *node, l *limiter, now funnel.Micros) {
	at := n.expiry(l)
	if at <= 0 || int64(now)/1000 <= at {
		return
	}
	if n.models.Gone(l.key, now) {
		w.fail("%s expired at node %d at %d ms while units are in use", l.key, n.id, at)
	}
	w.seen["expired"]++
}

// checkState makes sure that what is in use has a key, and each key an expiry that is not too early.
func (w *world) checkState(n *node, l *limiter, now funnel.Micros) {
	at := n.expiry(l)
	if at == 0 {
		w.fail("%s has no expiry at node %d", l.key, n.id)
	}
	gone := now
	if at > 0 {
		gone = max(now, funnel.Micros(at+1)*1000)
	}
	if (at < 0 || w.random.IntN(8) == 0) && !n.state(l).Void(gone) {
		w.fail("%s is in use at node %d when it expires at %d ms", l.key, n.id, at)
	}
}

// count notes what was granted, and holds it against the bounds.
func (w *world) count(m *message, c *call, g *group, granted int64, reply []int64, master bool) {
	l := g.limiter
	if g.granted = granted; l.kind == leaseKind && c.Release == nil && granted > 0 {
		g.holder = c.ID
	}
	if l.kind == leaseKind {
		w.slots(l, c, g, master)
		return
	}
	if u := m.giver; u != nil && c.Quantity < 0 {
		k := u.of(l)
		if k.units += c.Quantity; k.units < 0 {
			w.fail("%s: user %d gives back %d units more than it has", l.key, u.id, -k.units)
		}
		if m.sent-k.taken > w.hold() {
			w.fail("%s: user %d gives back units that it took %d µs before", l.key, u.id, m.sent-k.taken)
		}
	}
	if g.granted < 0 && reply[2] > reply[1] {
		w.fail("%s: after a refund %d of %d units are left", l.key, reply[2], reply[1])
	}
	w.tally(c, reply)
	if l.mixed {
		return
	}
	if !master {
		w.seen["lost"] += max(g.granted, 0)
		l.spent.lose(w.now, g.granted, w.hold())
		return
	}
	if over := l.charged.admit(w.now, g.granted, 0); over > 0 {
		w.fail("%s: masters granted %d units too many in the last period, with a credit of %d", l.key, over, l.charged.credit)
	}
}

// tally counts what happened, for the summary.
func (w *world) tally(c *call, reply []int64) {
	switch {
	case c.Quantity < 0:
		w.seen["refunds"]++
	case reply[0] == 0:
		w.seen["admitted"]++
	default:
		w.seen["denied"]++
	}
	for _, n := range reply {
		w.digest = w.digest*1099511628211 ^ uint64(n)
	}
}

// slots notes who holds slots, and makes sure that no more slots are held than there are.
func (w *world) slots(l *limiter, c *call, g *group, master bool) {
	if c.Release != nil && master {
		delete(l.holders, c.Release[0])
	} else if g.granted > 0 {
		l.holders[c.ID] = &holder{until: w.now + int64(c.Period.Micros()) - 2*w.skew, lost: !master}
	}
	held := int64(0)
	for _, h := range l.holders {
		if h.until > w.now && !h.lost {
			held++
		}
	}
	if held > l.limit {
		w.fail("%s: %d holders of %d slots", l.key, held, l.limit)
	}
}

// sweep lets a master delete what has expired.
func (w *world) sweep(n *node) {
	now := w.clockOf(n)
	w.note("node %d deletes what has expired", n.id)
	for _, l := range w.limiters {
		before := n.state(l)
		w.checkExpired(n, l, now)
		n.server.Clock(int64(now))
		if _, effects := n.server.Call([]string{"GO.INFO", l.key}); len(effects) > 0 {
			w.publish(group{limiter: l, before: before, effects: effects})
		}
	}
}

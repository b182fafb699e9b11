package sim

import (
	"slices"

	"gothrottle/funnel"
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
	g := group{limiter: l, before: n.models[l.at].clone()}
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
	l := m.limiter
	a, after := parse(l.kind, m.words), n.models[l.at].clone()
	want, granted, wrong := after.decide(l.kind, now, &a)
	if (err == nil) != (wrong == nil) || !slices.Equal(reply, want) {
		w.fail("%q at %d: the reply is %v, %v; the oracle has %v, %v", m.words, now, reply, err, want, wrong)
	} else if err == nil {
		n.models[l.at] = after
		w.count(m, &a, g, granted, reply, n.id == w.master)
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
	if m := &n.models[l.at]; !m.void(now) {
		w.fail("%s expired at node %d at %d ms while units are in use", l.key, n.id, at)
	}
	n.models[l.at] = newModel(l)
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
	if (at < 0 || w.random.IntN(8) == 0) && !n.models[l.at].void(gone) {
		w.fail("%s is in use at node %d when it expires at %d ms", l.key, n.id, at)
	}
}

// count notes what was granted, and holds it against the bounds.
func (w *world) count(m *message, a *ask, g *group, granted int64, reply []int64, master bool) {
	l := g.limiter
	if g.granted = granted; l.kind == leaseKind && !a.release && granted > 0 {
		g.holder = a.id
	}
	if l.kind == leaseKind {
		w.slots(l, a, g, master)
		return
	}
	if u := m.giver; u != nil && a.n < 0 {
		k := u.of(l)
		if k.units += a.n; k.units < 0 {
			w.fail("%s: user %d gives back %d units more than it has", l.key, u.id, -k.units)
		}
		if m.sent-k.taken > w.hold() {
			w.fail("%s: user %d gives back units that it took %d µs before", l.key, u.id, m.sent-k.taken)
		}
	}
	if g.granted < 0 && reply[2] > reply[1] {
		w.fail("%s: after a refund %d of %d units are left", l.key, reply[2], reply[1])
	}
	w.tally(a, reply)
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
func (w *world) tally(a *ask, reply []int64) {
	switch {
	case a.n < 0:
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
func (w *world) slots(l *limiter, a *ask, g *group, master bool) {
	if a.release && master {
		delete(l.holders, a.id)
	} else if g.granted > 0 {
		l.holders[a.id] = &holder{until: w.now + a.period*1000 - 2*w.skew, lost: !master}
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
		before := n.models[l.at]
		w.checkExpired(n, l, now)
		n.server.Clock(int64(now))
		if _, effects := n.server.Call([]string{"GO.INFO", l.key}); len(effects) > 0 {
			w.publish(group{limiter: l, before: before, effects: effects})
		}
	}
}

package sim

import (
	"fmt"
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
	now := w.clockOf(n)
	limiters := append([]*limiter{m.limiter}, m.further...)
	var g group
	for _, l := range limiters {
		g.parts = append(g.parts, part{limiter: l, before: n.models[l.at].clone()})
		w.checkExpired(n, l, now)
	}
	n.server.Clock(int64(now))
	got, effects := n.server.Call(m.words)
	err, _ := got.(error)
	reply := integers(nil, got)
	m.decided = w.now
	w.note("node %d runs %q of client %d at %d: %v, %v", n.id, m.words, m.from(), now, reply, err)
	if w.check(n, m, now, g.parts, reply, err); w.broken != "" {
		return reply, err
	}
	for _, l := range limiters {
		w.checkState(n, l, now)
	}
	if g.effects = effects; master && len(effects) > 0 {
		w.publish(g)
	}
	return reply, err
}

// trial is what the oracle of a limiter makes of a call, or of a clause of GO.ALL.
type trial struct {
	ask     ask
	after   model
	want    []int64
	granted int64
}

func (t trial) String() string { return fmt.Sprint(t.want) }

// check holds a call against the oracles of its limiters. Of a GO.ALL, all clauses admit, or nothing is taken.
func (w *world) check(n *node, m *message, now funnel.Micros, parts []part, reply []int64, err error) {
	calls := m.clauses
	if m.further == nil {
		calls = [][]string{m.words}
	}
	trials, limited := make([]trial, len(calls)), false
	for i := range trials {
		l, t := parts[i].limiter, &trials[i]
		t.ask, t.after = parse(l.kind, calls[i]), n.models[l.at].clone()
		var wrong error
		if t.want, t.granted, wrong = t.after.decide(l.kind, now, &t.ask); err != nil || wrong != nil {
			if m.further != nil || (err == nil) != (wrong == nil) {
				w.fail("%q at %d: the reply is %v, %v; the oracle has %v, %v", m.words, now, reply, err, t.want, wrong)
			}
			return
		}
		limited = limited || t.want[0] != 0
	}
	if !fits(reply, trials, limited, m.further != nil) {
		w.fail("%q at %d: the reply is %v; the oracles have %v", m.words, now, reply, trials)
		return
	}
	if w.seen["all"] += btoi(m.further != nil); m.further != nil && limited {
		w.seen["allDenied"]++
		for _, p := range parts {
			n.models[p.limiter.at].forgetLapsed(now)
		}
		return
	}
	for i, t := range trials {
		n.models[parts[i].limiter.at] = t.after
		w.count(m, &t.ask, &parts[i], t.granted, t.want, n.id == w.master)
	}
}

// fits reports whether a reply is that of the oracles. The reply of a clause that admits, while another one denies, is not
// compared.
func fits(reply []int64, trials []trial, limited, all bool) bool {
	if (reply[0] != 0) != limited {
		return false
	}
	if all {
		reply = reply[6:]
	}
	for _, t := range trials {
		if len(reply) < len(t.want) || reply[0] != t.want[0] {
			return false
		}
		part := reply[:len(t.want)]
		if reply = reply[len(part):]; (!limited || t.want[0] != 0) && !slices.Equal(part, t.want) {
			return false
		}
	}
	return len(reply) == 0
}

// integers appends the integers of a reply, which may be nested.
func integers(to []int64, reply any) []int64 {
	switch reply := reply.(type) {
	case int64:
		to = append(to, reply)
	case []any:
		for _, n := range reply {
			to = integers(to, n)
		}
	}
	return to
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
func (w *world) count(m *message, a *ask, g *part, granted int64, reply []int64, master bool) {
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
func (w *world) slots(l *limiter, a *ask, g *part, master bool) {
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
			w.publish(group{[]part{{limiter: l, before: before}}, effects})
		}
	}
}

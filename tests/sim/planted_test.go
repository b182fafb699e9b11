package sim

import (
	"slices"
	"strconv"

	"gothrottle/tests/corpus"
)

// planted is a fault that is built into a world. Each hook that is not nil takes the place of what a right world does.
type planted struct {
	name    string
	effects func(w *world, words [][]string) [][]string // what is replicated of a call
	promote func(w *world, n *node)                     // before a replica becomes the master
	resync  func(w *world, n *node)                     // after a full synchronisation
	frozen  bool                                        // the clocks of users stand still
	giving  func(w *world, m *message)                  // when a user gives back
	lost    func(w *world, m *message)                  // when the reply to a user is lost
}

// one reports whether a fault that strikes now and then does so now.
func (w *world) one(in int) bool { return w.random.IntN(in) == 0 }

// refund puts a refund of n units on the wire, which nobody waits for.
func (w *world) refund(m *message, n int64) {
	w.put(&message{limiter: m.limiter, words: withQuantity(m, -n), to: w.master, orphan: true, giver: m.giver})
}

// withQuantity returns the words of a call with another quantity. A call of one unit may have none.
func withQuantity(m *message, n int64) []string {
	at, words := 4, slices.Clone(m.words)
	if m.limiter.kind == rateKind {
		at = 5
	}
	if _, err := strconv.Atoi(words[at]); err == nil {
		words = slices.Delete(words, at, at+1)
	}
	return slices.Insert(words, at, number(n))
}

func quantityOf(m *message) int64 { return callOf(m.words).Quantity }

// faults are the faults that the simulation must find.
var faults = []planted{
	{name: "effects: two effects of a call in the wrong order", effects: func(_ *world, effects [][]string) [][]string {
		slices.Reverse(effects)
		return effects
	}},
	{name: "effects: one effect is lost", effects: func(w *world, effects [][]string) [][]string {
		i := w.random.IntN(len(effects))
		return slices.Delete(effects, i, i+1)
	}},
	{name: "effects: a field is stale", effects: func(_ *world, effects [][]string) [][]string {
		for i, words := range effects {
			if words[0] == "HSET" && words[2] == "0" {
				tat, _ := strconv.ParseInt(words[3], 10, 64)
				effects[i] = append([]string{"HSET", words[1], "0", number(tat - 1)}, words[4:]...)
			}
		}
		return effects
	}},
	{name: "effects: a replica decides by itself", effects: func(w *world, effects [][]string) [][]string {
		for i, words := range effects {
			if words[0] == "PEXPIREAT" {
				at, _ := strconv.ParseInt(words[2], 10, 64)
				effects[i] = []string{"PEXPIREAT", words[1], number(at + 1)}
			}
		}
		return effects
	}},
	{name: "failover: half of a call is applied", promote: func(w *world, n *node) {
		for i := n.applied; i < len(w.log); i++ {
			if g := &w.log[i]; len(g.effects) > 1 {
				n.apply(w, g.effects[0])
				return
			}
		}
	}},
	{name: "failover: the new master keeps its wrong clock", promote: func(w *world, n *node) {
		n.offset = 500_000 + w.random.Int64N(1_000_000)
	}},
	{name: "failover: a replica says that it has more than it has", promote: func(w *world, n *node) {
		n.applied = min(n.applied+1, len(w.log))
	}},
	{name: "failover: the state is lost", promote: func(_ *world, n *node) { n.server = corpus.NewMemory() }},
	{name: "failover: a copy lacks a key", resync: func(_ *world, n *node) {
		if keys := n.server.Keys(); len(keys) > 0 {
			n.server.Delete(keys[0])
		}
	}},
	{name: "budget: units are given back twice", giving: func(w *world, m *message) { w.refund(m, -quantityOf(m)) }},
	{name: "budget: units are given back after a lost reply", lost: func(w *world, m *message) { w.refund(m, quantityOf(m)) }},
	{name: "budget: units are spent after Hold", frozen: true},
	{name: "budget: more is given back than was left", giving: func(w *world, m *message) {
		m.words = withQuantity(m, quantityOf(m)-1)
	}},
}
